package managecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

func sendCommand(s cli.Streams) *cobra.Command {
	var steer, queue, replace bool
	cmd := &cobra.Command{
		Use:   "send ID MESSAGE...",
		Short: "Send a message to a conversation that another process runs",
		Long: "Send a message to a conversation that another process has open, and return at once. While a turn runs, the message joins it\n" +
			"with its next model request, unless --queue or --replace is given. To run a turn in this process, use fermata exec resume.",
		Example:           "  fermata send 01a1df48 use tabs\n  fermata send 01a1df48 --queue now run the tests",
		Args:              cli.Args(cobra.MinimumNArgs(2)),
		ValidArgsFunction: cli.CompleteIDs(false),
		RunE: func(cmd *cobra.Command, a []string) error {
			op := p.UserTurn{Content: p.Text(strings.Join(a[1:], " "))}
			for mode, set := range map[p.WhenBusy]bool{p.Steer: steer, p.Queue: queue, p.Replace: replace} {
				if set && op.WhenBusy != "" {
					return cli.Usagef("send: --steer, --queue and --replace exclude each other")
				}
				if set {
					op.WhenBusy = mode
				}
			}
			return send(cmd.Context(), s, a[0], op)
		},
	}
	cmd.Flags().BoolVar(&steer, "steer", false, "add it to the running turn")
	cmd.Flags().BoolVar(&queue, "queue", false, "send it after the running turn")
	cmd.Flags().BoolVar(&replace, "replace", false, "interrupt the running turn and send it")
	return cmd
}

func send(ctx context.Context, s cli.Streams, name string, op p.UserTurn) error {
	e, id, err := cli.Find(ctx, name)
	if err != nil {
		return err
	}
	defer e.Shutdown(context.WithoutCancel(ctx))
	owner, err := e.Join(ctx, id)
	if errors.Is(err, remote.ErrNotOpen) {
		return &cli.ExitError{Code: cli.ExitFailed, Err: err, Hint: fmt.Sprintf("fermata exec resume %s MESSAGE runs the turn here", id)}
	}
	if err != nil {
		return err
	}
	receipt, err := owner.Submit(ctx, id, op)
	if err != nil {
		return err
	}
	switch receipt.State {
	case p.TakenSteered:
		fmt.Fprintf(s.Err, "steered into turn %d\n", receipt.Turn)
	case p.TakenQueued:
		fmt.Fprintf(s.Err, "queued after turn %d\n", receipt.Turn)
	default:
		fmt.Fprintf(s.Err, "turn %d started\n", receipt.Turn)
	}
	return nil
}

func interruptCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:               "interrupt ID",
		Short:             "Interrupt the turn of a conversation, whichever process runs it",
		Long:              "Interrupt the turn of a conversation, whichever process runs it, and wait until it has ended. The exit code is 1 if no turn is running.",
		Example:           "  fermata interrupt 01a1df48",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: cli.CompleteIDs(false),
		RunE: func(cmd *cobra.Command, a []string) error {
			return interrupt(cmd.Context(), s, a[0])
		},
	}
}

func interrupt(ctx context.Context, s cli.Streams, name string) error {
	e, id, err := cli.Find(ctx, name)
	if err != nil {
		return err
	}
	defer e.Shutdown(context.WithoutCancel(ctx))
	receipt, err := e.Submit(ctx, id, p.Interrupt{})
	if errors.Is(err, engine.ErrNothingToStop) {
		return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("conversation %s: no turn is running", id)}
	}
	if err != nil {
		return err
	}
	end, err := engine.FollowTurn(ctx, e, id, receipt.Turn, receipt.Seq, func(p.Event) {})
	if err != nil {
		return fmt.Errorf("turn %d is stopping: %w", receipt.Turn, err)
	}
	fmt.Fprintf(s.Err, "turn %d %s\n", end.Turn, end.End.Reason)
	return nil
}

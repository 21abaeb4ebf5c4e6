package managecmd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	following "github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

func sendCommand(s cli.Streams) *cobra.Command {
	var steer, queue, replace, wait bool
	cmd := &cobra.Command{
		Use:   "send ID MESSAGE...",
		Short: "Send a message to a conversation that another process runs",
		Long: "Send a message to a conversation that another process has open, and return at once. While a turn runs, the message joins it\n" +
			"with its next model request, unless --queue or --replace is given. To run a turn in this process, use fermata exec resume.\n\n" +
			"--wait waits until it is known what became of the message, also if that process ends. Exit codes: 0 delivered, 5 not known,\n" +
			"6 not delivered (it is returned, see fermata returned, or was not accepted).",
		Example:           "  fermata send 01a1df48 use tabs\n  fermata send 01a1df48 --queue --wait now run the tests",
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
			return send(cmd.Context(), s, a[0], op, wait)
		},
	}
	cmd.Flags().BoolVar(&steer, "steer", false, "add it to the running turn")
	cmd.Flags().BoolVar(&queue, "queue", false, "send it after the running turn")
	cmd.Flags().BoolVar(&replace, "replace", false, "interrupt the running turn and send it")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the message is delivered or returned, and say which")
	return cmd
}

func send(ctx context.Context, s cli.Streams, name string, op p.UserTurn, wait bool) error {
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
	if wait {
		op.Ref = "send-" + rand.Text() // to find it in the journal if the owner ends before it answers
	}
	receipt, err := owner.Submit(ctx, id, op)
	if wait && err != nil {
		receipt, err = findSent(ctx, e.Local, id, op.Ref, err)
	}
	if err != nil {
		return err
	}
	switch receipt.State {
	case p.TakenSteered:
		fmt.Fprintf(s.Err, "steered into turn %d as message %d\n", receipt.Turn, receipt.Input)
	case p.TakenQueued:
		fmt.Fprintf(s.Err, "queued after turn %d as message %d\n", receipt.Turn, receipt.Input)
	default:
		fmt.Fprintf(s.Err, "turn %d started\n", receipt.Turn)
	}
	if !wait {
		return nil
	}
	return reportDelivery(ctx, s, e, id, receipt)
}

// reportDelivery waits until it is known what became of a message. If the process that took it ends, the conversation
// is opened here, which returns the message.
func reportDelivery(ctx context.Context, s cli.Streams, e engine.Engine, id p.ConversationID, receipt p.Receipt) error {
	ctx, stopped := cli.StopSignals(ctx)
	is, turn, err := following.AwaitDelivery(ctx, e, id, receipt)
	switch {
	case stopped() != nil:
		return &cli.ExitError{Code: cli.SignalCode(stopped()), Err: fmt.Errorf("message %d was not delivered yet", receipt.Input)}
	case err != nil:
		return &cli.ExitError{
			Code: cli.ExitUnknown, Err: fmt.Errorf("it is not known whether message %d was delivered: %w", receipt.Input, err),
			Hint: fmt.Sprintf("fermata show %s", id),
		}
	case is == following.Returned:
		return &cli.ExitError{
			Code: cli.ExitReturned, Err: fmt.Errorf("message %d was not delivered, and is returned", receipt.Input),
			Hint: fmt.Sprintf("fermata exec resume %[1]s --returned sends it, fermata returned %[1]s %[2]d --drop drops it", id, receipt.Input),
		}
	case is == following.Deleted:
		return &cli.ExitError{Code: cli.ExitReturned, Err: fmt.Errorf("message %d was not delivered: a client took it back", receipt.Input)}
	}
	if receipt.State != p.TakenStarted {
		fmt.Fprintf(s.Err, "delivered in turn %d\n", turn)
	}
	return nil
}

// findSent looks in the journal for a message whose owner has ended, or is silent, and has not answered.
func findSent(ctx context.Context, e *engine.Local, id p.ConversationID, ref string, because error) (p.Receipt, error) {
	silent := (*remote.UnresponsiveError)(nil)
	if !errors.Is(because, remote.ErrLost) && !errors.As(because, &silent) {
		return p.Receipt{}, because // it was refused
	}
	_, open, unread := e.Owner(ctx, id) // before the journal is read: an owner that has ended adds nothing
	for ev, err := range e.Read(ctx, id) {
		if err != nil {
			unread = err
			break
		}
		switch b := ev.Body.(type) {
		case *p.InputAccepted:
			if b.Ref == ref {
				return p.Receipt{Turn: ev.Turn, Seq: ev.Seq, Input: b.Input, State: p.TakenQueued}, nil
			}
		case *p.UserMessage:
			if b.Ref == ref {
				return p.Receipt{Turn: ev.Turn, Seq: ev.Seq, Input: b.Input, State: p.TakenStarted}, nil
			}
		}
	}
	if open || unread != nil {
		return p.Receipt{}, &cli.ExitError{Code: cli.ExitUnknown, Err: fmt.Errorf("it is not known whether the message was accepted: %w", because), Hint: fmt.Sprintf("fermata show %s", id)}
	}
	return p.Receipt{}, &cli.ExitError{Code: cli.ExitReturned, Err: fmt.Errorf("the message was not accepted: %w", because)}
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

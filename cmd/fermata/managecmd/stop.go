package managecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/humanize"
	p "github.com/fermata-agent/fermata/protocol"
)

func stopCommand(s cli.Streams) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "stop --all",
		Short: "Stop everything that runs in this home",
		Long: "Interrupt every turn, stop every background command, whichever process runs them, and end fermata serve.\n" +
			"A turn that waits for an approval or for a limit is interrupted if a process has its conversation open. Terminal UIs keep running.",
		Example: "  fermata stop --all",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !all {
				return &cli.ExitError{Code: cli.ExitUsage, Err: errors.New("stop: say what to stop"), Hint: "fermata stop --all stops everything, fermata interrupt ID one turn"}
			}
			return stopAll(cmd.Context(), s)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "stop everything")
	return cmd
}

func stopAll(ctx context.Context, s cli.Streams) error {
	processes, done, err := app.Processes(ctx, cli.Version())
	if err != nil {
		return err
	}
	defer done()
	var failed []error
	stopped := 0
	for _, x := range processes {
		if x.Err != nil {
			failed = append(failed, fmt.Errorf("process %d: %w", x.PID, x.Err))
			continue
		}
		for _, c := range x.Conversations {
			if !c.Active && len(c.Background) == 0 {
				continue
			}
			if err := x.Stop(ctx, c); err != nil {
				failed = append(failed, fmt.Errorf("conversation %s: %w", c.ID, err))
				continue
			}
			stopped++
			fmt.Fprintf(s.Err, "stopped %s: %s\n", c.ID, stoppedText(c))
		}
		if x.Serves {
			if err := x.End(ctx); err != nil {
				failed = append(failed, fmt.Errorf("process %d: %w", x.PID, err))
				continue
			}
			stopped++
			fmt.Fprintf(s.Err, "ended fermata serve, process %d\n", x.PID)
		}
	}
	if stopped == 0 && len(failed) == 0 {
		fmt.Fprintln(s.Err, "nothing is running")
	}
	return errors.Join(failed...)
}

// stoppedText says what ran in a conversation.
func stoppedText(c p.Snapshot) string {
	switch n := len(c.Background); {
	case !c.Active:
		return humanize.Count(n, "background command")
	case n > 0:
		return fmt.Sprintf("turn %d, %s", c.Turn, humanize.Count(n, "background command"))
	}
	return fmt.Sprintf("turn %d", c.Turn)
}

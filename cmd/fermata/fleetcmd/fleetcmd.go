// Package fleetcmd is the command fermata fleet: what the nodes that share a store do, and what waits for them.
package fleetcmd

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app/work"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/journal/nats"
)

// Command returns fermata fleet.
func Command(s cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "fleet",
		Short:   "Look at the nodes that share [store] url, and at the work that waits for them",
		Example: "  fermata fleet status\n  fermata fleet drain build-1\n  fermata fleet retry 17",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		view(s, "status", "Say what the fleet does, what waits, and what has failed", printStatus),
		view(s, "nodes", "List the nodes, with their labels, version, load and last sign of life", printNodes),
		view(s, "queue", "List the turns that wait for a node, with their age, their client, and what they wait for", printQueue),
		topCommand(s), drainCommand(s), retryCommand(s), dropCommand(s),
	)
	return cmd
}

// view makes a command that prints the status in some form.
func view(s cli.Streams, name, short string, printText func(io.Writer, work.Status) error) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Example: "  fermata fleet " + name + "\n  fermata fleet " + name + " --json",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withOperator(cmd.Context(), func(ctx context.Context, o *work.Operator) error {
				st, err := o.Status(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(s.Out, st)
				}
				return printText(s.Out, st)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole status as JSON")
	return cmd
}

func withOperator(ctx context.Context, f func(context.Context, *work.Operator) error) error {
	ctx, stopped := cli.StopSignals(ctx)
	o, err := work.OpenOperator(ctx)
	if err == nil {
		defer o.Close()
		err = f(ctx, o)
	}
	return cli.StoppedBy(stopped(), err)
}

func topCommand(s cli.Streams) *cobra.Command {
	interval := 2 * time.Second
	cmd := &cobra.Command{
		Use:     "top",
		Short:   "Show what the fleet does, until interrupted",
		Example: "  fermata fleet top --interval 10s",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval <= 0 {
				return cli.Usagef("fleet top: --interval must be more than 0")
			}
			return withOperator(cmd.Context(), func(ctx context.Context, o *work.Operator) error {
				for {
					st, err := o.Status(ctx)
					if err != nil {
						return err
					}
					if err := printTop(s, st); err != nil {
						return err
					}
					select {
					case <-time.After(interval):
					case <-ctx.Done():
						return nil
					}
				}
			})
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", interval, "look again after this `TIME`")
	return cmd
}

func drainCommand(s cli.Streams) *cobra.Command {
	var within time.Duration
	leave := false
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Have a node take nothing more, and end when its turns have ended",
		Long: "Have a node take nothing more. Its running turns end as they would; those that only wait, for an approval or a limit, are left to other nodes. Then the\n" +
			"process of the node ends, with code 0. NODE is the name of the node, or NAME/PID if several have it. The command waits for the end of the node; if it is\n" +
			"interrupted, the node drains all the same.",
		Example: "  fermata fleet drain build-1\n  fermata fleet drain build-1 --within 30m",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if within < 0 {
				return cli.Usagef("fleet drain: --within must not be negative")
			}
			return withOperator(cmd.Context(), func(ctx context.Context, o *work.Operator) error {
				n, err := o.Find(ctx, a[0])
				if err != nil {
					return err
				}
				if err := o.Drain(ctx, n, within); err != nil {
					return err
				}
				if leave {
					fmt.Fprintf(s.Out, "node %s drains\n", n.Name)
					return nil
				}
				return awaitEnd(ctx, s, o, n)
			})
		},
	}
	cmd.Flags().DurationVar(&within, "within", 0, "interrupt turns that still run after this `TIME`")
	cmd.Flags().BoolVar(&leave, "no-wait", false, "do not wait for the end of the node")
	return cmd
}

// awaitEnd waits until a node has left, and says what it waits for.
func awaitEnd(ctx context.Context, s cli.Streams, o *work.Operator, n nats.Node) error {
	last := -1
	err := o.Await(ctx, n.ID, func(now nats.Node) {
		if running := now.Running(); running != last {
			last = running
			fmt.Fprintf(s.Err, "fermata: node %s drains: it runs %s\n", n.Name, humanize.Count(running, "turn"))
		}
	})
	if err == nil {
		fmt.Fprintf(s.Out, "node %s has left\n", n.Name)
	}
	return err
}

func retryCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "retry NUMBER...",
		Short:   "Submit failed work again",
		Example: "  fermata fleet retry 17",
		Long:    "Submit work from the list of failed work again. NUMBER is its number in fermata fleet status. The turn is begun at most once, however often it is submitted.",
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			return eachNumber(cmd.Context(), a, func(ctx context.Context, o *work.Operator, n uint64) error {
				if err := o.Retry(ctx, n); err != nil {
					return err
				}
				fmt.Fprintf(s.Out, "%d waits for a node again\n", n)
				return nil
			})
		},
	}
}

func dropCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "drop NUMBER...",
		Short: "Remove work that has failed, or that waits",
		Long: "Remove work from the list of failed work, or from the queue. NUMBER is its number in fermata fleet status. Its conversation stays; a client that waits for the\n" +
			"turn is told, and ends. A turn that a node has begun meanwhile runs on.",
		Example: "  fermata fleet drop 17",
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			return eachNumber(cmd.Context(), a, func(ctx context.Context, o *work.Operator, n uint64) error {
				w, err := o.Drop(ctx, n)
				if err != nil {
					return err
				}
				fmt.Fprintf(s.Out, "%d is dropped: conversation %s\n", n, w.Conversation)
				return nil
			})
		},
	}
}

// eachNumber calls f for each number. The first error ends it.
func eachNumber(ctx context.Context, args []string, f func(context.Context, *work.Operator, uint64) error) error {
	var numbers []uint64
	for _, a := range args {
		n, err := strconv.ParseUint(a, 10, 64)
		if err != nil || n == 0 {
			return cli.Usagef("fleet: %q is not a number of fermata fleet status", a)
		}
		numbers = append(numbers, n)
	}
	return withOperator(ctx, func(ctx context.Context, o *work.Operator) error {
		for _, n := range numbers {
			if err := f(ctx, o, n); err != nil {
				return fmt.Errorf("%d: %w", n, err)
			}
		}
		return nil
	})
}

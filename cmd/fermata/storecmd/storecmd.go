// Package storecmd is the command fermata store, and what doctor says of the store.
package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/internal/app/store"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/journal/nats"
)

// Command returns fermata store. usage marks errors of the command line.
func Command(stdout, stderr io.Writer, usage func(format string, args ...any) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "store",
		Short:   "Copy conversations between files and NATS, and change the stream on NATS",
		Example: "  fermata store copy --from files --to nats://localhost:4222\n  fermata store set max_bytes 10000000000",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(copyCommand(stdout, stderr, usage), setCommand(stdout, usage))
	return cmd
}

func setCommand(stdout io.Writer, usage func(string, ...any) error) *cobra.Command {
	return &cobra.Command{
		Use:   "set max_bytes|lease_ms|replicas VALUE",
		Short: "Change what was fixed when the stream was made",
		Long: "Change a setting of the stream on NATS that [store] gives it only when it is made. max_bytes: how many bytes it may have, 0 is no limit. replicas:\n" +
			"on how many servers everything is kept. lease_ms: after how long without a sign of life others may take the conversations of a process over; it is\n" +
			"refused while a process has conversations open or serves as a node, because that relies on the lease it has.",
		Example: "  fermata store set max_bytes 10000000000\n  fermata store set replicas 3",
		RunE: func(cmd *cobra.Command, a []string) error {
			if len(a) != 2 {
				return usage("store set: name a setting and its value")
			}
			value, err := strconv.ParseInt(a[1], 10, 64)
			if err != nil {
				return usage("store set: %q is not a whole number", a[1])
			}
			err = store.Set(cmd.Context(), a[0], value)
			if errors.Is(err, nats.ErrSetting) {
				return usage("store set: %w", err)
			}
			if err == nil {
				fmt.Fprintf(stdout, "%s is %d now\n", a[0], value)
			}
			return err
		},
	}
}

func copyCommand(stdout, stderr io.Writer, usage func(string, ...any) error) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "copy --from STORE --to STORE [ID...]",
		Short: "Copy conversations from one store to another, and compare them",
		Long: "Copy conversations from one store to another, all of them if no ID is given, and compare each afterwards. A store is\n" +
			"\"files\", a directory, or nats://HOST:PORT with the other settings of [store]. What is there already is completed; nothing is\n" +
			"deleted. A conversation that is open is left out and reported. What is kept of work trees of a fleet (exec --fleet --repo) is copied, too.",
		Example: "  fermata store copy --from files --to nats://localhost:4222\n  fermata store copy --from nats://localhost:4222 --to ./backup 01a1df48",
		RunE: func(cmd *cobra.Command, ids []string) error {
			copied, records, trees := 0, 0, 0
			err := store.Copy(cmd.Context(), from, to, ids, func(c store.Copied) {
				if c.Err != nil {
					fmt.Fprintf(stderr, "fermata: %s: %v\n", c.ID, c.Err)
					return
				}
				if c.HasTree {
					trees++
				}
				copied++
				records += c.Records
			})
			if errors.Is(err, store.ErrName) || errors.Is(err, store.ErrSame) {
				return usage("%w", err)
			}
			if copied > 0 || err == nil {
				fmt.Fprintf(stdout, "copied and compared: %s, %s, %s\n", humanize.Count(copied, "conversation"), humanize.Count(records, "record"), humanize.Count(trees, "work tree"))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "where conversations are, a `STORE`: files, a directory, or nats://HOST:PORT")
	cmd.Flags().StringVar(&to, "to", "", "the `STORE` to copy them to")
	return cmd
}

// Doctor says where conversations are kept, and what is wrong with that.
func Doctor(ctx context.Context, cfg *config.Config, line func(what, format string, args ...any)) {
	what := "store"
	for _, text := range store.Describe(ctx, cfg) {
		line(what, "%s", text)
		what = ""
	}
}

package managecmd

import (
	"bufio"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/plural"
	p "github.com/fermata-agent/fermata/protocol"
)

func fsckCommand(s cli.Streams) *cobra.Command {
	var repair bool
	cmd := &cobra.Command{
		Use:   "fsck [ID...]",
		Short: "Check and repair saved conversations",
		Long: "Check saved conversations, all of them if no ID is given: event numbers without gaps, checksums, one output for each call,\n" +
			"one end for each turn. Nothing is changed without --repair. The exit code is 1 if a problem is found.",
		Example:           "  fermata fsck\n  fermata fsck --repair 01a1df48",
		ValidArgsFunction: cli.CompleteIDs(false),
		RunE: func(cmd *cobra.Command, names []string) error {
			// A repair ends the turn that a crash left, and with it what still runs.
			e, err := app.OpenStore(cmd.Context(), cli.Version())
			if err != nil {
				return err
			}
			ids, err := chosen(cmd.Context(), e.Local, names)
			if err != nil {
				return err
			}
			return fsckAll(cmd.Context(), e.Local, s, ids, repair)
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "repair, then check again; damaged bytes are kept beside the file")
	return cmd
}

func chosen(ctx context.Context, e *engine.Local, names []string) ([]p.ConversationID, error) {
	var ids []p.ConversationID
	for _, name := range names {
		id, err := app.Find(ctx, e, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if len(names) > 0 {
		return ids, nil
	}
	for _, archived := range []bool{false, true} {
		for sum, err := range app.All(ctx, e, engine.ListOptions{Archived: archived, Limit: 1000}) {
			if err != nil {
				return nil, err
			}
			ids = append(ids, sum.ID)
		}
	}
	return ids, nil
}

func fsckAll(ctx context.Context, e *engine.Local, s cli.Streams, ids []p.ConversationID, repair bool) error {
	const row = "%-36s  %6v  %5v  %s\n"
	w := bufio.NewWriter(s.Out)
	fmt.Fprintf(w, row, "CONVERSATION", "EVENTS", "TURNS", "STATE")
	bad := 0
	for _, id := range ids {
		r, err := e.Check(ctx, id)
		if err == nil && repair && len(r.Problems) > 0 {
			r, err = repaired(ctx, e, s, r)
		}
		if err != nil {
			r.Problems = append(r.Problems, err.Error())
		}
		state := "ok"
		if r.NeverBegun {
			state = "never begun"
		}
		if len(r.Lost) > 0 {
			state = "ok, with data lost"
		}
		if n := len(r.Problems); n > 0 {
			bad++
			state = plural.Of(n, "problem")
		}
		fmt.Fprintf(w, row, id, r.Events, r.Turns, state)
		for _, problem := range append(r.Problems, r.Lost...) {
			fmt.Fprintf(w, "  %s\n", problem)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return &cli.ExitError{
			Code: cli.ExitFailed, Err: fmt.Errorf("problems in %d of %s", bad, plural.Of(len(ids), "conversation")),
			Hint: "fermata fsck --repair repairs them",
		}
	}
	return nil
}

// repaired repairs a conversation, says what it did, and checks again.
func repaired(ctx context.Context, e *engine.Local, s cli.Streams, before engine.Report) (engine.Report, error) {
	words, err := e.Repair(ctx, before.ID)
	if err != nil {
		return before, err
	}
	for _, word := range words {
		fmt.Fprintf(s.Err, "%s: %s\n", before.ID, word)
	}
	return e.Check(ctx, before.ID)
}

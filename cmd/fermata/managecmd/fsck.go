package managecmd

import (
	"bufio"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/humanize"
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
			c := check{engine: e.Local, streams: s, repair: repair}
			ids, err := c.chosen(cmd.Context(), names)
			if err != nil {
				return err
			}
			return c.all(cmd.Context(), ids)
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "repair, then check again; damaged bytes are kept beside the file")
	return cmd
}

// A check is one run of fsck.
type check struct {
	engine  *engine.Local
	streams cli.Streams
	repair  bool
	unread  int // directories that could not be read
}

// chosen returns the conversations of these names, all if there are none.
func (c *check) chosen(ctx context.Context, names []string) ([]p.ConversationID, error) {
	var ids []p.ConversationID
	for _, name := range names {
		id, err := app.Find(ctx, c.engine, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if len(names) > 0 {
		return ids, nil
	}
	warn := func(line string) {
		c.unread++
		fmt.Fprintf(c.streams.Err, "fermata: %s\n", line)
	}
	for _, archived := range []bool{false, true} {
		for sum, err := range app.AllBut(ctx, c.engine, engine.ListOptions{Archived: archived, Limit: 1000}, warn) {
			if err != nil {
				return nil, err
			}
			ids = append(ids, sum.ID)
		}
	}
	return ids, nil
}

// all checks conversations and prints what it finds.
func (c *check) all(ctx context.Context, ids []p.ConversationID) error {
	const row = "%-36s  %6v  %5v  %s\n"
	w := bufio.NewWriter(c.streams.Out)
	fmt.Fprintf(w, row, "CONVERSATION", "EVENTS", "TURNS", "STATE")
	bad := 0
	for _, id := range ids {
		r, err := c.engine.Check(ctx, id)
		if c.repair && (err != nil || len(r.Problems) > 0) {
			r, err = c.mend(ctx, r)
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
			state = humanize.Count(n, "problem")
		}
		fmt.Fprintf(w, row, id, r.Events, r.Turns, state)
		for _, problem := range append(r.Problems, r.Lost...) {
			fmt.Fprintf(w, "  %s\n", problem)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return c.verdict(bad, len(ids))
}

// verdict is the error of a run that has found problems.
func (c *check) verdict(bad, checked int) error {
	switch {
	case bad > 0 && c.repair:
		return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("%d of %s could not be repaired", bad, humanize.Count(checked, "conversation"))}
	case bad > 0:
		return &cli.ExitError{
			Code: cli.ExitFailed, Err: fmt.Errorf("problems in %d of %s", bad, humanize.Count(checked, "conversation")),
			Hint: "fermata fsck --repair repairs them",
		}
	case c.unread > 0:
		return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("not everything could be checked")}
	}
	return nil
}

// mend repairs a conversation, says what it did, and checks again.
func (c *check) mend(ctx context.Context, before engine.Report) (engine.Report, error) {
	words, err := c.engine.Repair(ctx, before.ID)
	for _, word := range words {
		fmt.Fprintf(c.streams.Err, "%s: %s\n", before.ID, word)
	}
	if err != nil {
		return before, err
	}
	return c.engine.Check(ctx, before.ID)
}

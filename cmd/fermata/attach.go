package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

func attachCommand(s cli.Streams) *cobra.Command {
	var t terminalRun
	var readOnly bool
	cmd := &cobra.Command{
		Use:   "attach [ID]",
		Short: "Join a conversation that another process runs",
		Long: "Join a conversation that another process runs, in mid-sentence if need be. Without ID, join the only one that is live, or list\n" +
			"those that are. Without a terminal, and with --read-only, only print what happens, until Ctrl-C.",
		Example:           "  fermata attach\n  fermata attach 01a1df48 --read-only",
		ValidArgsFunction: cli.CompleteIDs(false),
		Args:              cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			live, err := everything(cmd.Context())
			if err != nil {
				return err
			}
			id, err := attachTo(cmd.Context(), s, live, a)
			if err != nil {
				return err
			}
			if readOnly || noTerminal(s) != "" {
				return watchConversation(cmd.Context(), s, id)
			}
			t.name = string(id)
			t.flags.Detach = slices.ContainsFunc(live, func(r liveRow) bool { return r.ID == id && r.serves })
			return t.run(cmd.Context(), s)
		},
	}
	t.flags.register(cmd.Flags())
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "only watch")
	return cmd
}

// attachTo returns the conversation to join: the named one, or the only one there is.
func attachTo(ctx context.Context, s cli.Streams, live []liveRow, named []string) (p.ConversationID, error) {
	if len(named) == 1 {
		_, id, err := cli.Find(ctx, named[0])
		return id, err
	}
	live = slices.DeleteFunc(live, func(r liveRow) bool { return r.pid == 0 })
	switch len(live) {
	case 0:
		return "", &cli.ExitError{Code: cli.ExitFailed, Err: errors.New("no conversation is live"), Hint: "fermata resume resumes one"}
	case 1:
		return live[0].ID, nil
	}
	if err := printLive(s.Err, live); err != nil {
		return "", err
	}
	return "", &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("%d conversations are live", len(live)), Hint: "name one: fermata attach ID"}
}

// watchConversation prints what happens in a conversation.
func watchConversation(ctx context.Context, s cli.Streams, id p.ConversationID) error {
	e, err := app.OpenStore(ctx, cli.Version())
	if err != nil {
		return err
	}
	ctx, _ = cli.StopSignals(ctx)
	ctx = cli.WhileRead(ctx, s.RawOut)
	return followed(ctx, tailTo(ctx, e.Local, id, s, false))
}

// A liveRow is a conversation in which something goes on.
type liveRow struct {
	p.Snapshot
	pid    int // of the process that has it open; 0 if none has
	serves bool
	err    error // why nothing else is known
}

// everything returns the conversations of this home that a process has open, or whose turn has not ended.
func everything(ctx context.Context) ([]liveRow, error) {
	processes, done, err := app.Processes(ctx, cli.Version())
	if err != nil {
		return nil, err
	}
	defer done()
	var rows []liveRow
	for _, x := range processes {
		if x.Err != nil {
			rows = append(rows, liveRow{pid: x.PID, err: x.Err})
		}
		for _, c := range x.Conversations {
			rows = append(rows, liveRow{Snapshot: c, pid: x.PID, serves: x.Serves})
		}
	}
	e, err := app.OpenStore(ctx, cli.Version())
	if err != nil {
		return nil, err
	}
	for c, err := range app.All(ctx, e, engine.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if c.Ended != "" || c.Turns == 0 || slices.ContainsFunc(rows, func(r liveRow) bool { return r.ID == c.ID }) {
			continue
		}
		row := liveRow{Snapshot: p.Snapshot{ID: c.ID, Title: c.Title, Turn: c.Turns}}
		row.Settings.Cwd = c.Cwd
		if owner, open, err := e.Owner(ctx, c.ID); err == nil && open {
			row.pid = owner.PID
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// printLive prints everything that runs, and what waits.
func printLive(w io.Writer, rows []liveRow) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "nothing is running")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "CONVERSATION\tPROCESS\tTURN\tSTATE\tTITLE")
	for _, r := range rows {
		if r.err != nil {
			fmt.Fprintf(t, "?\t%d\t\t%s\t\n", r.pid, r.err)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", r.ID, r.process(), r.Turn, r.state(), safetext.Strip(strings.Join(strings.Fields(r.Title), " ")))
		for _, b := range r.Background {
			fmt.Fprintf(t, "\t\t\tbackground command %d\t%s\n", b.ID, commandLine(b.Command))
		}
	}
	return t.Flush()
}

func (r liveRow) process() string {
	switch {
	case r.pid == 0:
		return "none"
	case r.serves:
		return fmt.Sprintf("%d (serve)", r.pid)
	}
	return fmt.Sprint(r.pid)
}

// state says in one word, or some, how far the turn is.
func (r liveRow) state() string {
	switch {
	case r.Hold != nil:
		return transcript.HoldText(r.Hold)
	case len(r.PendingApprovals) > 0:
		return "waiting for " + cli.Plural(len(r.PendingApprovals), "approval")
	case r.Active:
		return "running"
	case r.pid == 0:
		return "not ended"
	}
	return "idle"
}

package managecmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Live is a conversation in which something goes on.
type Live struct {
	p.Snapshot
	PID    int    // of the process that has it open; 0 if none has
	Host   string // its machine; empty if it is this one
	Serves bool
	Err    error // why nothing else is known
}

// ListLive returns the conversations of this home, or of the store that it shares, that a process has open, or whose turn
// has not ended.
func ListLive(ctx context.Context) ([]Live, error) {
	var rows []Live
	for _, processes := range []func(context.Context, string) ([]app.Process, func(), error){app.Processes, app.OtherProcesses} {
		list, done, err := processes(ctx, cli.Version())
		if err != nil {
			return nil, err
		}
		defer done()
		rows = append(rows, liveIn(list)...)
	}
	e, err := app.OpenStore(ctx, cli.Version())
	if err != nil {
		return nil, err
	}
	for c, err := range app.All(ctx, e, engine.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(rows, func(r Live) bool { return r.ID == c.ID }); i >= 0 {
			rows[i].Title = c.Title // processes know only those that were renamed
			continue
		}
		if c.Ended != "" || c.Turns == 0 {
			continue
		}
		row := Live{Snapshot: p.Snapshot{ID: c.ID, Title: c.Title, Turn: c.Turns}}
		row.Settings.Cwd = c.Cwd
		if owner, open, err := e.Owner(ctx, c.ID); err == nil && open {
			row.PID, row.Active = owner.PID, true // it cannot be asked
			if !owner.IsNear() {
				row.Host = owner.Host
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// liveIn returns what processes have open.
func liveIn(processes []app.Process) (rows []Live) {
	for _, x := range processes {
		if x.Err != nil {
			rows = append(rows, Live{PID: x.PID, Host: x.Host, Err: x.Err})
		}
		for _, c := range x.Conversations {
			rows = append(rows, Live{Snapshot: c, PID: x.PID, Host: x.Host, Serves: x.Serves})
		}
	}
	return rows
}

// PrintLive prints what ListLive has found.
func PrintLive(w io.Writer, rows []Live) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "nothing is running")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "CONVERSATION\tPROCESS\tTURN\tSTATE\tTITLE")
	for _, r := range rows {
		if r.Err != nil {
			fmt.Fprintf(t, "?\t%s\t\t%s\t\n", r.process(), r.Err)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", r.ID, r.process(), r.Turn, r.state(), safetext.Strip(strings.Join(strings.Fields(r.Title), " ")))
		for _, b := range r.Background {
			fmt.Fprintf(t, "\t\t\tbackground command %d\t%s\n", b.ID, commandLine(b.Command))
		}
	}
	return t.Flush()
}

func (r Live) process() string {
	switch {
	case r.PID == 0:
		return "none"
	case r.Serves:
		return fmt.Sprintf("%d (serve)", r.PID)
	case r.Host != "":
		return fmt.Sprintf("%d on %s", r.PID, safetext.Strip(r.Host))
	}
	return fmt.Sprint(r.PID)
}

// state says in one word, or some, how far the turn is.
func (r Live) state() string {
	switch {
	case r.Hold != nil:
		return transcript.HoldText(r.Hold)
	case len(r.PendingApprovals) > 0:
		return "waiting for " + humanize.Count(len(r.PendingApprovals), "approval")
	case r.Active:
		return "running"
	case r.PID == 0:
		return "not ended"
	}
	return "idle"
}

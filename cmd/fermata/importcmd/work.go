package importcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/imports"
	"github.com/fermata-agent/fermata/internal/foreign"
	"github.com/fermata-agent/fermata/internal/foreign/convert"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	p "github.com/fermata-agent/fermata/protocol"
)

// entry is what is printed of a session, as one object with --json.
type entry struct {
	Agent    foreign.Agent    `json:"agent"`
	Session  string           `json:"session"`
	Title    string           `json:"title,omitempty"`
	Cwd      string           `json:"cwd,omitempty"`
	Modified time.Time        `json:"modified,omitzero"`
	Size     int64            `json:"size,omitempty"`
	Parent   string           `json:"parent,omitempty"`
	State    imports.State    `json:"state,omitempty"`
	ID       p.ConversationID `json:"id,omitempty"` // of the conversation here
	Turns    int              `json:"turns,omitempty"`
	Losses   []string         `json:"losses,omitempty"`
	Problems []string         `json:"problems,omitempty"`
	Error    string           `json:"error,omitempty"`
}

func entryOf(s foreign.Session) entry {
	return entry{Agent: s.Agent, Session: s.ID, Title: s.Title, Cwd: s.Cwd, Modified: s.Modified, Size: s.Size, Parent: s.Parent, Error: s.Damaged}
}

func (w *work) printJSON(e entry) error { return json.NewEncoder(w.Out).Encode(e) }

// show lists the sessions.
func (w *work) show(ctx context.Context, list []foreign.Session) error {
	if len(list) == 0 && !w.asJSON {
		_, err := fmt.Fprintf(w.Err, "no conversations of %s\n", w.home.Agent)
		return err
	}
	t := tabwriter.NewWriter(w.Out, 0, 0, 2, ' ', 0)
	if !w.asJSON {
		fmt.Fprintln(t, "ID\tAGE\tSIZE\tSTATE\tDIRECTORY\tTITLE")
	}
	for _, s := range list {
		e := entryOf(s)
		state, last, err := w.im.State(ctx, s, "")
		if err != nil {
			return err
		}
		if e.State = state; state != imports.New {
			e.ID, e.Turns = convert.ConversationID(s, ""), int(last.Turns)
		}
		if w.asJSON {
			if err := w.printJSON(e); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", oneLine(e.Session), age(e.Modified), size(e.Size), e.stateText(), oneLine(app.Tilde(e.Cwd)), oneLine(e.Title))
	}
	if err := t.Flush(); err != nil || w.asJSON {
		return err
	}
	_, err := fmt.Fprintf(w.Err, "%s; import some by their ID, or all with --all\n", humanize.Count(len(list), "conversation"))
	return err
}

func (e entry) stateText() string {
	switch {
	case e.Error != "":
		return "unreadable"
	case e.Parent != "":
		return string(e.State) + ", subagent"
	}
	return string(e.State)
}

// oneLine makes text of others safe to print, also in a pipe, which may lead to a terminal.
func oneLine(s string) string { return safetext.Line(strings.Join(strings.Fields(s), " ")) }

// age is how long ago something was, "-" if that is not known.
func age(at time.Time) string {
	d := max(time.Since(at), 0)
	switch {
	case at.IsZero():
		return "-"
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%d kB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// check reports what is wrong with the sessions.
func (w *work) check(ctx context.Context, list []foreign.Session) error {
	damaged := 0
	for _, s := range list {
		e := entryOf(s)
		c, err := w.home.Read(ctx, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			e.Error = err.Error()
		}
		e.Losses, e.Problems = c.Losses, convert.Check(c)
		if len(e.Losses)+len(e.Problems) > 0 || e.Error != "" {
			damaged++
		}
		if err := w.report(e); err != nil {
			return err
		}
	}
	if w.asJSON {
		return nil
	}
	_, err := fmt.Fprintf(w.Err, "%s checked, %d with problems; importing repairs what can be repaired\n", humanize.Count(len(list), "conversation"), damaged)
	return err
}

// report prints what is wrong with a session.
func (w *work) report(e entry) error {
	if w.asJSON {
		return w.printJSON(e)
	}
	head := oneLine(e.Session)
	if e.Title != "" {
		head += "  " + oneLine(e.Title)
	}
	var lines []string
	if e.Error != "" {
		lines = append(lines, "cannot be read: "+e.Error)
	}
	lines = append(append(lines, e.Losses...), e.Problems...)
	if len(lines) == 0 {
		return nil
	}
	for i, line := range lines {
		lines[i] = oneLine(line)
	}
	_, err := fmt.Fprintf(w.Out, "%s\n  %s\n", head, strings.Join(lines, "\n  "))
	return err
}

// importAll imports sessions, subagents before those that started them.
func (w *work) importAll(ctx context.Context, list []foreign.Session) error {
	children := map[string]p.ConversationID{}
	failed, count := 0, map[imports.State]int{}
	list = w.withChildren(list)
	for i, s := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.progress(i, len(list))
		results, err := w.importOne(ctx, s, children)
		w.progress(0, 0)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e := entryOf(s)
		for _, r := range results {
			count[r.State]++
			e.State, e.ID, e.Turns, e.Losses = r.State, r.ID, r.Turns, r.Losses
			if err := w.reportResult(e, r); err != nil {
				return err
			}
		}
		if err == nil {
			continue
		}
		failed++
		e = entryOf(s)
		e.Error = err.Error()
		if err := w.reportFailure(e); err != nil {
			return err
		}
	}
	if err := w.summary(count, failed); err != nil {
		return err
	}
	if failed > 0 {
		return &cli.ExitError{Code: cli.ExitFailed, Err: errIncomplete}
	}
	return nil
}

// withChildren returns the sessions with the subagents that they started, those first.
func (w *work) withChildren(list []foreign.Session) []foreign.Session {
	chosen := map[string]bool{}
	for _, s := range list {
		chosen[s.ID] = true
	}
	var children, rest []foreign.Session
	for _, s := range w.list {
		switch {
		case s.Parent != "" && (chosen[s.Parent] || chosen[s.ID]):
			children = append(children, s)
		case chosen[s.ID]:
			rest = append(rest, s)
		}
	}
	return append(children, rest...)
}

// importOne imports a session, and with --branches what was abandoned in it.
func (w *work) importOne(ctx context.Context, s foreign.Session, children map[string]p.ConversationID) ([]imports.Result, error) {
	c, err := w.home.Read(ctx, s)
	if err != nil {
		return nil, err
	}
	if w.dryRun {
		r, err := w.im.Compare(ctx, c, "")
		return []imports.Result{r}, err
	}
	r, err := w.im.Import(ctx, c, "", children)
	if err != nil {
		return nil, err
	}
	children[s.ID] = r.ID
	results := []imports.Result{r}
	if !w.branches {
		return results, nil
	}
	for _, branch := range c.Branches {
		other, err := w.home.ReadBranch(ctx, s, branch)
		if err != nil {
			return results, err
		}
		r, err := w.im.Import(ctx, other, branch, children)
		if err != nil {
			return results, err
		}
		results = append(results, r)
	}
	return results, nil
}

// reportFailure prints that a session could not be imported. Only ids are printed on stdout.
func (w *work) reportFailure(e entry) error {
	if w.asJSON {
		return w.printJSON(e)
	}
	_, err := fmt.Fprintf(w.Err, "%s  %s\n  cannot be imported: %s\n", oneLine(e.Session), oneLine(e.Title), oneLine(e.Error))
	return err
}

func (w *work) reportResult(e entry, r imports.Result) error {
	if w.asJSON {
		return w.printJSON(e)
	}
	if r.State == imports.Same {
		return nil
	}
	verb := map[imports.State]string{imports.New: "imported", imports.Grown: "imported again, with what was added", imports.Continued: "imported beside the one that was continued here"}[r.State]
	if w.dryRun {
		verb = "would be " + verb
	}
	if _, err := fmt.Fprintln(w.Out, r.ID); err != nil {
		return err
	}
	if cli.Terminal(w.RawOut) || len(r.Losses) > 0 {
		fmt.Fprintf(w.Err, "%s  %s: %s\n", oneLine(e.Session), verb, oneLine(e.Title))
	}
	for _, loss := range r.Losses {
		fmt.Fprintf(w.Err, "  %s\n", oneLine(loss))
	}
	return nil
}

func (w *work) summary(count map[imports.State]int, failed int) error {
	if w.asJSON {
		return nil
	}
	done := count[imports.New] + count[imports.Grown] + count[imports.Continued]
	verb := "imported"
	if w.dryRun {
		verb = "would be imported"
	}
	text := fmt.Sprintf("%s %s, %d unchanged", humanize.Count(done, "conversation"), verb, count[imports.Same])
	if failed > 0 {
		text += fmt.Sprintf(", %d could not be imported", failed)
	}
	_, err := fmt.Fprintln(w.Err, text)
	return err
}

// progressWidth is the room that a line of progress takes.
const progressWidth = 40

// progress says on a terminal how far it is; with n = 0 it removes that line.
func (w *work) progress(i, n int) {
	if w.asJSON || !cli.Terminal(w.RawErr) {
		return
	}
	text := ""
	if n > 0 {
		text = fmt.Sprintf("importing %d of %d", i+1, n)
	}
	fmt.Fprintf(w.RawErr, "\r%-*s\r%s", progressWidth, "", text)
}

var errIncomplete = errors.New("not everything could be imported")

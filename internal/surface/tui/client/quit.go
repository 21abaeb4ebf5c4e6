package client

import (
	"fmt"
	"slices"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// LastLines are printed when the program has ended: what became of the turn that ran then, which may continue in
// another process, and how to come back.
func (c *Client) LastLines(ran, continues bool) (lines []string) {
	t, id := c.Conv.Transcript, c.Last()
	switch {
	case id == "":
		return nil
	case t.Active && continues:
		return []string{fmt.Sprintf("turn %d continues in another process", t.Turn), "to come back: fermata attach " + string(id)}
	case ran:
		lines = append(lines, c.Conv.lastLine())
	}
	if n := len(t.Inputs); n > 0 {
		lines = append(lines, humanize.Count(n, "message")+" not delivered: in the composer when you resume")
	}
	return append(lines, "to resume: fermata resume "+string(id))
}

// lastLine says what became of the turn that ran.
func (t *Conversation) lastLine() string {
	turn := t.Transcript.Turn
	switch {
	case len(t.Approvals) > 0:
		return fmt.Sprintf("turn %d is waiting for approval; you will be asked again when you resume", turn)
	case t.Transcript.Active:
		return fmt.Sprintf("turn %d was being interrupted; details are shown when you resume", turn)
	}
	for _, it := range slices.Backward(t.Transcript.Items) {
		if it.Kind == transcript.End && it.Turn == turn {
			return it.Text
		}
	}
	return fmt.Sprintf("turn %d completed", turn)
}

// DescribeMove says which process has the conversation open now.
func DescribeMove(m app.Move) string {
	how, who := "has quit", "this terminal has"
	if m.Died {
		how = "ended unexpectedly"
	}
	if m.To != 0 {
		who = fmt.Sprintf("process %d has", m.To)
	}
	return fmt.Sprintf("process %d %s; %s taken over", m.From, how, who)
}

// HasPlan reports whether the last turn was one in plan mode and has completed, so that there is
// a plan to accept.
func (c *Client) HasPlan() bool { return c.Settings().Plan && !c.Busy() && c.Conv.Proposed }

// PlanLabel says whether it is plan mode; empty if it is not.
func (c *Client) PlanLabel() string {
	on, active := c.Settings().Plan, c.Conv.Transcript.Active
	switch {
	case active && on && !c.Conv.Planning:
		return "plan mode from the next turn"
	case active && c.Conv.Planning || !active && on:
		return "plan mode: read-only until you accept a plan"
	}
	return ""
}

package tui

import (
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/tool/mcp/form"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A question is a dialog and what its answer leads to.
type question struct {
	*dialog.Dialog
	done func(dialog.Answer) tea.Cmd

	item *transcript.Item  // of an approval
	plan bool              // it asks whether a plan is accepted
	turn p.TurnID          // of a question that means nothing when the turn has ended
	mcp  client.QuestionID // of an MCP server
}

// guardTime is how long no key must have been pressed before a dialog takes keys.
const guardTime = 400 * time.Millisecond

// confirm is a question of this program. chosen is called with the id of the choice, empty after Esc.
func (m *model) confirm(c dialog.Confirm, chosen func(id string) tea.Cmd) *question {
	return &question{Dialog: dialog.NewConfirm(m.theme, c), done: func(a dialog.Answer) tea.Cmd { return chosen(a.Choice) }}
}

// askGuarded asks a question that the user has not asked for, and may not have noticed.
func (m *model) askGuarded(q *question) tea.Cmd {
	m.dialog = q
	return q.Guard(guardTime)
}

// askNext opens the dialog of the next approval or question, and closes one that was answered
// elsewhere.
func (m *model) askNext() tea.Cmd {
	t := m.conv
	if !t.CaughtUp() {
		return nil
	}
	cmds := []tea.Cmd{m.closeAnswered()}
	if m.aside = m.aside && len(t.Approvals) > 0 && strings.HasPrefix(m.comp.Text(), "/"); m.aside {
		return tea.Batch(cmds...)
	}
	if it := t.NextApproval(); it != nil && m.dialog == nil {
		cmds = append(cmds, m.askApproval(it))
	}
	cmds = append(cmds, m.askMCP())
	if m.dialog != nil && m.dialog.item != nil {
		m.dialog.SetPosition(1+slices.Index(t.Approvals, m.dialog.item), len(t.Approvals))
	}
	return tea.Batch(cmds...)
}

// closeAnswered closes a dialog that needs no answer any more.
func (m *model) closeAnswered() tea.Cmd {
	t := m.conv
	switch d := m.dialog; {
	case d == nil:
	case d.item != nil && !slices.Contains(t.Approvals, d.item):
		m.dialog = nil
		if !t.HasAnswered(d.item) && t.Transcript.Active && !m.Stopping() {
			return m.Hint(theme.Accent, "that was answered elsewhere")
		}
	case d.turn != 0 && (!t.Transcript.Active || t.Transcript.Turn != d.turn):
		m.dialog = nil
		return m.Hint(theme.Accent, "turn %d has ended", d.turn)
	}
	return nil
}

func (m *model) askApproval(it *transcript.Item) tea.Cmd {
	req, dir := *it.Approval, m.Settings().Cwd
	ask := dialog.Approval{Request: req, Changes: it.Changes, Diff: dialog.DiffOf(it.Changes, dir), Dir: dir}
	var remember func() error
	ask.Offer, remember = m.do.OfferPermission(&req)
	return m.askGuarded(&question{
		item: it, Dialog: dialog.NewApproval(m.theme, ask),
		done: func(a dialog.Answer) tea.Cmd {
			if !a.Always {
				remember = nil
			}
			return m.Approve(p.Approve{Call: req.Call, Decision: a.Decision, Message: a.Message}, remember)
		},
	})
}

// askMCP opens the dialog of a question of an MCP server, and closes one that is over.
func (m *model) askMCP() tea.Cmd {
	q := m.conv.Question()
	if d := m.dialog; d != nil && d.mcp != (client.QuestionID{}) && (q == nil || d.mcp != client.QuestionIDOf(q)) {
		m.dialog = nil
	}
	if q == nil || client.QuestionIDOf(q) == m.conv.PutOff || m.dialog != nil {
		return nil
	}
	ask := m.confirm(dialog.Question(q), func(choice string) tea.Cmd {
		switch choice {
		case dialog.AcceptQuestion:
			return m.AnswerQuestion(q, p.ElicitationAccept, nil)
		case dialog.DeclineQuestion:
			return m.AnswerQuestion(q, p.ElicitationDecline, nil)
		}
		m.conv.PutOff = client.QuestionIDOf(q)
		if choice == dialog.TypeAnswer && m.comp.Empty() {
			m.comp.SetText(dialog.AnswerCommand(q))
			return nil
		}
		return m.Hint(theme.Accent, "/answer answers the question of %s", q.Server)
	})
	ask.mcp = client.QuestionIDOf(q)
	return m.askGuarded(ask)
}

// answerMCP is /answer.
func (m *model) answerMCP(text string) tea.Cmd {
	q := m.conv.Question()
	if q == nil {
		return m.ShowError(errors.New("no MCP server asks anything"))
	}
	content, err := form.Read(form.Fields(q.Schema), text)
	if err != nil {
		return m.ShowError(err)
	}
	return m.AnswerQuestion(q, p.ElicitationAccept, content)
}

// planned reports whether the last turn was one in plan mode and has completed, so that there is
// something to accept.
func (m *model) planned() bool { return m.Settings().Plan && !m.Busy() && m.conv.Proposed }

// plan is /plan.
func (m *model) plan(args string) tea.Cmd {
	if m.planned() {
		return m.do.Plan(args, m.askAboutPlan)
	}
	return m.do.Plan(args, nil)
}

// askAboutPlan asks whether the plan is accepted.
func (m *model) askAboutPlan() tea.Cmd {
	ask := m.confirm(m.do.PlanQuestion(), m.do.AnswerPlan)
	ask.plan = true
	return m.askGuarded(ask)
}

// endPlanDialog closes the question about a plan that was answered elsewhere.
func (m *model) endPlanDialog() {
	if m.dialog != nil && m.dialog.plan && !m.planned() {
		m.dialog = nil
	}
}

// planLabel says in the edge of the box whether it is plan mode.
func (m *model) planLabel() string {
	on, active := m.Settings().Plan, m.conv.Transcript.Active
	switch {
	case active && on && !m.conv.Planning:
		return "plan mode from the next turn"
	case active && m.conv.Planning || !active && on:
		return "plan mode: read-only until you accept a plan"
	}
	return ""
}

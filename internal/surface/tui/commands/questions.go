package commands

import (
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/tool/mcp/form"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Question is a dialog and what its answer leads to.
type Question struct {
	*dialog.Dialog
	Done func(dialog.Answer) tea.Cmd // called with the answer

	Item *transcript.Item // of an approval
	Plan bool             // it asks whether a plan is accepted
	Turn p.TurnID         // of a question that means nothing when the turn has ended

	mcp client.QuestionID // of an MCP server
}

// Questions are what the user is asked, one at a time, in place of the composer: approvals, questions of MCP servers, and
// those of this program.
type Questions struct {
	Set
	Client   *client.Client     // whose conversation asks
	Composer *composer.Composer // whose place a dialog takes

	Open  *Question // nil if there is none
	aside bool      // the approval makes room for a command after a slash
}

// guardTime is how long no key must have been pressed before a dialog takes keys.
const guardTime = 400 * time.Millisecond

// Confirm asks a question of this program. chosen is called with the id of the choice, empty after Esc.
func (s *Questions) Confirm(c dialog.Confirm, chosen func(id string) tea.Cmd) {
	s.Open = &Question{Dialog: dialog.NewConfirm(s.Theme(), c), Done: func(a dialog.Answer) tea.Cmd { return chosen(a.Choice) }}
}

// ConfirmGuarded is Confirm for what the user has not asked for, and may not have noticed.
func (s *Questions) ConfirmGuarded(c dialog.Confirm, chosen func(id string) tea.Cmd) tea.Cmd {
	s.Confirm(c, chosen)
	return s.Open.Guard(guardTime)
}

// Take passes a message to the open dialog, and does what its answer leads to.
func (s *Questions) Take(msg tea.Msg) (dialog.Answer, tea.Cmd) {
	d := s.Open
	if d == nil {
		return dialog.Answer{}, nil
	}
	a, cmd := d.Update(msg)
	if a.Done {
		s.Open = nil
		cmd = tea.Batch(cmd, d.Done(a))
	}
	return a, cmd
}

// StepAside lets an approval wait while a command after a slash is typed. Esc
// goes back to it.
func (s *Questions) StepAside(key tea.KeyPressMsg) (used bool) {
	switch d := s.Open; {
	case s.aside && key.String() == "esc":
		s.Composer.SetText("")
		return true
	case d != nil && d.Item != nil && key.String() == "/" && s.Composer.Empty() && d.Listening():
		s.Open, s.aside = nil, true
	}
	return false
}

// AsksPlan reports whether the open question is whether a plan is accepted.
func (s *Questions) AsksPlan() bool { return s.Open != nil && s.Open.Plan }

// Next opens the dialog of the next approval or question, and closes one that was answered
// elsewhere.
func (s *Questions) Next() tea.Cmd {
	t := &s.Client.Conv
	if s.AsksPlan() && !s.Client.HasPlan() {
		s.Open = nil
	}
	if !t.CaughtUp() {
		return nil
	}
	cmds := []tea.Cmd{s.closeAnswered()}
	if s.aside = s.aside && len(t.Approvals) > 0 && strings.HasPrefix(s.Composer.Text(), "/"); s.aside {
		return tea.Batch(cmds...)
	}
	if it := t.NextApproval(); it != nil && s.Open == nil {
		cmds = append(cmds, s.askApproval(it))
	}
	cmds = append(cmds, s.askMCP())
	if s.Open != nil && s.Open.Item != nil {
		s.Open.SetPosition(1+slices.Index(t.Approvals, s.Open.Item), len(t.Approvals))
	}
	return tea.Batch(cmds...)
}

// closeAnswered closes a dialog that needs no answer any more.
func (s *Questions) closeAnswered() tea.Cmd {
	t := &s.Client.Conv
	switch d := s.Open; {
	case d == nil:
	case d.Item != nil && !slices.Contains(t.Approvals, d.Item):
		s.Open = nil
		if !t.HasAnswered(d.Item) && t.Transcript.Active && !s.Client.Stopping() {
			return s.Hint(theme.Accent, "that was answered elsewhere")
		}
	case d.Turn != 0 && (!t.Transcript.Active || t.Transcript.Turn != d.Turn):
		s.Open = nil
		return s.Hint(theme.Accent, "turn %d has ended", d.Turn)
	}
	return nil
}

// Reloaded finds the item of an open approval in another transcript of the same conversation.
func (s *Questions) Reloaded() {
	if s.Open == nil || s.Open.Item == nil {
		return
	}
	for _, it := range s.Client.Conv.Approvals {
		if it.ID == s.Open.Item.ID {
			s.Open.Item = it
		}
	}
}

func (s *Questions) askApproval(it *transcript.Item) tea.Cmd {
	req, dir := *it.Approval, s.Settings().Cwd
	ask := dialog.Approval{Request: req, Changes: it.Changes, Diff: dialog.DiffOf(it.Changes, dir), Dir: dir}
	var remember func() error
	ask.Offer, remember = s.OfferPermission(&req)
	s.Open = &Question{Item: it, Dialog: dialog.NewApproval(s.Theme(), ask), Done: func(a dialog.Answer) tea.Cmd {
		if !a.Always {
			remember = nil
		}
		return s.Client.Approve(p.Approve{Call: req.Call, Decision: a.Decision, Message: a.Message}, remember)
	}}
	return s.Open.Guard(guardTime)
}

// askMCP opens the dialog of a question of an MCP server, and closes one that is over.
func (s *Questions) askMCP() tea.Cmd {
	q := s.Client.Conv.Question()
	if d := s.Open; d != nil && d.mcp != (client.QuestionID{}) && (q == nil || d.mcp != client.QuestionIDOf(q)) {
		s.Open = nil
	}
	if q == nil || client.QuestionIDOf(q) == s.Client.Conv.PutOff || s.Open != nil {
		return nil
	}
	cmd := s.ConfirmGuarded(dialog.Question(q), func(choice string) tea.Cmd {
		switch choice {
		case dialog.AcceptQuestion:
			return s.Client.AnswerQuestion(q, p.ElicitationAccept, nil)
		case dialog.DeclineQuestion:
			return s.Client.AnswerQuestion(q, p.ElicitationDecline, nil)
		}
		s.Client.Conv.PutOff = client.QuestionIDOf(q)
		if choice == dialog.TypeAnswer && s.Composer.Empty() {
			s.Composer.SetText(dialog.AnswerCommand(q))
			return nil
		}
		return s.Hint(theme.Accent, "/answer answers the question of %s", q.Server)
	})
	s.Open.mcp = client.QuestionIDOf(q)
	return cmd
}

// AnswerMCP answers the question of an MCP server with what was typed.
func (s *Questions) AnswerMCP(text string) tea.Cmd {
	q := s.Client.Conv.Question()
	if q == nil {
		return s.ShowError(errors.New("no MCP server asks anything"))
	}
	content, err := form.Read(form.Fields(q.Schema), text)
	if err != nil {
		return s.ShowError(err)
	}
	return s.Client.AnswerQuestion(q, p.ElicitationAccept, content)
}

// AskPlan asks whether the plan is accepted.
func (s *Questions) AskPlan() tea.Cmd {
	cmd := s.ConfirmGuarded(s.planQuestion(), s.answerPlan)
	s.Open.Plan = true
	return cmd
}

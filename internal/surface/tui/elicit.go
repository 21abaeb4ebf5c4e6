package tui

import (
	"errors"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/tool/mcp/form"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// askQuestion opens the dialog of a question that an MCP server asks, and closes one that
// is over.
func (m *model) askQuestion() tea.Cmd {
	q := m.question()
	if d := m.dialog; d != nil && d.question != (dialog.QuestionID{}) && (q == nil || d.question != dialog.QuestionIDOf(q)) {
		m.dialog = nil
	}
	if q == nil || dialog.QuestionIDOf(q) == m.conv.putOff || m.dialog != nil {
		return nil
	}
	m.dialog = &asking{
		question: dialog.QuestionIDOf(q),
		Dialog:   dialog.NewConfirm(m.theme, dialog.Question(q)),
		done: func(a dialog.Answer) tea.Cmd {
			switch a.Choice {
			case dialog.AcceptQuestion:
				return m.answerQuestion(q, p.ElicitationAccept, nil)
			case dialog.DeclineQuestion:
				return m.answerQuestion(q, p.ElicitationDecline, nil)
			}
			m.conv.putOff = dialog.QuestionIDOf(q)
			if a.Choice == dialog.TypeAnswer && m.comp.Empty() {
				m.comp.SetText(dialog.AnswerCommand(q))
				return nil
			}
			return m.Hint(theme.Accent, "/answer answers the question of %s", q.Server)
		},
	}
	return m.dialog.Guard(guardTime)
}

// showQuestions notices what MCP servers ask during a call.
func (t *conversation) showQuestions(it *transcript.Item) {
	i := slices.Index(t.questions, it)
	switch {
	case len(it.Questions) > 0 && i < 0:
		t.questions = append(t.questions, it)
	case len(it.Questions) == 0 && i >= 0:
		t.questions = slices.Delete(t.questions, i, i+1)
	}
}

// question is the first one that is open.
func (m *model) question() *p.ElicitationRequested {
	for _, it := range m.conv.questions {
		for _, q := range it.Questions {
			if !m.conv.answeredQuestions[dialog.QuestionIDOf(q)] {
				return q
			}
		}
	}
	return nil
}

// showServers is /mcp.
func (m *model) showServers(string) tea.Cmd {
	text := ""
	if m.o.MCP != nil {
		text = m.o.MCP()
	}
	if text == "" {
		return m.Hint(theme.Accent, "no MCP server is used; see fermata mcp add --help")
	}
	m.page("MCP servers", safetext.Show(text))
	return nil
}

// answer is /answer.
func (m *model) answer(text string) tea.Cmd {
	q := m.question()
	if q == nil {
		return m.ShowError(errors.New("no MCP server asks anything"))
	}
	content, err := form.Read(form.Fields(q.Schema), text)
	if err != nil {
		return m.ShowError(err)
	}
	return m.answerQuestion(q, p.ElicitationAccept, content)
}

func (m *model) answerQuestion(q *p.ElicitationRequested, action p.ElicitationAction, content []byte) tea.Cmd {
	answered := m.conv.answeredQuestions // of this conversation, whichever is on the screen later
	answered[dialog.QuestionIDOf(q)] = true
	op := client.NewOp(p.AnswerElicitation{Call: q.Call, Number: q.Number, Action: action, Content: content})
	op.Then = func(_ p.Receipt, err error) tea.Cmd {
		switch {
		case errors.Is(err, engine.ErrNoElicitation):
			return m.Hint(theme.Accent, "that was answered elsewhere")
		case err != nil:
			delete(answered, dialog.QuestionIDOf(q)) // ask again
			return m.ShowError(err)
		}
		return nil
	}
	return m.send(op)
}

package tui

import (
	"errors"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/outbox"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/tool/mcp/form"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A questionID names a question of an MCP server.
type questionID struct {
	call   p.CallID
	number int
}

func idOf(q *p.ElicitationRequested) questionID { return questionID{q.Call, q.Number} }

// askQuestion opens the dialog of a question that an MCP server asks, and closes one that
// is over.
func (m *model) askQuestion() tea.Cmd {
	q := m.question()
	if d := m.dialog; d != nil && d.question != (questionID{}) && (q == nil || d.question != idOf(q)) {
		m.dialog = nil
	}
	if q == nil || idOf(q) == m.conv.putOff || m.dialog != nil {
		return nil
	}
	fields := form.Fields(q.Schema)
	body := []string{safetext.Show(q.Message)}
	for _, f := range fields {
		body = append(body, safetext.ShowLine(f.String()))
	}
	var choices []dialog.Choice
	if q.URL != "" {
		body = append(body, "Open this page and answer there: "+safetext.ShowLine(q.URL))
		choices = append(choices, dialog.Choice{ID: "accept", Key: "y", Label: "I have answered there"})
	} else if form.Complete(fields) {
		choices = append(choices, dialog.Choice{ID: "accept", Key: "y", Label: "yes"})
	}
	if len(fields) > 0 {
		choices = append(choices, dialog.Choice{ID: "type", Key: "e", Label: "type an answer"})
	}
	choices = append(choices, dialog.Choice{ID: "decline", Key: "n", Label: "no"})
	m.dialog = &asking{
		question: idOf(q),
		Model:    dialog.NewConfirm(m.theme, dialog.Confirm{Title: "The MCP server " + q.Server + " asks", Body: body, Choices: choices}),
		done: func(a dialog.Action) tea.Cmd {
			switch a.Choice {
			case "accept":
				return m.answerQuestion(q, p.ElicitationAccept, nil)
			case "decline":
				return m.answerQuestion(q, p.ElicitationDecline, nil)
			}
			m.conv.putOff = idOf(q)
			if a.Choice == "type" {
				if m.comp.Empty() {
					m.comp.SetText("/answer " + form.Template(fields))
					return nil
				}
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
			if !m.conv.answeredQuestions[idOf(q)] {
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
	m.conv.answeredQuestions[idOf(q)] = true
	op := outbox.For(p.AnswerElicitation{Call: q.Call, Number: q.Number, Action: action, Content: content})
	op.Then = func(_ p.Receipt, err error) tea.Cmd {
		switch {
		case errors.Is(err, engine.ErrNoElicitation):
			return m.Hint(theme.Accent, "that was answered elsewhere")
		case err != nil:
			delete(m.conv.answeredQuestions, idOf(q)) // ask again
			return m.ShowError(err)
		}
		return nil
	}
	return m.send(op)
}

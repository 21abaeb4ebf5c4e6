package dialog

import (
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/tool/mcp/form"
	p "github.com/fermata-agent/fermata/protocol"
)

// What a person can choose.
const (
	AcceptQuestion  = "accept"
	DeclineQuestion = "decline"
	TypeAnswer      = "type" // an answer, after /answer
)

// Question is the dialog that asks it.
func Question(q *p.ElicitationRequested) Confirm {
	fields := form.Fields(q.Schema)
	body := []string{safetext.Show(q.Message)}
	for _, f := range fields {
		body = append(body, safetext.ShowLine(f.String()))
	}
	var choices []Choice
	if q.URL != "" {
		body = append(body, "Open this page and answer there: "+safetext.ShowLine(q.URL))
		choices = append(choices, Choice{ID: AcceptQuestion, Key: "y", Label: "I have answered there"})
	} else if form.Complete(fields) {
		choices = append(choices, Choice{ID: AcceptQuestion, Key: "y", Label: "yes"})
	}
	if len(fields) > 0 {
		choices = append(choices, Choice{ID: TypeAnswer, Key: "e", Label: "type an answer"})
	}
	choices = append(choices, Choice{ID: DeclineQuestion, Key: "n", Label: "no"})
	return Confirm{Title: "The MCP server " + q.Server + " asks", Body: body, Choices: choices}
}

// AnswerCommand is what a person completes to answer a question.
func AnswerCommand(q *p.ElicitationRequested) string {
	return "/answer " + form.Template(form.Fields(q.Schema))
}

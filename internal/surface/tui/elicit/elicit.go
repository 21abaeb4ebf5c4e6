// Package elicit is what the terminal UI knows of a question of an MCP server.
package elicit

import (
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/tool/mcp/form"
	p "github.com/fermata-agent/fermata/protocol"
)

// An ID names a question in its conversation. The zero value names none.
type ID struct {
	call   p.CallID
	number int
}

// IDOf is the name of a question.
func IDOf(q *p.ElicitationRequested) ID { return ID{q.Call, q.Number} }

// What a person can choose.
const (
	Accept  = "accept"
	Decline = "decline"
	Type    = "type" // an answer, after /answer
)

// Question is the dialog that asks it.
func Question(q *p.ElicitationRequested) dialog.Confirm {
	fields := form.Fields(q.Schema)
	body := []string{safetext.Show(q.Message)}
	for _, f := range fields {
		body = append(body, safetext.ShowLine(f.String()))
	}
	var choices []dialog.Choice
	if q.URL != "" {
		body = append(body, "Open this page and answer there: "+safetext.ShowLine(q.URL))
		choices = append(choices, dialog.Choice{ID: Accept, Key: "y", Label: "I have answered there"})
	} else if form.Complete(fields) {
		choices = append(choices, dialog.Choice{ID: Accept, Key: "y", Label: "yes"})
	}
	if len(fields) > 0 {
		choices = append(choices, dialog.Choice{ID: Type, Key: "e", Label: "type an answer"})
	}
	choices = append(choices, dialog.Choice{ID: Decline, Key: "n", Label: "no"})
	return dialog.Confirm{Title: "The MCP server " + q.Server + " asks", Body: body, Choices: choices}
}

// Command is what a person completes to answer a question.
func Command(q *p.ElicitationRequested) string {
	return "/answer " + form.Template(form.Fields(q.Schema))
}

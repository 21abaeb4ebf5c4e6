// Package dialog is what a person has to choose or answer: an approval that a call
// waits for, a question of the application or of an MCP server, each in the
// composer's place, or a row of a list that fills the screen. A dialog never answers by accident: what would stop the turn takes a key
// or two presses of Esc, and Guard keeps it from taking the letters of
// a sentence that is being typed. What a user has to judge is shown as it is: control
// characters and characters that cannot be seen are made visible.
//
// It does no I/O. Start reading at Dialog.Update and Picker.Update.
package dialog

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/edit"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// An Approval is what a person is asked to allow.
type Approval struct {
	Request p.ApprovalRequested // what is asked for
	Changes []transcript.Change // of a patch
	Diff    string              // of a patch, as a unified diff; may be empty
	Dir     string              // paths below it are shown relative to it
	Offer   string              // what can be allowed for good, in words; may be empty
}

// A Confirm is a question of the application's own.
type Confirm struct {
	Title   string   // in the upper edge
	Body    []string // paragraphs
	Diff    string   // shown below the body, scrollable; may be empty
	Choices []Choice // in the order in which they are shown
	Default int      // the choice that Enter takes
}

// A Choice is one answer to a Confirm.
type Choice struct {
	ID    string // what Answer.Choice is
	Key   string // as tea.KeyPressMsg.String gives it, such as "y"
	Label string // what it does
}

// An Answer is what a message to a dialog led to.
type Answer struct {
	Used bool // false: the dialog has no use for the message, the application may
	Done bool // the dialog has its answer and can go

	// First is a letter that was held back and is no answer: the application takes it before
	// the message. Its Code is 0 if there is none.
	First tea.KeyPressMsg

	Decision p.Decision // of an approval: approved, approved_for_session, denied or abort
	Always   bool       // with approved: what was offered is allowed for good
	Message  string     // the person's words to the model with denied; may be empty
	Choice   string     // of a confirm: the choice's ID, empty after Esc
}

// A Dialog is open. It is used by one goroutine.
type Dialog struct {
	theme    *theme.Theme
	approval bool
	title    string
	place    string // "1 of 3"
	body     body
	facts    []string // short lines between the body and the choices
	choices  []Choice
	list     draw.List // the choice that Enter takes
	writing  bool      // words to the model
	words    edit.Buffer
	escaped  bool // Esc was the last key
	guard    guard
}

// always is the choice that allows what was offered for good.
const always = "always"

// NewApproval returns the dialog of an approval.
func NewApproval(t *theme.Theme, a Approval) *Dialog {
	m := &Dialog{theme: t, approval: true, title: "Allow this command?", choices: []Choice{
		{string(p.Approved), "y", "yes"},
		{string(p.ApprovedForSession), "a", "yes, for this session"},
		{string(p.Denied), "n", "no, and say why"},
		{string(p.Abort), "s", "stop the turn"},
	}}
	switch a.Request.Kind {
	case p.ApprovePatch:
		m.title = "Allow these changes?"
	case p.ApproveTool:
		m.title = "Allow this tool call?"
		m.choices[1].Label = "yes, this tool for this session"
	}
	if a.Offer != "" {
		m.choices = slices.Insert(m.choices, 2, Choice{always, "p", "yes, and " + a.Offer})
	}
	m.body = approvalBody(t, a)
	if a.Request.Cwd != "" {
		m.facts = append(m.facts, "in "+a.Request.Cwd)
	}
	if a.Request.Reason != "" {
		m.facts = append(m.facts, "why: "+a.Request.Reason)
	}
	return m
}

// NewConfirm returns the dialog of a question.
func NewConfirm(t *theme.Theme, c Confirm) *Dialog {
	m := &Dialog{theme: t, title: safetext.ShowLine(c.Title), choices: c.Choices}
	m.list.Move(c.Default, len(c.Choices))
	m.body = confirmBody(t, c)
	return m
}

// SetPosition says that this is the nth of total open approvals, from 1.
func (m *Dialog) SetPosition(n, total int) {
	m.place = ""
	if total > 1 {
		m.place = fmt.Sprintf("%d of %d", n, total)
	}
}

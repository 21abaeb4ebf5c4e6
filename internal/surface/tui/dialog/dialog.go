// Package dialog is what stands in the composer's place when a person has to
// choose: an approval that a call waits for, or a question of the application's
// own. A dialog never answers by accident: what would stop the turn takes a key
// of its own or two presses of Esc.
package dialog

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// An Approval is what a person is asked to allow.
type Approval struct {
	Request p.ApprovalRequested
	Changes []transcript.Change // of a patch
	Diff    string              // of a patch, as a unified diff; may be empty
	Dir     string              // paths below it are shown relative to it
}

// A Confirm is a question of the application's own.
type Confirm struct {
	Title   string
	Body    []string // paragraphs
	Diff    string   // shown below the body, scrollable; may be empty
	Choices []Choice
	Default int // the choice that Enter takes
}

// A Choice is one answer to a Confirm.
type Choice struct {
	ID    string
	Key   string // as tea.KeyPressMsg.String gives it, such as "y"
	Label string
}

// An Action is what a message to a dialog led to.
type Action struct {
	Used bool // false: the dialog has no use for the message, the application may
	Done bool // the dialog has its answer and can go

	Decision p.Decision // of an approval: approved, approved_for_session, denied or abort
	Message  string     // the person's words to the model with denied; may be empty
	Choice   string     // of a confirm: the choice's ID, empty after Esc
}

// A Model is an open dialog. It is used by one goroutine.
type Model struct {
	theme *theme.Theme
}

// NewApproval returns the dialog of an approval.
func NewApproval(t *theme.Theme, a Approval) *Model { return &Model{theme: t} }

// NewConfirm returns the dialog of a question.
func NewConfirm(t *theme.Theme, c Confirm) *Model { return &Model{theme: t} }

// SetPosition says that this is the nth of total open approvals, from 1.
func (m *Model) SetPosition(n, total int) {}

// Guard leaves keys to the application (Action.Used is false) until none came
// for quiet. It keeps the letters of somebody who is just typing from answering
// a dialog that opened under their hands.
func (m *Model) Guard(quiet time.Duration) tea.Cmd { return nil }

// Update takes a key, a paste, the mouse wheel, or an answer to a command of its own.
func (m *Model) Update(msg tea.Msg) (Action, tea.Cmd) { return Action{}, nil }

// View returns the dialog, at most maxHeight lines of at most width columns,
// and the cursor while a text is written: else nil.
func (m *Model) View(width, maxHeight int) ([]string, *tea.Cursor) { return []string{""}, nil }

package commands

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Host is the program. Its methods are called from Update only.
type Host interface {
	Context() context.Context // ends with the program
	Engine() engine.Engine
	Theme() *theme.Theme

	// Conversation is the one on the screen. Its id is empty before its first message.
	Conversation() (p.ConversationID, *transcript.Transcript)
	// Settings are those in force, or those that the next conversation begins with.
	Settings() p.Settings
	// Configure changes the settings of the turns to come, and shows a text when that is done.
	Configure(change p.Overrides, done string) tea.Cmd
	// Busy reports whether a turn runs, or a message that starts one is on its way.
	Busy() bool

	// Pick shows a list in place of everything else. chosen is called with the id of the row.
	Pick(list *dialog.Picker, chosen func(id string) tea.Cmd)
	// ShowPage shows a text in place of everything else.
	ShowPage(*draw.Page)
	// Ask asks a question in place of the composer. chosen is called with the id of the choice, or with
	// an empty one.
	Ask(question dialog.Confirm, chosen func(id string) tea.Cmd)
	// Hint shows a short remark in place of the status line.
	Hint(role theme.Role, format string, args ...any) tea.Cmd
	// ShowError shows an error, with what to do about it.
	ShowError(error) tea.Cmd
	// Return puts texts before what is written in the composer.
	Return(texts ...string)
	// ShortDir is a directory as it is shown: the home directory is ~.
	ShortDir(dir string) string
}

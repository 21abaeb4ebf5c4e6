package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

var _ commands.Host = (*model)(nil)

// Context ends with the program.
func (m *model) Context() context.Context { return m.ctx }

// Engine is that of all conversations.
func (m *model) Engine() engine.Engine { return m.o.Engine }

// Theme is that of everything on the screen.
func (m *model) Theme() *theme.Theme { return m.theme }

// Conversation is the one on the screen.
func (m *model) Conversation() (p.ConversationID, *transcript.Transcript) {
	return m.conv.id, m.conv.tr
}

// Pick shows a list in place of everything else.
func (m *model) Pick(list *dialog.Picker, chosen func(id string) tea.Cmd) {
	m.screen = &pick{Picker: list, done: chosen}
}

// ShowPage shows a text in place of everything else.
func (m *model) ShowPage(s *draw.Page) { m.screen = paper{s} }

// Ask asks a question in place of the composer.
func (m *model) Ask(question dialog.Confirm, chosen func(id string) tea.Cmd) {
	m.screen = nil
	m.dialog = &asking{
		Dialog: dialog.NewConfirm(m.theme, question),
		done:   func(a dialog.Answer) tea.Cmd { return chosen(a.Choice) },
	}
}

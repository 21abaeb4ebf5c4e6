package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/page"
	"github.com/fermata-agent/fermata/internal/surface/tui/picker"
)

// A pick is a picker and what the choice leads to.
type pick struct {
	*picker.Model
	resuming bool // it shows conversations
	done     func(id string) tea.Cmd
}

func (s *pick) update(msg tea.Msg) (tea.Cmd, bool) {
	a, cmd := s.Update(msg)
	if !a.Done {
		return cmd, false
	}
	if a.ID == "" {
		return cmd, true
	}
	return tea.Batch(cmd, s.done(a.ID)), !s.resuming // which stays until the conversation is open
}

func (s *pick) note(text string) { s.SetNote(text) }

func (s *pick) view(width, height int) ([]string, *tea.Cursor) { return s.View(width, height) }

// A paper is a text.
type paper struct{ *page.Page }

func (s paper) update(msg tea.Msg) (tea.Cmd, bool) { return nil, s.Update(msg) }

func (s paper) view(width, height int) ([]string, *tea.Cursor) { return s.View(width, height), nil }

func (s paper) note(text string) { s.SetNote(text) }

// page shows lines of plain text.
func (m *model) page(title, text string) {
	m.screen = paper{page.Text(m.theme, title, text)}
}

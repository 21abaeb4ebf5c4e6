package tui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// A pick is a picker and what the choice leads to.
type pick struct {
	*dialog.Picker
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
type paper struct{ *draw.Page }

func (s paper) update(msg tea.Msg) (tea.Cmd, bool) { return nil, s.Update(msg) }

func (s paper) view(width, height int) ([]string, *tea.Cursor) { return s.View(width, height), nil }

func (s paper) note(text string) { s.SetNote(text) }

// unfold shows the last item that was long, all of it. Inline it is no longer ours to unfold.
func (m *model) unfold() tea.Cmd {
	for _, it := range slices.Backward(m.conv.tr.Items) {
		o := m.cellOptions(m.width)
		if draw.Foldable(it, o) {
			m.screen = paper{draw.NewPage(m.theme, "The last long item", func(width int) []string {
				o := m.cellOptions(width)
				o.Expanded = true
				return draw.Item(it, o)
			})}
			return nil
		}
	}
	return m.Hint(theme.Accent, "nothing is folded")
}

// cellOptions is how items are drawn outside of the window.
func (m *model) cellOptions(width int) draw.Options {
	return draw.Options{Width: width, Theme: m.theme, Now: time.Now(), Dir: m.Settings().Cwd, HideReasoning: m.o.Config != nil && m.o.Config.HideReasoning}
}

// page shows lines of plain text.
func (m *model) page(title, text string) {
	m.screen = paper{draw.NewTextPage(m.theme, title, text)}
}

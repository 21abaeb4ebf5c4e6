package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/picker"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
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

// A pager shows a text.
type pager struct {
	theme *theme.Theme
	title string
	draw  func(width int) []string // the lines, for a width
	lines []string
	width int
	top   int
	room  int
	said  string
}

func (s *pager) note(text string) { s.said = text }

func (s *pager) update(msg tea.Msg) (tea.Cmd, bool) {
	switch msg := msg.(type) {
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			s.top -= wheelLines
		case tea.MouseWheelDown:
			s.top += wheelLines
		}
	case tea.KeyPressMsg:
		switch msg.String() {
		case "esc", "q", "enter":
			return nil, true
		case "up", "k":
			s.top--
		case "down", "j":
			s.top++
		case "pgup", "b":
			s.top -= s.room
		case "pgdown", "space", " ":
			s.top += s.room
		case "home", "g":
			s.top = 0
		case "end", "G":
			s.top = len(s.lines)
		}
	}
	s.clamp()
	return nil, false
}

func (s *pager) clamp() { s.top = max(0, min(s.top, len(s.lines)-s.room)) }

func (s *pager) view(width, height int) ([]string, *tea.Cursor) {
	if width != s.width {
		s.width, s.lines = width, s.draw(width)
	}
	s.room = max(1, height-2)
	s.clamp()
	end := min(len(s.lines), s.top+s.room)
	out := []string{s.theme.Paint(theme.Heading, cut(s.title, width))}
	out = append(out, s.lines[s.top:end]...)
	foot := "Esc goes back"
	if len(s.lines) > s.room {
		foot += fmt.Sprintf(" · lines %d–%d of %d", s.top+1, end, len(s.lines))
	}
	if s.said != "" {
		foot = s.said
	}
	return append(exactly(out, height-1), s.theme.Paint(theme.Dim, cut(foot, width))), nil
}

// page shows lines of plain text.
func (m *model) page(title, text string) {
	m.screen = &pager{theme: m.theme, title: title, draw: func(width int) []string {
		var out []string
		for line := range strings.Lines(text) {
			out = append(out, cut(strings.TrimRight(line, "\n"), width))
		}
		return out
	}}
}

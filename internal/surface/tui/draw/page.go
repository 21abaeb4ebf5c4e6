package draw

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// wheel is how many lines a notch of the mouse wheel is.
const wheel = 3

// A Page shows a text. It is used by one goroutine.
type Page struct {
	theme *theme.Theme
	title string
	draw  func(width int) []string // the lines, for a width
	lines []string
	width int
	top   int
	room  int
	note  string
}

// NewPage returns a page that draws its lines when the width is known.
func NewPage(t *theme.Theme, title string, draw func(width int) []string) *Page {
	return &Page{theme: t, title: title, draw: draw}
}

// NewTextPage returns a page of plain text.
func NewTextPage(t *theme.Theme, title, text string) *Page {
	return NewPage(t, title, func(width int) []string {
		var out []string
		for line := range strings.Lines(safetext.Show(text)) {
			out = append(out, safetext.Cut(strings.TrimRight(line, "\n"), width))
		}
		return out
	})
}

// SetNote shows a word to the person in the last line.
func (s *Page) SetNote(text string) { s.note = text }

// Update takes a key or the mouse wheel, and reports whether the page is to be left.
func (s *Page) Update(msg tea.Msg) (gone bool) {
	switch msg := msg.(type) {
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			s.top -= wheel
		case tea.MouseWheelDown:
			s.top += wheel
		}
	case tea.KeyPressMsg:
		switch msg.String() {
		case "esc", "q", "enter":
			return true
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
	return false
}

func (s *Page) clamp() { s.top = max(0, min(s.top, len(s.lines)-s.room)) }

// View returns exactly height lines of at most width columns.
func (s *Page) View(width, height int) []string {
	if width != s.width {
		s.width, s.lines = width, s.draw(width)
	}
	s.room = max(1, height-2)
	s.clamp()
	end := min(len(s.lines), s.top+s.room)
	out := []string{s.theme.Paint(theme.Heading, safetext.Cut(s.title, width))}
	out = append(out, s.lines[s.top:end]...)
	foot := "Esc goes back"
	if len(s.lines) > s.room {
		foot += fmt.Sprintf(" · lines %d–%d of %d", s.top+1, end, len(s.lines))
	}
	if s.note != "" {
		foot = s.note
	}
	for len(out) < height-1 {
		out = append(out, "")
	}
	return append(out[:max(0, height-1)], s.theme.Paint(theme.Dim, safetext.Cut(foot, width)))
}

package draw

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// A Selection is text of the screen: what scrolls away is no longer selected. The zero value
// selects nothing.
type Selection struct {
	from, to point
	on       bool     // something is selected
	drags    bool     // the button is down
	lines    []string // what the screen showed there, without colours
}

type point struct{ x, y int }

// ordered are the ends of the selection, the upper one first.
func (s *Selection) ordered() (point, point) {
	a, b := s.from, s.to
	if b.y < a.y || b.y == a.y && b.x < a.x {
		a, b = b, a
	}
	return a, b
}

// Mark shows what is selected among the lines of the screen.
func (s *Selection) Mark(lines []string, t *theme.Theme) []string {
	if !s.drags && !s.on {
		return lines
	}
	s.lines = make([]string, len(lines))
	for i, l := range lines {
		s.lines[i] = ansi.Strip(l)
	}
	if !s.on {
		return lines
	}
	for y := range lines {
		if from, to, ok := s.columns(y); ok {
			text := s.lines[y]
			lines[y] = ansi.Cut(text, 0, from) + t.Paint(theme.Selected, ansi.Cut(text, from, to)) + ansi.Cut(text, to, ansi.StringWidth(text))
		}
	}
	return lines
}

// columns are what is selected of a line.
func (s *Selection) columns(y int) (from, to int, ok bool) {
	a, b := s.ordered()
	if y < a.y || y > b.y || y >= len(s.lines) {
		return 0, 0, false
	}
	from, to = 0, ansi.StringWidth(s.lines[y])
	if y == a.y {
		from = min(a.x, to)
	}
	if y == b.y {
		to = min(to, b.x+1)
	}
	return from, to, from < to
}

// Text is what is selected, without the margin.
func (s *Selection) Text(margin int) string {
	a, b := s.ordered()
	var out []string
	for y := a.y; y <= b.y; y++ {
		line := ""
		if from, to, ok := s.columns(y); ok {
			line = ansi.Cut(s.lines[y], max(from, margin), to)
		}
		out = append(out, strings.TrimRight(line, " "))
	}
	return strings.Trim(strings.Join(out, "\n"), "\n")
}

// Mouse takes what the mouse does. It reports whether the button was released, and something is selected.
func (s *Selection) Mouse(msg tea.Msg) bool {
	switch msg := msg.(type) {
	case tea.MouseClickMsg:
		*s = Selection{}
		if msg.Button == tea.MouseLeft {
			*s = beginSelection(msg.X, msg.Y)
		}
	case tea.MouseMotionMsg:
		s.drag(msg.X, msg.Y)
	case tea.MouseReleaseMsg:
		return s.release()
	}
	return false
}

// beginSelection begins at a place, where the button goes down.
func beginSelection(x, y int) Selection {
	return Selection{from: point{x, y}, to: point{x, y}, drags: true}
}

// drag says where the mouse is while the button is down.
func (s *Selection) drag(x, y int) {
	if s.drags {
		s.to = point{x, y}
		s.on = s.to != s.from
	}
}

// release says that the button is up. It reports whether something is selected.
func (s *Selection) release() bool {
	s.drags = false
	return s.on
}

package tui

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// A selection is what is marked with the mouse in the part of the screen that shows the
// conversation. It is text of the screen: what scrolls away is no longer selected.
type selection struct {
	from, to point
	on       bool     // something is selected
	drags    bool     // the button is down
	lines    []string // what the screen showed there, without colours
}

type point struct{ x, y int }

// ordered are the ends of the selection, the upper one first.
func (s *selection) ordered() (point, point) {
	a, b := s.from, s.to
	if b.y < a.y || b.y == a.y && b.x < a.x {
		a, b = b, a
	}
	return a, b
}

// mark shows what is selected among the lines of the screen.
func (s *selection) mark(lines []string, t *theme.Theme) []string {
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
func (s *selection) columns(y int) (from, to int, ok bool) {
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

// text is what is selected, without the margin.
func (s *selection) text(margin int) string {
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

// mouse selects; what is selected is copied when the button is released.
func (m *model) mouse(msg tea.Msg) tea.Cmd {
	if m.screen != nil || !m.takesMouse() {
		return nil
	}
	switch msg := msg.(type) {
	case tea.MouseClickMsg:
		m.sel = selection{}
		if msg.Button == tea.MouseLeft {
			m.sel = selection{from: point{msg.X, msg.Y}, to: point{msg.X, msg.Y}, drags: true}
		}
	case tea.MouseMotionMsg:
		if m.sel.drags {
			m.sel.to = point{msg.X, msg.Y}
			m.sel.on = m.sel.to != m.sel.from
		}
	case tea.MouseReleaseMsg:
		m.sel.drags = false
		if m.sel.on {
			return m.copyText(m.sel.text(m.margin()), "selection")
		}
	}
	return nil
}

// copyText gives a text to the terminal's clipboard.
func (m *model) copyText(text, what string) tea.Cmd {
	if text == "" {
		return nil
	}
	return tea.Batch(tea.Raw(ansi.SetSystemClipboard(text)), m.hintf(theme.OK, "copied the %s (%s)", what, count(len([]rune(text)), "character")))
}

// copyAnswer copies the last answer, or one of its code blocks.
func (m *model) copyAnswer(args string) tea.Cmd {
	items := m.talk.tr.Items
	for i := len(items) - 1; i >= 0; i-- {
		if it := items[i]; it.Kind == transcript.Message && strings.TrimSpace(it.Text) != "" {
			if args == "" {
				return m.copyText(it.Text, "last answer")
			}
			blocks := codeBlocks(it.Text)
			n, err := strconv.Atoi(args)
			if err != nil || n < 1 || n > len(blocks) {
				return m.hintf(theme.Warn, "/copy N: the last answer has %s", count(len(blocks), "code block"))
			}
			return m.copyText(blocks[n-1], fmt.Sprintf("code block %d", n))
		}
	}
	return m.hintf(theme.Accent, "there is no answer to copy yet")
}

// codeBlocks are the fenced blocks of a text.
func codeBlocks(text string) []string {
	var list []string
	var block strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		mark := strings.TrimSpace(line)
		switch {
		case fence == "" && (strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~")):
			fence = mark[:3]
			block.Reset()
		case fence != "" && strings.HasPrefix(mark, fence) && strings.Trim(mark, fence[:1]) == "":
			fence = ""
			list = append(list, block.String())
		case fence != "":
			block.WriteString(line)
		}
	}
	return list
}

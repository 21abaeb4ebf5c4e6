package dialog

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

const (
	minBoxed = 20 // columns; on less, or on fewer than lowBoxed lines, there is no border
	lowBoxed = 6
	roomy    = 14 // lines; on fewer the choices are in a row
)

// foot is the lower part of a dialog: the choices, or the words to the model.
type foot struct {
	lines  []string
	x, y   int // of the cursor
	cursor bool
}

// View returns the dialog, at most maxHeight lines of at most width columns,
// and the cursor while a text is written: else nil.
func (m *Dialog) View(width, maxHeight int) ([]string, *tea.Cursor) {
	maxHeight = max(maxHeight, 1)
	boxed := width >= minBoxed && maxHeight >= lowBoxed
	inner, frame := max(width, 1), 1 // a line for the title
	if boxed {
		inner, frame = width-4, 2
	}
	f := m.foot(inner, maxHeight)
	facts := m.factLines(inner, maxHeight)
	gaps := 0
	if maxHeight >= roomy {
		gaps = 2
		if len(facts) == 0 {
			gaps = 1
		}
	}
	if room := maxHeight - frame - len(f.lines) - gaps - len(facts); room < 2 {
		facts, gaps = nil, 0
	}
	room := maxHeight - frame - len(f.lines) - gaps - len(facts)
	lines := append([]string(nil), m.body.window(inner, max(room, 0))...)
	if gaps > 1 {
		lines = append(lines, "")
	}
	lines = append(lines, facts...)
	if gaps > 0 {
		lines = append(lines, "")
	}
	f.y += len(lines)
	lines = append(lines, f.lines...)

	if boxed {
		lines = m.box(lines, width)
		f.x += 2
	} else {
		lines = append([]string{m.theme.Paint(theme.Heading, m.title)}, lines...)
	}
	f.y++
	return m.finish(lines, f, width, maxHeight)
}

// finish keeps a frame within its bounds: the choices are what stays.
func (m *Dialog) finish(lines []string, f foot, width, maxHeight int) ([]string, *tea.Cursor) {
	if over := len(lines) - maxHeight; over > 0 {
		lines = lines[over:]
		f.y = max(f.y-over, 0)
	}
	for i := range lines {
		lines[i] = safetext.Fit(lines[i], max(width, 0))
	}
	if !f.cursor {
		return lines, nil
	}
	return lines, tea.NewCursor(min(f.x, max(width-1, 0)), f.y)
}

// factLines draws where and why. With little room each fact has one line.
func (m *Dialog) factLines(width, maxHeight int) []string {
	var lines []string
	for _, s := range m.facts {
		s = safetext.Show(s)
		if maxHeight < roomy {
			s = strings.ReplaceAll(s, "\n", " ")
			lines = append(lines, m.theme.Paint(theme.Dim, safetext.Cut(s, width)))
			continue
		}
		all := safetext.Wrap(s, width)
		if len(all) > 3 {
			all = append(all[:2], safetext.Cut(strings.Join(all[2:], " "), width))
		}
		for _, l := range all {
			lines = append(lines, m.theme.Paint(theme.Dim, l))
		}
	}
	return lines
}

func (m *Dialog) foot(width, maxHeight int) foot {
	switch {
	case m.writing:
		return m.wordsFoot(width, maxHeight)
	case maxHeight >= roomy:
		return foot{lines: m.column(width)}
	}
	return foot{lines: m.row(width)}
}

// wordsFoot draws the text to the model.
func (m *Dialog) wordsFoot(width, maxHeight int) foot {
	head := "No. What should it do instead?"
	if maxHeight < lowBoxed {
		head = ""
	}
	m.words.SetWidth(width - 2)
	fr := m.words.View(max(min(4, maxHeight/3), 1), func(s string) string { return s })
	f := foot{x: fr.X + 2, y: fr.Y, cursor: true}
	if head != "" {
		f.lines = append(f.lines, m.theme.Paint(theme.Bold, safetext.Cut(head, width)))
		f.y++
	}
	for i, r := range fr.Rows {
		mark := "  "
		if i == 0 && !fr.Above {
			mark = m.theme.Paint(theme.Accent, "› ")
		}
		f.lines = append(f.lines, mark+r)
	}
	return f
}

// column draws the choices one below the other.
func (m *Dialog) column(width int) []string {
	lines := make([]string, 0, len(m.choices))
	for i, c := range m.choices {
		text := fmt.Sprintf("%s  %s", c.Key, safetext.ShowLine(c.Label))
		if i == m.list.At {
			text = safetext.Cut("› "+text+" ", width)
			lines = append(lines, m.theme.Paint(theme.Selected, text))
			continue
		}
		lines = append(lines, safetext.Cut("  "+text, width))
	}
	return lines
}

// row draws the choices side by side, on as many lines as they need.
func (m *Dialog) row(width int) []string {
	var lines []string
	line, col := "", 0
	for i, c := range m.choices {
		label := safetext.ShowLine(c.Label)
		if m.approval {
			label = short(c)
		}
		text := " " + c.Key + " " + label + " "
		if i == m.list.At {
			text = "›" + text[1:]
		}
		text = safetext.Cut(text, width)
		w := safetext.Width(text)
		if col > 0 && col+1+w > width {
			lines = append(lines, line)
			line, col = "", 0
		}
		if col > 0 {
			line += " "
			col++
		}
		if i == m.list.At {
			text = m.theme.Paint(theme.Selected, text)
		}
		line += text
		col += w
	}
	return append(lines, line)
}

// short is the label of an approval's choice in one word.
func short(c Choice) string {
	switch c.Key {
	case "a":
		return "session"
	case "s":
		return "stop"
	}
	label, _, _ := strings.Cut(c.Label, ",")
	return label
}

// box draws the border: the title and the place above, the keys below.
func (m *Dialog) box(rows []string, width int) []string {
	side := m.theme.Paint(theme.Accent, "│")
	lines := make([]string, 0, len(rows)+2)
	lines = append(lines, m.edge("╭", "╮", m.title, m.place, width, theme.Heading))
	for _, r := range rows {
		lines = append(lines, side+" "+r+strings.Repeat(" ", max(width-4-safetext.Width(r), 0))+" "+side)
	}
	return append(lines, m.edge("╰", "╯", m.hint(), m.scrolled(), width, theme.Dim))
}

func (m *Dialog) edge(from, to, left, right string, width int, words theme.Role) string {
	room := width - 4
	if right != "" {
		right = " " + right + " "
		room -= safetext.Width(right)
	}
	if left != "" {
		left = " " + safetext.Cut(safetext.ShowLine(left), max(room-2, 0)) + " "
		room -= safetext.Width(left)
	}
	line := func(s string) string { return m.theme.Paint(theme.Accent, s) }
	return line(from+"─") + m.theme.Paint(words, left) + line(strings.Repeat("─", max(room, 0))) +
		m.theme.Paint(theme.Dim, right) + line("─"+to)
}

// Scrolls reports whether the last View could not show all there is to see.
func (m *Dialog) Scrolls() bool { return len(m.body.lines) > m.body.page }

// scrolled says which lines of the body are seen if not all are.
func (m *Dialog) scrolled() string {
	if !m.Scrolls() {
		return ""
	}
	return fmt.Sprintf("%d–%d of %d", m.body.top+1, m.body.top+m.body.shown, len(m.body.lines))
}

// hint says what the keys do just now.
func (m *Dialog) hint() string {
	switch {
	case m.guard.on:
		return "your keys go to your message until you pause"
	case m.writing:
		return "enter send · esc back"
	case m.escaped && m.approval:
		return "esc again stops the turn"
	case m.Scrolls():
		return "pgup pgdn scroll"
	case m.approval:
		return "you can answer later: / for commands"
	}
	return ""
}

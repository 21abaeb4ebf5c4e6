package dialog

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

const (
	pickerMargin = 3 // for the signs before a row
	columnGap    = 2 // between columns
	pickerKeys   = "type to filter · ↑↓ choose · enter select · esc back"
)

// View returns exactly height lines of at most width columns, and the cursor in
// the filter.
func (m *Picker) View(width, height int) ([]string, *tea.Cursor) {
	height = max(height, 1)
	head, x := m.head(width, height)
	y := len(head) - 1
	widths := m.widths(width - pickerMargin)
	foot := m.foot(widths, width, height)
	if titles := m.titles(widths); titles != "" && height >= 10 {
		head = append(head, m.theme.Paint(theme.Dim, titles))
	}
	room := max(height-len(head)-len(foot), 0)
	lines := append(head, m.body(widths, width, room)...)
	for len(lines) < height-len(foot) {
		lines = append(lines, "")
	}
	lines = append(lines, foot...)[:height]
	for i := range lines {
		lines[i] = safetext.Fit(lines[i], max(width, 0))
	}
	return lines, tea.NewCursor(min(x, max(width-1, 0)), y)
}

// head draws the title, how many rows there are, and the filter in its last line.
func (m *Picker) head(width, height int) (lines []string, x int) {
	if height >= 4 {
		count := m.count()
		title := safetext.Cut(safetext.Line(m.opts.Title), max(width-safetext.Width(count)-1, 0))
		pad := strings.Repeat(" ", max(width-safetext.Width(title)-safetext.Width(count), 0))
		lines = append(lines, m.theme.Paint(theme.Heading, title)+pad+m.theme.Paint(theme.Dim, count))
	}
	m.filter.SetWidth(max(width-2, 0))
	f := m.filter.View(1, func(s string) string { return s })
	return append(lines, m.theme.Paint(theme.Accent, "› ")+f.Rows[f.Y]), f.X + 2
}

func (m *Picker) count() string {
	s := fmt.Sprint(len(m.rows))
	if len(m.rows) == 0 {
		return "" // the body says why
	}
	if len(m.words) > 0 {
		s = fmt.Sprintf("%d of %s", m.len(), s)
	}
	if m.loading {
		s += " loading…"
	}
	return s
}

// foot draws what cannot be seen of the selected row, the note, and the keys.
func (m *Picker) foot(widths []int, width, height int) []string {
	var lines []string
	lines = append(lines, m.rest(widths, width, height)...)
	note := m.note
	if note == "" && len(m.rows) > 0 {
		note = m.missing
	}
	if note != "" && height >= 3 {
		lines = append(lines, m.theme.Paint(theme.Warn, safetext.Cut(safetext.First(note), width)))
	}
	if height < 5 {
		return lines
	}
	text := pickerKeys
	if m.opts.Help != "" {
		text = m.opts.Help + " · " + text
	}
	return append(lines, m.theme.Paint(theme.Dim, safetext.Cut(text, width)))
}

// rest draws the selected row's cells that are cut, or in columns that had to go.
// How many lines that takes depends on the screen only, so that nothing jumps.
func (m *Picker) rest(widths []int, width, height int) []string {
	n := 0
	switch {
	case height >= 14:
		n = 2
	case height >= 8 && slices.Contains(widths, 0):
		n = 1
	}
	row, _ := m.Selected()
	var cells []string
	for i, c := range row.Columns {
		c = safetext.First(c)
		if i < len(widths) && safetext.Width(c) > widths[i] {
			cells = append(cells, c)
		}
	}
	text := safetext.Wrap(strings.Join(cells, " · "), max(width, 1))
	lines := make([]string, n)
	for i := range lines {
		switch {
		case i >= len(text):
		case i == n-1 && len(text) > n:
			lines[i] = safetext.Cut(strings.Join(text[i:], " "), width)
		default:
			lines[i] = text[i]
		}
		lines[i] = m.theme.Paint(theme.Dim, lines[i])
	}
	return lines
}

// widths shares the room among the columns; 0 is a column that has to go.
func (m *Picker) widths(room int) []int {
	cols := m.opts.Columns
	widths := make([]int, len(cols))
	for i, c := range cols {
		widths[i] = max(c.Width, c.Min, 1)
	}
	for columnsWidth(widths) > room {
		last := -1
		for i, c := range cols {
			if widths[i] > 0 && c.Drop > 0 && (last < 0 || c.Drop > cols[last].Drop) {
				last = i
			}
		}
		if last < 0 {
			break
		}
		widths[last] = 0
	}
	m.grow(widths, room)
	return widths
}

// grow gives what is left to the columns without a fixed width, by their Min.
func (m *Picker) grow(widths []int, room int) {
	var shares []int
	weight := 0
	for i, c := range m.opts.Columns {
		if c.Width == 0 && widths[i] > 0 {
			shares = append(shares, i)
			weight += widths[i]
		}
	}
	rest := max(room-columnsWidth(widths), 0)
	for _, i := range shares {
		w := widths[i]
		part := rest * w / weight
		widths[i] += part
		rest -= part
		weight -= w
	}
}

// need returns how much room columns take with the gaps between them.
func columnsWidth(widths []int) int {
	sum := -columnGap
	for _, w := range widths {
		if w > 0 {
			sum += w + columnGap
		}
	}
	return sum
}

func (m *Picker) titles(widths []int) string {
	cells := make([]string, len(m.opts.Columns))
	some := false
	for i, c := range m.opts.Columns {
		cells[i] = c.Title
		some = some || c.Title != ""
	}
	if !some {
		return ""
	}
	return strings.Repeat(" ", pickerMargin) + strings.TrimRight(columnsLine(cells, widths), " ")
}

// line puts cells into their columns.
func columnsLine(cells []string, widths []int) string {
	var s strings.Builder
	for i, w := range widths {
		if w == 0 {
			continue
		}
		if s.Len() > 0 {
			s.WriteString(strings.Repeat(" ", columnGap))
		}
		cell := ""
		if i < len(cells) {
			cell = safetext.Cut(safetext.First(cells[i]), w)
		}
		s.WriteString(cell)
		s.WriteString(strings.Repeat(" ", max(w-safetext.Width(cell), 0)))
	}
	return s.String()
}

// body draws the rows around the selected one, or says why there are none.
func (m *Picker) body(widths []int, width, room int) []string {
	m.page = max(room, 1)
	if m.len() == 0 {
		if room == 0 {
			return nil
		}
		text, color := "nothing matches", theme.Dim
		switch {
		case m.loading:
			text = "loading…"
		case len(m.rows) == 0 && m.missing != "":
			text, color = safetext.First(m.missing), theme.Warn
		case len(m.rows) == 0:
			text = safetext.First(m.opts.Empty)
		}
		return []string{m.theme.Paint(color, safetext.Cut("   "+text, width))}
	}
	from, to := m.list.Window(m.page, m.len())
	var lines []string
	for i := from; i < min(from+room, to); i++ {
		lines = append(lines, m.line(m.rows[m.row(i)], i == m.list.At, widths, width))
	}
	return lines
}

func (m *Picker) line(r Row, selected bool, widths []int, width int) string {
	mark, star := " ", " "
	if selected {
		mark = "›"
	}
	if r.Marked {
		star = "*"
	}
	text := mark + star + " " + columnsLine(r.Columns, widths)
	if !selected {
		return strings.TrimRight(text, " ")
	}
	return draw.SelectedRow(text, width, m.theme)
}

package draw

import (
	"strings"

	east "github.com/yuin/goldmark/extension/ast"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// between is how far apart the columns of a table are.
const between = 3

// leastColumn is the width below which a table is drawn as a list of its rows.
const leastColumn = 5

// table draws a table whose columns are as wide as they need, or as there is
// room. If there is none, each row becomes lines of "head: cell".
func (d *drawer) table(n *east.Table, width int, roles []theme.Role) []string {
	var rows [][]*runs
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		look := roles
		if _, ok := r.(*east.TableHeader); ok {
			look = and(roles, theme.Bold)
		}
		var row []*runs
		for c := r.FirstChild(); c != nil && len(row) < len(n.Alignments); c = c.NextSibling() {
			row = append(row, d.inlines(c, look))
		}
		for len(row) < len(n.Alignments) {
			row = append(row, &runs{})
		}
		rows = append(rows, row)
	}
	columns := len(n.Alignments)
	if len(rows) == 0 || columns == 0 {
		return nil
	}
	room := width - (columns-1)*between
	if room < columns*leastColumn {
		return d.records(rows, width)
	}
	widths := columnWidths(rows, room)
	var out []string
	for i, row := range rows {
		out = append(out, d.row(row, widths, n.Alignments)...)
		if i == 0 {
			out = append(out, d.rule(widths))
		}
	}
	return out
}

// columnWidths gives each column what it needs. If that is too much, the widest
// columns give way first.
func columnWidths(rows [][]*runs, room int) []int {
	widths := make([]int, len(rows[0]))
	total := 0
	for i := range widths {
		for _, row := range rows {
			for line := range strings.SplitSeq(row[i].text.String(), "\n") {
				widths[i] = max(widths[i], safetext.Width(line))
			}
		}
		widths[i] = max(widths[i], 1)
		total += widths[i]
	}
	if total <= room {
		return widths
	}
	// The greatest limit under which they fit.
	low, high := leastColumn, room
	for low < high {
		mid := (low + high + 1) / 2
		if sumUpTo(widths, mid) <= room {
			low = mid
		} else {
			high = mid - 1
		}
	}
	left := room - sumUpTo(widths, low)
	for i, w := range widths {
		if w > low {
			widths[i] = low
			if left > 0 {
				widths[i]++
				left--
			}
		}
	}
	return widths
}

func sumUpTo(widths []int, most int) int {
	total := 0
	for _, w := range widths {
		total += min(w, most)
	}
	return total
}

func (d *drawer) row(row []*runs, widths []int, align []east.Alignment) []string {
	cells := make([][]string, len(row))
	height := 1
	for i, c := range row {
		cells[i] = c.wrap(widths[i], d.theme)
		height = max(height, len(cells[i]))
	}
	bar := " " + d.theme.Paint(theme.Border, "│") + " "
	out := make([]string, height)
	for y := range out {
		parts := make([]string, len(cells))
		for i, c := range cells {
			s := ""
			if y < len(c) {
				s = c[y]
			}
			parts[i] = pad(s, widths[i], align[i])
		}
		out[y] = strings.TrimRight(strings.Join(parts, bar), " ")
	}
	return out
}

func pad(s string, width int, a east.Alignment) string {
	room := max(0, width-safetext.Width(s))
	left := 0
	switch a {
	case east.AlignRight:
		left = room
	case east.AlignCenter:
		left = room / 2
	}
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", room-left)
}

func (d *drawer) rule(widths []int) string {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return d.theme.Paint(theme.Border, strings.Join(parts, "─┼─"))
}

// records draws the rows of a table that is too wide as lists.
func (d *drawer) records(rows [][]*runs, width int) []string {
	var out []string
	for n, row := range rows[1:] {
		if n > 0 {
			out = append(out, "")
		}
		for i, c := range row {
			r := &runs{}
			head := rows[0][i]
			r.add(head.text.String()+": ", []theme.Role{theme.Bold})
			from := 0
			for k, end := range c.ends {
				r.add(c.text.String()[from:end], c.roles[k])
				from = end
			}
			out = append(out, r.wrap(width, d.theme)...)
		}
	}
	return out
}

package edit

import (
	"strings"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/safetext"
)

// A row is a part of a line that fits the width.
type row struct{ start, end int }

// minWidth is the least width that text is wrapped to.
const minWidth = 4

// layout returns the rows of a line. The last column is left to the cursor, or
// to a space at which the line breaks.
func (b *Buffer) layout(n int) []row {
	l := &b.lines[n]
	width := max(b.width, minWidth)
	if l.width == width && l.joined == safetext.Joined() {
		return l.rows
	}
	l.width, l.joined = width, safetext.Joined()
	l.rows = b.wrap(l.text, width)
	return l.rows
}

func (b *Buffer) wrap(text string, width int) []row {
	if len(text) < width && ascii(text) {
		return []row{{0, len(text)}}
	}
	var rows []row
	start, col := 0, 0  // of the row
	gap, gapCol := 0, 0 // behind the row's last space, if > start
	for off := 0; off < len(text); {
		c, w := b.cluster(text[off:])
		w = min(w, width-1)
		space := c == " "
		if col+w > width-1 && off > start && !(space && col+w <= width) {
			if gap > start && !space {
				rows = append(rows, row{start, gap})
				start, col = gap, col-gapCol
			} else {
				rows = append(rows, row{start, off})
				start, col = off, 0
			}
			gap = start
			if col+w > width-1 && off > start {
				continue // the moved word leaves no room either: look again
			}
		}
		off += len(c)
		col += w
		if space || c == "\t" {
			gap, gapCol = off, col
		}
	}
	rows = append(rows, row{start, len(text)})
	if col > width-1 { // a space took the cursor's column
		rows = append(rows, row{len(text), len(text)})
	}
	return rows
}

func ascii(s string) bool {
	for i := range len(s) {
		if !printable(s[i]) {
			return false
		}
	}
	return true
}

// rowAt returns the number of the row in which a place of a line is drawn.
func rowAt(rows []row, off int) int {
	lo, hi := 0, len(rows)-1
	for lo < hi {
		if mid := (lo + hi + 1) / 2; rows[mid].start <= off {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// A spot is a row of the whole text.
type spot struct{ line, row int }

func (b *Buffer) spotOf(at Pos) spot {
	at = b.clamp(at)
	return spot{at.Line, rowAt(b.layout(at.Line), at.Off)}
}

func (b *Buffer) above(s spot) (spot, bool) {
	switch {
	case s.row > 0:
		return spot{s.line, s.row - 1}, true
	case s.line > 0:
		return spot{s.line - 1, len(b.layout(s.line-1)) - 1}, true
	}
	return s, false
}

func (b *Buffer) below(s spot) (spot, bool) {
	switch {
	case s.row+1 < len(b.layout(s.line)):
		return spot{s.line, s.row + 1}, true
	case s.line+1 < len(b.lines):
		return spot{s.line + 1, 0}, true
	}
	return s, false
}

// column returns how far right a place is in its row.
func (b *Buffer) column(at Pos) int {
	rows := b.layout(at.Line)
	return b.measure(b.lines[at.Line].text[rows[rowAt(rows, at.Off)].start:at.Off])
}

func (b *Buffer) measure(s string) int {
	col := 0
	for s != "" {
		c, w := b.cluster(s)
		col += min(w, max(b.width, minWidth)-1)
		s = s[len(c):]
	}
	return col
}

// at returns the place in a row that is nearest to a column from the left.
func (b *Buffer) at(s spot, column int) Pos {
	rows := b.layout(s.line)
	r, text := rows[s.row], b.lines[s.line].text
	off, col := r.start, 0
	for off < r.end {
		c, w := b.cluster(text[off:])
		// The end of a row that is not the line's last is drawn in the next one.
		if col+w > column || off+len(c) == r.end && s.row+1 < len(rows) {
			break
		}
		off += len(c)
		col += w
	}
	return Pos{s.line, off}
}

// Up moves the cursor up by one row. It reports whether there is one.
func (b *Buffer) Up() bool { return b.vertical(b.above) }

// Down moves the cursor down by one row. It reports whether there is one.
func (b *Buffer) Down() bool { return b.vertical(b.below) }

func (b *Buffer) vertical(step func(spot) (spot, bool)) bool {
	b.init()
	to, ok := step(b.spotOf(b.cur))
	if !ok {
		return false
	}
	goal := b.goal
	if goal == 0 {
		goal = b.column(b.cur) + 1
	}
	b.move(b.at(to, goal-1))
	b.goal = goal
	return true
}

// SetWidth sets the width that Up, Down and View wrap to.
func (b *Buffer) SetWidth(width int) { b.width = width }

// Height returns how many rows the text takes, but no more than limit.
func (b *Buffer) Height(limit int) int {
	b.init()
	n := 0
	for i := 0; i < len(b.lines) && n < limit; i++ {
		n += len(b.layout(i))
	}
	return min(n, limit)
}

// A Frame is a window on the text.
type Frame struct {
	Rows         []string
	X, Y         int  // of the cursor
	Above, Below bool // there is more
}

// View returns a window of at most height rows around the cursor, each at most
// as wide as SetWidth said. Folds are drawn by paint.
func (b *Buffer) View(height int, paint func(label string) string) Frame {
	b.init()
	height = max(height, 1)
	top := b.window(height)
	cur := b.spotOf(b.cur)
	f := Frame{X: b.column(b.cur)}
	_, f.Above = b.above(top)
	for s, ok := top, true; ok; s, ok = b.below(s) {
		if len(f.Rows) == height {
			f.Below = true
			break
		}
		if s == cur {
			f.Y = len(f.Rows)
		}
		r := b.layout(s.line)[s.row]
		f.Rows = append(f.Rows, b.draw(b.lines[s.line].text[r.start:r.end], paint))
	}
	return f
}

// window returns the first row to show: the one of last time if the cursor can
// be seen from there, and never so late that the window stays empty below.
func (b *Buffer) window(height int) spot {
	old := b.spotOf(b.top)
	top := b.spotOf(b.cur)
	for range height - 1 {
		if top == old {
			break
		}
		up, ok := b.above(top)
		if !ok {
			break
		}
		top = up
	}
	if cur := b.spotOf(b.cur); cur.line < old.line || cur.line == old.line && cur.row < old.row {
		top = cur
	}
	room := height - 1
	for s, ok := b.below(top); ok && room > 0; s, ok = b.below(s) {
		room--
	}
	for range room {
		up, ok := b.above(top)
		if !ok {
			break
		}
		top = up
	}
	b.top = Pos{top.line, b.layout(top.line)[top.row].start}
	return top
}

// draw makes a piece of text visible: tabs as spaces, folds as their labels.
func (b *Buffer) draw(s string, paint func(string) string) string {
	if ascii(s) {
		return s
	}
	var out strings.Builder
	room := max(b.width, minWidth) - 1
	replaced := false // the last cluster was drawn as something else
	for s != "" {
		c, w := b.cluster(s)
		r, _ := utf8.DecodeRuneInString(c)
		switch {
		case r == '\t':
			out.WriteString("    "[:min(tabWidth, room)])
		case isFold(r):
			out.WriteString(paint(safetext.Cut(b.fold(r).Label, room)))
		case replaced && joins(c): // it would change the width of what is not even there
			out.WriteString(strings.Repeat(" ", w))
		case w > room:
			out.WriteString(strings.Repeat("…", room))
		default:
			out.WriteString(c)
		}
		replaced = r == '\t' || isFold(r)
		s = s[len(c):]
	}
	return out.String()
}

// joins reports whether a cluster becomes one with what is before it.
func joins(c string) bool {
	first, _ := safetext.Cluster("x" + c)
	return len(first) > 1
}

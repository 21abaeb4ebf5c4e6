package draw

import (
	"strings"

	"github.com/fermata-agent/fermata/internal/markup"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// A drawing takes lines and draws each top-level block when it has ended. Lines
// of fenced code are drawn one by one. A copy can go its own way.
type drawing struct {
	width int
	theme *theme.Theme
	out   []string // drawn
	gap   bool     // an empty line goes before what is drawn next

	block []string // the lines of the block that has not ended
	size  int      // their bytes
	blank bool     // the last of them is empty
	list  int      // if it has a list: how far the content of its last item is indented

	fence fence
}

// A fence is fenced code that has not ended.
type fence struct {
	mark   string // what it was opened with; empty if there is none
	indent int
	code   markup.Highlighter
}

// A block that has grown beyond this is split at the next good line, so that
// drawing the last one again and again stays cheap.
const (
	maxHeldLines = 100
	mostBytes    = 8 << 10
)

// line takes the next line, which is clean.
func (d *drawing) line(s string) {
	if d.fence.mark != "" {
		d.codeLine(s)
		return
	}
	if strings.TrimSpace(s) == "" {
		if len(d.block) > 0 {
			d.blank = true
			d.add("")
		}
		return
	}
	in := indent(s)
	if d.blank && !d.goesOn(s, in) {
		d.close(withGap)
	}
	if mark := fenceMark(s); mark != "" && (d.list == 0 || in < d.list) {
		d.close(withGap)
		d.fence = fence{mark: mark, indent: in, code: markup.NewHighlighter(strings.TrimLeft(s, " ~`"))}
		return
	}
	if (len(d.block) >= maxHeldLines || d.size >= mostBytes) && in == 0 && s[0] != '|' {
		d.close(gap(d.blank))
	}
	d.blank = false
	if n := listMark(s, in); n > 0 && in < 4 {
		d.list = n
	}
	d.add(s)
}

func (d *drawing) add(s string) {
	d.block = append(d.block, s)
	d.size += len(s)
}

// goesOn reports whether a line after an empty one may still belong to the
// block. If in doubt it does; the parser knows.
func (d *drawing) goesOn(s string, in int) bool {
	if d.list > 0 {
		return in >= 2 || listMark(s, in) > 0
	}
	return in >= 4 // indented code
}

type gap bool

const (
	withGap gap = true
	noGap   gap = false
)

// close draws the block.
func (d *drawing) close(g gap) {
	if len(d.block) > 0 {
		d.emit(drawBlock(strings.Join(d.block, "\n")+"\n", d.width, d.theme)...)
		d.block, d.size, d.blank, d.list = nil, 0, false, 0 // a copy may still use the old block
	}
	d.gap = bool(g)
}

func (d *drawing) emit(lines ...string) {
	if len(lines) == 0 {
		return
	}
	if d.gap && len(d.out) > 0 {
		d.out = append(d.out, "")
	}
	d.gap = false
	for _, l := range lines {
		d.out = append(d.out, safetext.Fit(l, d.width))
	}
}

func (d *drawing) codeLine(s string) {
	f := &d.fence
	if end := strings.TrimRight(s, " "); indent(end) < 4 && fenceEnds(strings.TrimLeft(end, " "), f.mark) {
		d.fence, d.gap = fence{}, true
		return
	}
	d.emit(drawCode(s[min(indent(s), f.indent):], &f.code, d.width, d.theme)...)
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// fenceMark returns the mark that opens fenced code, if the line does.
func fenceMark(s string) string {
	in := indent(s)
	s = s[in:]
	if in > 3 || len(s) < 3 || s[0] != '`' && s[0] != '~' {
		return ""
	}
	rest := strings.TrimLeft(s, s[:1])
	mark := s[:len(s)-len(rest)]
	if len(mark) < 3 || s[0] == '`' && strings.Contains(rest, "`") {
		return ""
	}
	return mark
}

func fenceEnds(s, mark string) bool {
	return len(s) >= len(mark) && strings.Trim(s, mark[:1]) == ""
}

// listMark returns how far the content of a list item is indented, or 0 if the
// line does not begin one.
func listMark(s string, in int) int {
	rest := s[in:]
	n := 0
	for n < len(rest) && n < 9 && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	switch {
	case n > 0 && n < len(rest) && (rest[n] == '.' || rest[n] == ')'):
		n++
	case n == 0 && rest != "" && strings.ContainsRune("-*+", rune(rest[0])):
		n = 1
	default:
		return 0
	}
	if n == len(rest) {
		return in + n + 1
	}
	spaces := indent(rest[n:])
	if spaces == 0 {
		return 0
	}
	if spaces > 4 || spaces == len(rest[n:]) {
		spaces = 1
	}
	return in + n + spaces
}

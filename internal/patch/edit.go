package patch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

// edit applies the chunks of an update to the content of its file. The error
// lacks the file's name.
func edit(content string, chunks []syntax.Chunk) (string, *syntax.Error) {
	// A byte order mark is no text that a patch would show; it stays where it
	// is, unless the patch proves to know of it.
	mark := ""
	if rest, ok := strings.CutPrefix(content, string(bom)); ok && !mentionsBOM(chunks) {
		mark, content = string(bom), rest
	}

	e := &editor{src: newSource(content)}
	for _, chunk := range chunks {
		if err := e.apply(chunk); err != nil {
			return "", err
		}
	}
	return mark + e.result(), nil
}

func mentionsBOM(chunks []syntax.Chunk) bool {
	for _, c := range chunks {
		for _, l := range c.Lines {
			if strings.HasPrefix(l.Text, string(bom)) {
				return true
			}
		}
	}
	return false
}

// editor collects the replacements of one update. The cursor only moves
// forward, so replacements never overlap.
type editor struct {
	src     *source
	cursor  int // no later chunk begins above this line
	splices []splice
}

// splice replaces the lines [start, end) of the source.
type splice struct {
	start, end int
	lines      []placedLine
	literal    bool // line ends are as the patch spells them
	// What the patch says about the newline at the end of the file, if
	// anything; heeded only by a splice that reaches the end.
	says, unterminated bool
}

type placedLine struct {
	text  string // with its line end
	added bool   // not a line of the old file
}

func (e *editor) apply(c syntax.Chunk) *syntax.Error {
	anchor, err := e.passAnchors(c)
	if err != nil {
		return err
	}

	lines := c.Lines
	for {
		old := oldSide(lines)
		if len(old) == 0 {
			return e.insert(c, lines, anchor)
		}
		if at, ok := e.place(old, c, anchor); ok {
			e.replace(c, lines, at)
			return nil
		}
		shorter, ok := dropTrailingBlank(lines)
		if !ok {
			return e.notFound(c)
		}
		lines = shorter
	}
}

// noAnchor and passedAnchor stand in for the line of a chunk's last anchor.
const (
	noAnchor     = -1
	passedAnchor = -2
)

// passAnchors moves the cursor below the chunk's anchors and returns the line
// of the last. An anchor that stands above the cursor is accepted without
// moving: a second change in the same function often names it again.
func (e *editor) passAnchors(c syntax.Chunk) (int, *syntax.Error) {
	last := noAnchor
	for _, a := range c.Anchors {
		at, ok := e.src.findAnchor(a.Text, e.cursor)
		if ok {
			last, e.cursor = at, at+1
			continue
		}
		above, found := e.src.find([]string{a.Text}, 0, false)
		if !found || last >= 0 {
			return 0, e.anchorNotFound(a)
		}
		if len(oldSide(c.Lines)) == 0 && !c.AtEnd {
			err := e.anchorNotFound(a)
			err.Hint = fmt.Sprintf("that line is line %d of the file, above the previous change; put the changes in the order of the file", above+1)
			return 0, err
		}
		last = passedAnchor
	}
	return last, nil
}

// place finds the old lines below the cursor, or, for a chunk that repeats its
// anchor as its first line, at the anchor.
func (e *editor) place(old []string, c syntax.Chunk, anchor int) (int, bool) {
	atEnd := c.AtEnd || c.OldUnterminated || c.NewUnterminated
	if at, ok := e.src.find(old, e.cursor, atEnd); ok {
		return at, true
	}
	if anchor < 0 {
		return 0, false
	}
	return e.src.find(old, anchor, atEnd)
}

// insert places a chunk without old lines: after its anchor, or at the end.
func (e *editor) insert(c syntax.Chunk, lines []syntax.Line, anchor int) *syntax.Error {
	at := len(e.src.lines)
	if anchor >= 0 && !c.AtEnd {
		at = e.cursor
	}
	// The cursor stays: an addition at the end may come before other changes.
	e.splices = append(e.splices, e.splice(c, lines, at, at))
	return nil
}

func (e *editor) replace(c syntax.Chunk, lines []syntax.Line, at int) {
	end := at + len(oldSide(lines))
	e.splices = append(e.splices, e.splice(c, lines, at, end))
	e.cursor = end
}

// splice builds the new lines. Context lines keep the bytes that the file has,
// however loosely they were matched.
func (e *editor) splice(c syntax.Chunk, lines []syntax.Line, start, end int) splice {
	s := splice{
		start: start, end: end,
		says:         c.OldUnterminated || c.NewUnterminated,
		unterminated: c.NewUnterminated,
	}
	// A chunk that spells out a CR means its line ends as they are written.
	s.literal = slices.ContainsFunc(lines, func(l syntax.Line) bool { return strings.HasSuffix(l.Text, "\r") })
	at := start
	near := max(start-1, 0)
	if start < end {
		near = start
	}
	for _, l := range lines {
		if l.Op == '+' {
			lineEnd := "\n"
			if !s.literal {
				lineEnd = e.src.lineEnd(near)
			}
			s.lines = append(s.lines, placedLine{l.Text + lineEnd, true})
			continue
		}
		if l.Op == ' ' {
			s.lines = append(s.lines, placedLine{e.src.lines[at], false})
		}
		near = at
		at++
	}
	return s
}

// result puts the pieces together.
func (e *editor) result() string {
	slices.SortStableFunc(e.splices, func(a, b splice) int { return cmp.Compare(a.start, b.start) })
	var out []placedLine
	at := 0
	var end splice // the splice that decides about the final newline
	for _, s := range e.splices {
		for ; at < s.start; at++ {
			out = append(out, placedLine{e.src.lines[at], false})
		}
		out = append(out, s.lines...)
		at = s.end
		if s.says && s.end == len(e.src.lines) {
			end = s
		}
	}
	for ; at < len(e.src.lines); at++ {
		out = append(out, placedLine{e.src.lines[at], false})
	}
	return e.join(out, end)
}

// join gives every line but the last a line end, and the last one what the
// patch says, or else what the file's last line had.
func (e *editor) join(out []placedLine, end splice) string {
	if len(out) == 0 {
		return ""
	}

	var b strings.Builder
	last := len(out) - 1
	for _, l := range out[:last] {
		b.WriteString(l.text)
		if lineEndOf(l.text) == "" {
			b.WriteString(e.src.lineEnd(len(e.src.lines) - 1))
		}
	}
	text := out[last].text
	bare := strings.TrimSuffix(text, lineEndOf(text))
	switch {
	case end.says && end.unterminated && end.literal:
		b.WriteString(strings.TrimSuffix(text, "\n"))
	case end.says && end.unterminated:
		b.WriteString(bare)
	case end.says && bare == text:
		b.WriteString(text + e.src.lineEnd(len(e.src.lines)-1))
	case !end.says && out[last].added && e.unterminated():
		b.WriteString(bare)
	default:
		b.WriteString(text)
	}
	return b.String()
}

// unterminated says whether the old file lacks its final newline.
func (e *editor) unterminated() bool {
	n := len(e.src.lines)
	return n > 0 && lineEndOf(e.src.lines[n-1]) == ""
}

// oldSide returns the lines that a chunk expects in the file.
func oldSide(lines []syntax.Line) []string {
	var old []string
	for _, l := range lines {
		if l.Op != '+' {
			old = append(old, l.Text)
		}
	}
	return old
}

// dropTrailingBlank takes away the last old line if it is blank: models count
// the newline at the end of a file, or the space before the next header, as a
// line. A blank context line before added lines becomes an added one.
func dropTrailingBlank(lines []syntax.Line) ([]syntax.Line, bool) {
	i := len(lines) - 1
	for i >= 0 && lines[i].Op == '+' {
		i--
	}
	if i < 0 || strings.TrimSpace(lines[i].Text) != "" {
		return nil, false
	}

	shorter := slices.Clone(lines)
	last := len(lines) - 1
	if lines[i].Op == ' ' && i < last {
		shorter[i].Op = '+'
		return shorter, true
	}
	if i < last && strings.TrimSpace(lines[last].Text) == "" {
		shorter = shorter[:last]
	}
	return slices.Delete(shorter, i, i+1), true
}

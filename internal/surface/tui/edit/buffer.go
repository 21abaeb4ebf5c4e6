// Package edit is the text under a cursor: lines of grapheme clusters with
// motions, deletions, undo, a kill buffer, wrapping to a width, and folds, which
// are long texts that stand as one character in the buffer. It draws plain text
// and knows nothing of what the text is for.
//
// Every change goes through Buffer.Replace, which is what makes undo whole. One
// key costs about the length of the line it is in, not of the text.
package edit

import "strings"

// A Pos is a place between two clusters: a line and an offset in its bytes.
type Pos struct{ Line, Off int }

func (a Pos) before(b Pos) bool { return a.Line < b.Line || a.Line == b.Line && a.Off < b.Off }

// A Fold is a long text that is shown by its label and edited as one character.
type Fold struct {
	Label string // what stands in the line
	Text  string // what it stands for
	Image bool   // Text is the path of an image, or its URL
}

// line is one line of text, and how it wraps at a width (0: not known).
type line struct {
	text   string
	rows   []row
	width  int
	joined bool
}

// A Buffer is a text and a cursor. The zero value is empty and ready.
type Buffer struct {
	Single bool // one line only: newlines become spaces

	lines []line
	cur   Pos
	goal  int // the column that vertical motions aim for, plus 1; 0 for none
	width int // of the last layout
	top   Pos // the first place that the last layout showed
	kill  string
	folds []Fold
	past  []change
	next  []change // what Undo reverted
	rev   int      // counts the changes
}

// changeKind says what changes may become one step of undo.
type changeKind int

const (
	other changeKind = iota
	typing
	erasing
	sealed // typing or erasing that is over
)

type change struct {
	kind          changeKind
	at            Pos
	old, new      string
	before, after Pos // of the cursor
}

// maxUndo is how many steps are remembered at least; twice as many at most.
const maxUndo = 1000

func (b *Buffer) init() {
	if len(b.lines) == 0 {
		b.lines = []line{{}}
	}
}

// Text returns the text; a fold is one character of a private area in it. See Expand.
func (b *Buffer) Text() string {
	if len(b.lines) == 1 {
		return b.lines[0].text
	}
	var s strings.Builder
	for i := range b.lines {
		if i > 0 {
			s.WriteByte('\n')
		}
		s.WriteString(b.lines[i].text)
	}
	return s.String()
}

// Empty reports whether there is no text.
func (b *Buffer) Empty() bool {
	return len(b.lines) == 0 || len(b.lines) == 1 && b.lines[0].text == ""
}

// Cursor returns the place of the cursor.
func (b *Buffer) Cursor() Pos { return b.cur }

// SetCursor moves the cursor to the nearest place that exists.
func (b *Buffer) SetCursor(at Pos) {
	b.seal()
	b.goal = 0
	b.cur = b.clamp(at)
}

// Line returns a line's text, and "" for one that does not exist.
func (b *Buffer) Line(n int) string {
	if n < 0 || n >= len(b.lines) {
		return ""
	}
	return b.lines[n].text
}

// Lines returns how many lines there are; an empty text has one.
func (b *Buffer) Lines() int { return max(len(b.lines), 1) }

// Revision changes whenever the text does.
func (b *Buffer) Revision() int { return b.rev }

// SetText replaces everything and puts the cursor at the end. It can be undone.
func (b *Buffer) SetText(s string) {
	b.Replace(Pos{}, b.end(), s)
	b.cur = b.end()
	if n := len(b.past); n > 0 {
		b.past[n-1].after = b.cur
	}
}

// Reset empties the buffer and forgets all but what was killed.
func (b *Buffer) Reset() {
	*b = Buffer{Single: b.Single, width: b.width, kill: b.kill, folds: b.folds, rev: b.rev + 1}
}

// Insert writes s at the cursor.
func (b *Buffer) Insert(s string) { b.Replace(b.cur, b.cur, Clean(s)) }

// Type writes what one key gave. Keys that follow each other are one step of undo
// up to the end of a word.
func (b *Buffer) Type(s string) { b.replace(typing, b.cur, b.cur, Clean(s)) }

// Replace puts s in the place of what is between two places, and the cursor
// behind it. Folds of this buffer may be in s.
func (b *Buffer) Replace(from, to Pos, s string) { b.replace(other, from, to, s) }

func (b *Buffer) replace(kind changeKind, from, to Pos, s string) {
	b.init()
	from, to = b.clamp(from), b.clamp(to)
	if to.before(from) {
		from, to = to, from
	}
	s = b.clean(s)
	old := b.slice(from, to)
	if old == "" && s == "" {
		return
	}
	c := change{kind, from, old, s, b.cur, Pos{}}
	b.cur = b.snap(b.splice(from, to, s))
	b.goal = 0
	c.after = b.cur
	b.record(c)
}

// clean makes a text fit for this buffer, with the folds that it knows.
func (b *Buffer) clean(s string) string {
	s = tidy(s)
	if strings.ContainsFunc(s, isFold) {
		s = strings.Map(func(r rune) rune {
			if isFold(r) && int(r-firstFold) >= len(b.folds) {
				return '\uFFFD'
			}
			return r
		}, s)
	}
	if b.Single {
		s = strings.ReplaceAll(s, "\n", " ")
	}
	return s
}

// splice does the change itself and returns the end of what was put in.
func (b *Buffer) splice(from, to Pos, s string) Pos {
	b.rev++
	head, tail := b.lines[from.Line].text[:from.Off], b.lines[to.Line].text[to.Off:]
	parts := strings.Split(s, "\n")
	last := len(parts) - 1
	end := Pos{from.Line + last, len(parts[last])}
	if last == 0 {
		end.Off += from.Off
	}
	parts[0] = head + parts[0]
	parts[last] += tail

	if from.Line == to.Line && last == 0 { // by far the most frequent
		b.lines[from.Line] = line{text: parts[0]}
		return end
	}
	fresh := make([]line, len(parts))
	for i, p := range parts {
		fresh[i].text = p
	}
	rest := b.lines[to.Line+1:]
	lines := make([]line, 0, from.Line+len(fresh)+len(rest))
	b.lines = append(append(append(lines, b.lines[:from.Line]...), fresh...), rest...)
	return end
}

// slice returns the text between two places.
func (b *Buffer) slice(from, to Pos) string {
	if from.Line == to.Line {
		return b.lines[from.Line].text[from.Off:to.Off]
	}
	var s strings.Builder
	s.WriteString(b.lines[from.Line].text[from.Off:])
	for i := from.Line + 1; i < to.Line; i++ {
		s.WriteByte('\n')
		s.WriteString(b.lines[i].text)
	}
	s.WriteByte('\n')
	s.WriteString(b.lines[to.Line].text[:to.Off])
	return s.String()
}

// clamp returns the nearest place that exists and is between two clusters.
func (b *Buffer) clamp(at Pos) Pos {
	switch {
	case len(b.lines) == 0 || at.Line < 0:
		return Pos{}
	case at.Line >= len(b.lines):
		return b.end()
	}
	at.Off = min(max(at.Off, 0), len(b.lines[at.Line].text))
	return b.snap(at)
}

func (b *Buffer) end() Pos {
	if len(b.lines) == 0 {
		return Pos{}
	}
	last := len(b.lines) - 1
	return Pos{last, len(b.lines[last].text)}
}

// snap moves a place that is inside a cluster behind it: an insertion or a
// deletion may have made one cluster of two.
func (b *Buffer) snap(at Pos) Pos {
	text := b.lines[at.Line].text
	if at.Off == 0 || at.Off >= len(text) || printable(text[at.Off-1]) && printable(text[at.Off]) {
		return at
	}
	off := b.safe(text, at.Off)
	for off < at.Off {
		c, _ := b.cluster(text[off:])
		off += len(c)
	}
	at.Off = off
	return at
}

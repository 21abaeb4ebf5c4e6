package patch

import (
	"fmt"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

// notFound explains why a chunk's old lines have no place.
func (e *editor) notFound(c syntax.Chunk) *syntax.Error {
	want := oldSide(c.Lines)
	first := c.Lines[0].Line
	err := &syntax.Error{Line: first, Wanted: want, Problem: "these lines are not in the file"}
	if e.cursor > 0 {
		err.Problem = fmt.Sprintf("these lines are not in the file below line %d", e.cursor)
	}
	if len(e.src.lines) == 0 {
		err.Problem = "these lines are not in the file, which is empty"
		return err
	}
	if at, ok := e.src.find(want, 0, false); ok {
		err.Hint = fmt.Sprintf("they are at line %d, above the anchor or the previous change; put the changes in the order of the file", at+1)
		return err
	}

	at, ok := e.src.nearest(want, e.cursor)
	if !ok {
		return err
	}
	err.NearestLine = at + 1
	err.Nearest = e.src.texts(at, at+len(want))
	err.Hint = e.firstDifference(c, at)
	return err
}

// anchorNotFound explains why an anchor has no place.
func (e *editor) anchorNotFound(a syntax.Anchor) *syntax.Error {
	err := &syntax.Error{Line: a.Line, Wanted: []string{a.Text}, Problem: "the anchor is not in the file"}
	if e.cursor > 0 {
		err.Problem = fmt.Sprintf("the anchor is not in the file below line %d", e.cursor)
	}
	if at, ok := e.src.nearest(err.Wanted, e.cursor); ok {
		err.NearestLine = at + 1
		err.Nearest = e.src.texts(at, at+1)
	}
	return err
}

// firstDifference names the first line of the chunk that is not as it stands in
// the file from the given place on.
func (e *editor) firstDifference(c syntax.Chunk, at int) string {
	have := e.src.form(len(looks) - 1)
	for _, l := range c.Lines {
		if l.Op == '+' {
			continue
		}
		if at >= len(have) {
			return fmt.Sprintf("the file ends before the text of patch line %d", l.Line)
		}
		if plain(l.Text) != have[at] {
			return fmt.Sprintf("the first difference is patch line %d, where line %d of the file is %q", l.Line, at+1, syntax.Clip(e.src.texts(at, at+1)[0]))
		}
		at++
	}
	return ""
}

// texts returns the lines [from, to) without their line ends, as far as there
// are any.
func (s *source) texts(from, to int) []string {
	return s.form(1)[from:min(to, len(s.lines))]
}

// nearest returns where the file is most like the wanted lines. Places below
// the cursor win over equally good ones above it.
func (s *source) nearest(want []string, cursor int) (int, bool) {
	have := s.form(len(looks) - 1)
	seen := make([]string, len(want))
	for i, text := range want {
		seen[i] = plain(text)
	}
	total := equalLetters(seen, seen)
	best, place := 0, 0
	for at := range have {
		equal := equalLetters(have[at:], seen)
		if score := equal*2 + below(at, cursor); equal > 0 && score > best {
			best, place = score, at
		}
	}
	// A few braces in common do not make a text similar; one long line that is
	// nearly right does.
	if best < total {
		if at, ok := similarLine(have, seen, cursor); ok {
			return at, true
		}
	}
	return place, best > 0
}

func below(at, cursor int) int {
	if at >= cursor {
		return 1
	}
	return 0
}

// equalLetters counts the letters of the lines that are equal in both.
func equalLetters(have, want []string) int {
	n := 0
	for i := range min(len(have), len(want)) {
		if have[i] == want[i] {
			n += len(want[i])
		}
	}
	return n
}

// similarLine is for texts of which no line stands in the file: the longest
// wanted line is compared with every line, letter pair by letter pair.
func similarLine(have, want []string, cursor int) (int, bool) {
	longest := 0
	for i, text := range want {
		if len(text) > len(want[longest]) {
			longest = i
		}
	}
	var wanted pairCounts
	total := wanted.add(want[longest])
	if total == 0 {
		return 0, false
	}

	const enough = 0.5
	best, place := enough, -1
	for at, line := range have {
		score := wanted.similarity(total, line) + float64(below(at, cursor))/1000
		if score > best {
			best, place = score, at
		}
	}
	if place < 0 {
		return 0, false
	}
	return max(place-longest, 0), true
}

// pairCounts says how often each pair of letters occurs in a text, whatever
// their case.
type pairCounts [1 << 16]int32

func pairAt(s string, i int) int { return int(lower(s[i]))<<8 | int(lower(s[i+1])) }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func (p *pairCounts) add(s string) int {
	for i := range max(len(s)-1, 0) {
		p[pairAt(s, i)]++
	}
	return max(len(s)-1, 0)
}

// similarity is the share of letter pairs that a line has in common with a text
// of the given number of pairs: the Dice coefficient, 0 to 1.
func (p *pairCounts) similarity(total int, line string) float64 {
	other := max(len(line)-1, 0)
	// Lines of very different length cannot be similar enough to matter.
	if other*3 < total || total*3 < other {
		return 0
	}

	common := 0
	for i := range other {
		pair := pairAt(line, i)
		if p[pair] > 0 {
			common++
		}
		p[pair]-- // each occurrence counts once
	}
	for i := range other {
		p[pairAt(line, i)]++
	}
	return 2 * float64(common) / float64(total+other)
}

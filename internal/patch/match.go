package patch

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// looks are the ways in which a line of a patch may equal a line of a file,
// strictest first. A looser one is tried only when a stricter one found nothing
// in the whole rest of the file.
var looks = []func(string) string{
	func(s string) string { return s },
	func(s string) string { return strings.TrimSuffix(s, "\r") },
	func(s string) string { return strings.TrimRight(s, " \t\r") },
	strings.TrimSpace,
	plain,
}

// plainRunes spells typographic characters the way a keyboard does: models
// replace one by the other without noticing.
var plainRunes = func() map[rune]rune {
	m := map[rune]rune{'\u2212': '-', '\u00a0': ' ', '\u202f': ' ', '\u205f': ' ', '\u3000': ' '}
	for r := '\u2010'; r <= '\u2015'; r++ {
		m[r] = '-'
	}
	for r := '\u2018'; r <= '\u201b'; r++ {
		m[r], m[r+4] = '\'', '"'
	}
	for r := '\u2002'; r <= '\u200a'; r++ {
		m[r] = ' '
	}
	m[bom] = -1
	return m
}()

const bom = '\ufeff'

func plain(s string) string {
	if isASCII(s) {
		return strings.TrimSpace(s)
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if to, ok := plainRunes[r]; ok {
			return to
		}
		return r
	}, s))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// source is the file that a section changes, as lines.
type source struct {
	lines []string   // each with its line end; the last one may have none
	forms [][]string // lines under each look, without line end; made when first needed
}

func newSource(content string) *source {
	s := &source{forms: make([][]string, len(looks))}
	if content == "" {
		return s
	}
	s.lines = strings.SplitAfter(content, "\n")
	if last := len(s.lines) - 1; s.lines[last] == "" {
		s.lines = s.lines[:last]
	}
	return s
}

// form returns the lines as the given look sees them.
func (s *source) form(look int) []string {
	if s.forms[look] == nil {
		seen := make([]string, len(s.lines))
		for i, line := range s.lines {
			seen[i] = looks[look](strings.TrimSuffix(line, "\n"))
		}
		s.forms[look] = seen
	}
	return s.forms[look]
}

// find returns where the wanted lines stand at or after from: the first such
// place, or, of lines said to be at the end, the last.
func (s *source) find(want []string, from int, atEnd bool) (int, bool) {
	last := len(s.lines) - len(want)
	if last < from {
		return 0, false
	}
	if !atEnd {
		return s.findIn(want, from, last, 1)
	}
	// The end under any look is better than another place under a strict one.
	if at, ok := s.findIn(want, last, last, -1); ok {
		return at, true
	}
	return s.findIn(want, last, from, -1)
}

func (s *source) findIn(want []string, first, last, step int) (int, bool) {
	seen := make([]string, len(want))
	for look := range looks {
		have := s.form(look)
		for i, text := range want {
			seen[i] = looks[look](text)
		}
		for at := first; at != last+step; at += step {
			if have[at] == seen[0] && slices.Equal(have[at:at+len(seen)], seen) {
				return at, true
			}
		}
	}
	return 0, false
}

// findAnchor returns the line that an anchor names, at or after from. If no
// line equals it, the first one that contains it will do: models name a
// function without its parameters.
func (s *source) findAnchor(text string, from int) (int, bool) {
	texts := []string{text, strings.TrimSuffix(text, " @@")}
	for _, text := range texts {
		if at, ok := s.find([]string{text}, from, false); ok {
			return at, true
		}
	}
	have := s.form(len(looks) - 1)
	for _, text := range texts {
		part := plain(text)
		for at := from; at < len(have) && part != ""; at++ {
			if strings.Contains(have[at], part) {
				return at, true
			}
		}
	}
	return 0, false
}

// lineEnd returns the line end that is usual around a line.
func (s *source) lineEnd(at int) string {
	for i := min(at, len(s.lines)-1); i >= 0; i-- {
		if end := lineEndOf(s.lines[i]); end != "" {
			return end
		}
	}
	return "\n"
}

func lineEndOf(line string) string {
	switch {
	case strings.HasSuffix(line, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(line, "\n"):
		return "\n"
	}
	return ""
}

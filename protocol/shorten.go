package protocol

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The most of a command's output that a model is shown.
const (
	shownBytes = 10 << 10
	shownLines = 256
)

// Shorten cuts a command's output to what a model is shown: all of it if it is
// short, otherwise its first and its last lines with a mark between that says how many
// lines are missing.
func Shorten(s string) string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(s) <= shownBytes && len(lines) <= shownLines {
		return s
	}
	head := lines[:min(len(lines), shownLines/2)]
	tail := lines[max(len(head), len(lines)-shownLines/2):]
	mark := fmt.Sprintf("\n[... omitted %d of %d lines ...]\n\n", len(lines)-len(head)-len(tail), len(lines))
	h := cutHead(strings.Join(head, ""), shownBytes/2)
	t := cutTail(strings.Join(tail, ""), shownBytes-len(h)-len(mark))
	if len(tail) == 0 { // few lines, but long ones
		t = cutTail(s[len(h):], shownBytes-len(h)-len(mark))
	}
	return h + mark + t
}

// CutMiddle returns a text of at most n bytes, and a mark: if s is longer, its
// beginning and its end with the mark between.
func CutMiddle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	head := cutHead(s, n/2)
	tail := cutTail(s, n-n/2)
	return fmt.Sprintf("%s\n[... omitted %d of %d bytes ...]\n%s", head, len(s)-len(head)-len(tail), len(s), tail)
}

// cutHead returns at most n bytes from the start of s, cut between runes.
func cutHead(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// cutTail returns at most n bytes from the end of s, cut between runes.
func cutTail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

package protocol

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// shownBytes is how much of a command's output a model is shown.
const shownBytes = 40_000

// Shorten returns what a model is shown of a command's output: all of it if it
// is short, otherwise its beginning and its end with a mark between that says how
// much is missing.
func Shorten(s string) string { return ShortenTo(s, shownBytes, 0) }

// CutMiddle returns at most n bytes of s, and a mark between its beginning and its
// end if that is not all of it.
func CutMiddle(s string, n int) string { return ShortenTo(s, n, 0) }

// ShortenTo is CutMiddle for a text of which omitted bytes are missing already,
// which the mark counts as well.
// What is not UTF-8 is replaced.
func ShortenTo(s string, n int, omitted int64) string {
	s = ValidText(s)
	if len(s) <= n {
		return s
	}
	head, tail := cutHead(s, n/2), cutTail(s, n-n/2)
	if i := strings.LastIndexByte(head, '\n') + 1; i > len(head)/2 {
		head = head[:i]
	}
	if i := strings.IndexByte(tail, '\n') + 1; i < len(tail)/2 && s[len(s)-len(tail)-1] != '\n' {
		tail = tail[i:]
	}
	total := int64(len(s)) + omitted
	mark := fmt.Sprintf("[... omitted %d of %d bytes ...]\n", total-int64(len(head)+len(tail)), total)
	if !strings.HasSuffix(head, "\n") {
		mark = "\n" + mark
	}
	return head + mark + tail
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

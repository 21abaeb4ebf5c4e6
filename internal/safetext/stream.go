package safetext

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Strip removes what would move the cursor or change the terminal, and marks
// characters that reverse or hide text: people judge a command by how it looks. Newlines
// and tabs are kept. It is for text that is printed line after line; [Clean] is for what
// is drawn at a place.
func Strip(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ' && r != '\t' && r != '\n', r >= 0x7f && r < 0xa0:
			return -1
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r >= 0xe0000 && r <= 0xe0fff:
			return utf8.RuneError
		}
		return r
	}, s)
}

// NewWriter returns a writer that strips, as [Strip] does, what is written to w.
// A character may be split between two writes.
func NewWriter(w io.Writer) io.Writer { return &writer{w: w} }

type writer struct {
	w    io.Writer
	part []byte // the beginning of a character
}

func (w *writer) Write(b []byte) (int, error) {
	text := append(w.part, b...)
	end := len(text) - partialRune(text)
	w.part = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(w.w, Strip(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// partialRune is how many bytes at the end of b are the beginning of a character.
func partialRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// Whole is how much of a text that grows can be shown: not half a character.
func Whole(s string) int { return len(s) - partialRune([]byte(s[max(0, len(s)-utf8.UTFMax):])) }

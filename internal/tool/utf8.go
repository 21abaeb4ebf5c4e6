package tool

import "unicode/utf8"

// A decoder passes bytes on that arrive in pieces: characters that are cut between
// two pieces are put together. What is not UTF-8 stays as it is.
type decoder struct {
	held []byte // the beginning of a character
}

func (d *decoder) decode(b []byte) string {
	if len(d.held) > 0 {
		b = append(d.held, b...)
		d.held = nil
	}
	if n := incomplete(b); n > 0 {
		d.held = append(d.held, b[len(b)-n:]...)
		b = b[:len(b)-n]
	}
	return string(b)
}

// rest returns what was held back, at the end.
func (d *decoder) rest() string {
	s := string(d.held)
	d.held = nil
	return s
}

// incomplete returns how many bytes at the end of b begin a character that is
// not whole.
func incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		tail := b[len(b)-n:]
		if !utf8.RuneStart(tail[0]) {
			continue
		}
		if !utf8.FullRune(tail) {
			return n
		}
		return 0
	}
	return 0
}

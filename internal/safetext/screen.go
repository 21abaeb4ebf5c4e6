package safetext

import (
	"strings"
	"unicode/utf8"
)

// A screen is one line of a terminal. Each column holds a character; the second
// column of a wide one holds nothing.
type screen struct {
	cols []string
	at   int
}

const (
	escape = 0x1b
	// mostColumns bounds what one line can grow to by moving the cursor or by
	// tabs; text is not cut.
	mostColumns = 4096
)

// take obeys what s begins with and returns its length.
func (sc *screen) take(s string) int {
	switch c := s[0]; {
	case c == escape:
		return sc.sequence(s, 1)
	case c == '\r':
		sc.at = 0
		return 1
	case c == '\b':
		sc.at = max(0, sc.at-1)
		return 1
	case c == '\t':
		sc.tab()
		return 1
	case c == '\n':
		sc.put(" ", 1)
		return 1
	case c < ' ', c == 0x7f:
		return 1
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && n == 1:
		sc.put(string(utf8.RuneError), 1)
		return n
	case r == 0x90, r == 0x98, r >= 0x9b && r <= 0x9f: // the same as ESC and a letter
		return sc.sequence(s, n)
	case r == 0x2028, r == 0x2029:
		sc.put(" ", 1)
		return n
	case hidden(r):
		return n
	}
	return sc.cluster(s)
}

// cluster puts one character as a person sees it. It ends before anything that
// must not be shown.
func (sc *screen) cluster(s string) int {
	g, w := Cluster(s)
	if isClean(g) && !strings.Contains(g, "\n") {
		sc.put(g, w)
		return len(g)
	}
	_, n := utf8.DecodeRuneInString(s)
	sc.put(s[:n], Width(s[:n]))
	return n
}

func (sc *screen) tab() {
	if sc.at >= mostColumns {
		sc.put(" ", 1)
		return
	}
	for n := TabWidth - sc.at%TabWidth; n > 0; n-- {
		if sc.at < len(sc.cols) {
			sc.at++ // a tab moves over what is there
			continue
		}
		sc.put(" ", 1)
	}
}

// put prints a character over what is there.
func (sc *screen) put(g string, w int) {
	if w == 0 { // it belongs to the one before
		if sc.at > 0 && sc.at <= len(sc.cols) {
			i := sc.at - 1
			if sc.cols[i] == "" && i > 0 {
				i--
			}
			sc.cols[i] += g
		}
		return
	}
	for len(sc.cols) < sc.at {
		sc.cols = append(sc.cols, " ")
	}
	if sc.at < len(sc.cols) && sc.cols[sc.at] == "" && sc.at > 0 {
		sc.cols[sc.at-1] = " " // the left half of a wide one
	}
	for i := range w {
		if sc.at+i == len(sc.cols) {
			sc.cols = append(sc.cols, "")
		}
		sc.cols[sc.at+i] = ""
	}
	sc.cols[sc.at] = g
	if next := sc.at + w; next < len(sc.cols) && sc.cols[next] == "" {
		sc.cols[next] = " " // the right half of a wide one
	}
	sc.at += w
}

// sequence takes an escape sequence whose introducer is n bytes long. One that
// does not end with the line is taken to its end.
func (sc *screen) sequence(s string, n int) int {
	kind := rune(s[0])
	if kind == escape {
		if len(s) == 1 {
			return 1
		}
		kind = rune(s[1]) + 0x40
		if s[1] < 0x40 || s[1] > 0x5f {
			return short(s)
		}
		n = 2
	} else {
		kind, _ = utf8.DecodeRuneInString(s)
	}
	switch kind {
	case 0x9b:
		return sc.control(s, n)
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f:
		return stringEnd(s, n)
	}
	return n
}

// short is the length of an escape sequence of the kind ESC ( B.
func short(s string) int {
	i := 1
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
		i++
	}
	if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
		i++
	}
	return i
}

// control takes a sequence such as ESC [ 2 K, which erases the line; others are
// left out.
func (sc *screen) control(s string, n int) int {
	i := n
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
		i++
	}
	if i == len(s) || s[i] < 0x40 || s[i] > 0x7e {
		return i
	}
	if s[i] == 'K' {
		sc.erase(s[n:i])
	}
	return i + 1
}

func (sc *screen) erase(what string) {
	from, to := sc.at, len(sc.cols)
	switch what {
	case "1":
		from, to = 0, min(sc.at+1, to)
	case "2":
		from = 0
	}
	if to == len(sc.cols) && from < to {
		sc.cols = sc.cols[:from]
		return
	}
	for i := from; i < to; i++ {
		sc.cols[i] = " "
	}
}

// stringEnd is the length of a sequence that carries a string, such as a title.
func stringEnd(s string, n int) int {
	for i := n; i < len(s); i++ {
		switch {
		case s[i] == '\a':
			return i + 1
		case s[i] == escape && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case strings.HasPrefix(s[i:], "\u009c"):
			return i + len("\u009c")
		}
	}
	return len(s)
}

func (sc *screen) String() string { return strings.Join(sc.cols, "") }

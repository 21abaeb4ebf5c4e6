// Package safetext makes text that others wrote safe to put on a screen, and
// measures and breaks it. What it returns holds no control character and no
// escape sequence, so whatever a model or a command prints, the terminal only
// ever obeys us.
package safetext

import (
	"strings"
	"unicode/utf8"
)

// TabWidth is how far apart the tab stops are.
const TabWidth = 4

// Clean makes a text safe to show. Newlines are kept; all else is as [Line] does.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Line(l)
	}
	return strings.Join(lines, "\n")
}

// Line makes one line safe to show, as a terminal would show it: a carriage
// return begins the line again, what is printed over is gone, tabs are spaces.
// Colours, other escape sequences, control characters and characters that turn
// the direction of the text or cannot be seen are left out.
func Line(s string) string {
	if isClean(s) && !strings.Contains(s, "\n") {
		return s
	}
	sc := screen{}
	for len(s) > 0 {
		s = s[sc.take(s):]
	}
	return sc.String()
}

// Show makes a text safe to show without obeying any of it: control characters
// become the signs for them, and characters that cannot be seen become "�". It is
// for what a person has to judge, such as a command, where [Line] would hide what
// is printed over. Newlines are kept, tabs are spaces, and the carriage return
// before a newline is left out.
func Show(s string) string {
	if isClean(s) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = showLine(strings.TrimSuffix(l, "\r"))
	}
	return strings.Join(lines, "\n")
}

// ShowLine is [Show] for what must stay one line, such as a path.
func ShowLine(s string) string { return strings.ReplaceAll(Show(s), "\n", "␊") }

func showLine(s string) string {
	var sc screen
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\t':
			sc.tab()
		case r < ' ':
			sc.put(string(0x2400+r), 1)
		case r == 0x7f:
			sc.put("␡", 1)
		case r == utf8.RuneError && n == 1, hidden(r):
			sc.put(string(utf8.RuneError), 1)
		default:
			n = sc.cluster(s)
		}
		s = s[n:]
	}
	return sc.String()
}

// isClean reports whether there is nothing to do, newlines aside.
func isClean(s string) bool {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' && c != '\n' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || hidden(r) {
			return false
		}
		i += n
	}
	return true
}

// hidden reports whether a character is left out: it is invisible.
func hidden(r rune) bool {
	switch {
	case r >= 0x80 && r < 0xa0: // C1 controls
	case r == 0xad, r == 0x61c, r == 0x180e, r == 0xfeff: // soft hyphen, marks, byte order
	case r == 0x200b, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
	case r >= 0xfff0 && r <= 0xfffb:
	case r >= 0xe0000 && r <= 0xe0fff: // tags: text that no reader sees
	default:
		return false
	}
	return true
}

// Cut shortens a clean or painted line to a width, marking that with "…".
func Cut(s string, width int) string {
	if len(s) <= width || Width(s) <= width {
		return s
	}
	return truncate(s, width-1, "…")
}

// Fit cuts a painted line that is too wide, whatever it takes. Lines that were
// made well pass as they are.
func Fit(s string, width int) string {
	if len(s) <= width || Width(s) <= width {
		return s
	}
	return truncate(s, width, "")
}

// truncate keeps what fits, and all escape codes, so that none stays on.
func truncate(s string, width int, tail string) string {
	var b strings.Builder
	col, full := 0, width < 0
	for i := 0; i < len(s); {
		if s[i] == escape {
			n := (&screen{}).sequence(s[i:], 1)
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		n, w := next(s[i:], width)
		if !full && col+w > width {
			full = true
			b.WriteString(tail)
		}
		if !full {
			b.WriteString(s[i : i+n])
			col += w
		}
		i += n
	}
	return b.String()
}

// First returns the first line of s that is not empty, clean.
func First(s string) string {
	for line := range strings.Lines(s) {
		if c := strings.TrimSpace(Line(strings.TrimSuffix(line, "\n"))); c != "" {
			return c
		}
	}
	return ""
}

// Package plain makes text that others wrote safe to put on a screen, and
// measures and breaks it. What it returns holds no control character and no
// escape sequence, so whatever a model or a command prints, the terminal only
// ever obeys us.
package plain

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// TabWidth is how far apart the tab stops are.
const TabWidth = 4

// Width is the number of columns that s takes. Escape codes take none.
func Width(s string) int { return ansi.StringWidth(s) }

// Clean makes a text safe to show. Newlines are kept; all else is as Line does.
func Clean(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Line(l)
	}
	return strings.Join(lines, "\n")
}

// Line makes one line safe to show, as a terminal would show it: a carriage
// return begins the line again, tabs are spaces, escape sequences and other
// control characters are gone.
func Line(s string) string {
	return ansi.Strip(s)
}

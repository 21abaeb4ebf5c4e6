package safetext

import (
	"fmt"
	"strings"
)

// FoldMark begins the line that stands for several blank ones.
const FoldMark = "⋮ "

// Fold makes a text that a user has to judge lines of a width, as [Show] and [Wrap] do. Blank lines
// could push what is before them off the screen, so they are counted instead; where a line is broken, a run of spaces ends.
func Fold(s string, width int) []string {
	var lines []string
	blank := 0
	flush := func() {
		switch {
		case blank == 1:
			lines = append(lines, "")
		case blank > 1:
			lines = append(lines, fmt.Sprintf("%s%d blank lines", FoldMark, blank))
		}
		blank = 0
	}
	for _, l := range Wrap(Show(s), max(width, 1)) {
		if strings.TrimSpace(l) == "" {
			blank++
			continue
		}
		flush()
		lines = append(lines, l)
	}
	return lines
}

// FoldTo is [Fold] with at most n lines: the first ones, how many more there are, and the last.
func FoldTo(n int, s string, width int) []string {
	lines := Fold(s, width)
	if len(lines) <= n {
		return lines
	}
	more := fmt.Sprintf("… %d more lines; the last one is:", len(lines)-n+2)
	return append(lines[:n-2:n-2], more, lines[len(lines)-1])
}

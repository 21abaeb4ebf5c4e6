package screen

import (
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// Exactly makes a list n lines long.
func Exactly(lines []string, n int) []string {
	if len(lines) > n {
		return lines[:max(0, n)]
	}
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines
}

// Indent puts a margin before lines that are not empty.
func Indent(lines []string, margin int) []string {
	for i := range lines {
		if lines[i] != "" {
			lines[i] = strings.Repeat(" ", margin) + lines[i]
		}
	}
	return lines
}

// Chips are the messages that wait for the turn, then those that are being sent, one line each.
func Chips(waiting []p.ReturnedInput, sending []string, width int, t *theme.Theme) []string {
	var lines []string
	add := func(what, text string) {
		line := strings.Join(strings.Fields(safetext.Clean(text)), " ")
		line = safetext.Cut(fmt.Sprintf("  ⤷ %s: %s", what, line), width-14)
		lines = append(lines, t.Paint(theme.User, line)+t.Paint(theme.Dim, safetext.Cut("  (↑ edits)", width-safetext.Width(line))))
	}
	for _, in := range waiting {
		add(modeWord(in.Mode), p.Written(in.Content))
	}
	for _, text := range sending {
		add("sending", text)
	}
	return lines
}

// modeWord says what becomes of a message that waits.
func modeWord(mode p.WhenBusy) string {
	switch mode {
	case p.Queue:
		return "queued"
	case p.Replace:
		return "replacing"
	}
	return "steering"
}

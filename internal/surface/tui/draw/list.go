package draw

import (
	"strings"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// A List is which of some rows is selected, and which of them are in a window: whatever one chooses from has one. How
// many rows there are is passed with each call, as they may change. The zero value has the first row selected.
type List struct {
	At  int // the selected row
	top int // the first row in the window
}

// Step moves the selection by n rows, round at the ends.
func (l *List) Step(n, rows int) {
	if rows > 0 {
		l.At = (l.At + n + rows) % rows
	}
}

// Move moves the selection by n rows, to an end at most.
func (l *List) Move(n, rows int) { l.At = max(min(l.At+n, rows-1), 0) }

// Window returns the rows in a window of a height, from the first up to but not including the last: the one that is
// selected is among them, and the window moves no further than it has to.
func (l *List) Window(height, rows int) (from, to int) {
	l.top = min(max(l.top, l.At-height+1, 0), l.At)
	l.top = max(min(l.top, rows-height), 0)
	return l.top, min(l.top+height, rows)
}

// SelectedRow draws the line of a selected row, as wide as the window.
func SelectedRow(line string, width int, t *theme.Theme) string {
	line = safetext.Fit(line, max(width, 0))
	return t.Paint(theme.Selected, line+strings.Repeat(" ", max(width-safetext.Width(line), 0)))
}

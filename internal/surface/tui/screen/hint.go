package screen

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// hintTime is how long a hint is shown if no key is pressed.
const hintTime = 8 * time.Second

// A Hint is a short remark in place of the status line.
type Hint struct {
	role theme.Role
	text string
	n    int // which one
}

// HintOver is the message that a hint has been shown long enough.
type HintOver struct{ n int }

// Show shows a remark for a while.
func (h *Hint) Show(role theme.Role, format string, args ...any) tea.Cmd {
	*h = Hint{role: role, text: safetext.Line(fmt.Sprintf(format, args...)), n: h.n + 1}
	over := HintOver{h.n}
	return tea.Tick(hintTime, func(time.Time) tea.Msg { return over })
}

// Clear takes the remark away.
func (h *Hint) Clear() { h.text = "" }

// OnOver takes the remark away if its time is over.
func (h *Hint) OnOver(msg HintOver) {
	if msg.n == h.n {
		h.Clear()
	}
}

// Line is the remark in a line of a width; empty if there is none.
func (h *Hint) Line(width int, t *theme.Theme) string {
	return t.Paint(h.role, safetext.Cut(h.text, width))
}

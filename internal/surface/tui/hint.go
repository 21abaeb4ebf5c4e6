package tui

import (
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// hintTime is how long a hint is shown if no key is pressed.
const hintTime = 8 * time.Second

// A hint is a short remark in place of the status line.
type hint struct {
	role theme.Role
	text string
	n    int // which one
}

type hintOver struct{ n int }

func (m *model) Hint(role theme.Role, format string, args ...any) tea.Cmd {
	m.hint = hint{role: role, text: safetext.Line(fmt.Sprintf(format, args...)), n: m.hint.n + 1}
	n := m.hint.n
	return tea.Tick(hintTime, func(time.Time) tea.Msg { return hintOver{n} })
}

func (m *model) clearHint() { m.hint.text = "" }

// ShowError shows an error: in the conversation if it is too long for a line.
func (m *model) ShowError(err error) tea.Cmd {
	text := explain(err)
	if safetext.Width(safetext.Line(text)) > m.width {
		m.note(true, "%s", text)
		m.view.Bottom()
		return nil
	}
	return m.Hint(theme.Error, "%s", text)
}

// explain is an error for a person, with what to do about it.
func explain(err error) string {
	var held *client.HeldError
	switch {
	case errors.As(err, &held):
		text := "open in " + held.Who
		if held.What != "" {
			text += " (" + safetext.Cut(held.What, 24) + ")"
		}
		return text + ": use it there, or close it first" // in all, one line of a small screen
	case errors.Is(err, engine.ErrNotFound):
		return "that conversation was not found"
	case errors.Is(err, engine.ErrBusy):
		return "not while a turn runs: stop it first (Esc)"
	case errors.Is(err, engine.ErrClosed):
		return "the conversation was closed"
	}
	return err.Error()
}

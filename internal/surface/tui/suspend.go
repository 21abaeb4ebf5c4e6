package tui

import (
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// suspend gives the terminal to the shell until that continues us.
func (m *model) suspend() tea.Cmd {
	if m.o.Suspend == nil {
		return m.Hint(theme.Warn, "there is no shell to return to")
	}
	m.asleep = true
	return m.pause(m.o.Suspend)
}

// continued says that we run again after we were stopped.
type continued struct{}

// onContinued takes the terminal back, unless we had given it away.
func (m *model) onContinued() tea.Cmd {
	if m.asleep {
		m.asleep = false
		return nil
	}
	return m.pause(func() error { return nil })
}

// pause takes the terminal back after something was done without it, and draws all
// of it again.
func (m *model) pause(do func() error) tea.Cmd {
	run := func(io.Reader, io.Writer) error { return do() }
	return terminal.Exec(run, func(err error) tea.Msg {
		return terminal.Done{Then: func() tea.Cmd {
			if err != nil {
				m.asleep = false
				return m.ShowError(err)
			}
			return nil
		}}
	})
}

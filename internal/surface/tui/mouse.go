package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
)

// mouse selects; what is selected is copied when the button is released.
func (m *model) mouse(msg tea.Msg) tea.Cmd {
	if m.screen != nil || !m.takesMouse() {
		return nil
	}
	switch msg := msg.(type) {
	case tea.MouseClickMsg:
		m.sel = draw.Selection{}
		if msg.Button == tea.MouseLeft {
			m.sel = draw.BeginSelection(msg.X, msg.Y)
		}
	case tea.MouseMotionMsg:
		m.sel.Drag(msg.X, msg.Y)
	case tea.MouseReleaseMsg:
		if m.sel.Release() {
			return commands.Copy(m, m.sel.Text(m.margin()), "selection")
		}
	}
	return nil
}

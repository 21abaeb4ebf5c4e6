package dialog

import (
	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
)

// An Overlay takes the place of everything else on the screen.
type Overlay interface {
	// Take takes a message. gone says that the overlay is to be left.
	Take(tea.Msg) (cmd tea.Cmd, gone bool)
	// View returns the lines of the screen, and the cursor if there is one.
	View(width, height int) ([]string, *tea.Cursor)
	// SetNote shows a remark.
	SetNote(string)
}

// Take is [Picker.Update] that does what was chosen.
func (m *Picker) Take(msg tea.Msg) (tea.Cmd, bool) {
	if k, ok := msg.(tea.KeyPressMsg); ok && m.opts.Tab != nil && k.Keystroke() == "tab" {
		return m.opts.Tab(), false
	}
	a, cmd := m.Update(msg)
	if !a.Done {
		return cmd, false
	}
	if row, ok := m.Selected(); a.ID != "" && ok && row.Choose != nil {
		return tea.Batch(cmd, row.Choose()), !m.opts.Stays
	}
	return cmd, true
}

// A Paper is a page as an overlay.
type Paper struct{ *draw.Page }

// Take scrolls the page.
func (s Paper) Take(msg tea.Msg) (tea.Cmd, bool) { return nil, s.Update(msg) }

// View returns the lines of the page.
func (s Paper) View(width, height int) ([]string, *tea.Cursor) {
	return s.Page.View(width, height), nil
}

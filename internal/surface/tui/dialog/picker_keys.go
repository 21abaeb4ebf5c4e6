package dialog

import (
	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
)

var pickerUsed = Pick{Used: true}

// Update takes a key, a paste or the mouse wheel.
func (m *Picker) Update(msg tea.Msg) (Pick, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return m.key(msg), nil
	case tea.PasteMsg:
		m.filter.Insert(msg.Content)
		m.filtered()
		return pickerUsed, nil
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			m.move(-3)
			return pickerUsed, nil
		case tea.MouseWheelDown:
			m.move(3)
			return pickerUsed, nil
		}
	}
	return Pick{}, nil
}

func (m *Picker) key(k tea.KeyPressMsg) Pick {
	switch name := k.Keystroke(); name {
	case "up", "ctrl+p":
		m.move(-1)
	case "down", "ctrl+n":
		m.move(1)
	case "pgup":
		m.move(-m.page)
	case "pgdown":
		m.move(m.page)
	case "home":
		m.move(-m.len())
	case "end":
		m.move(m.len())
	case "enter":
		if row, ok := m.Selected(); ok {
			return Pick{Used: true, Done: true, ID: row.ID}
		}
	case "esc":
		if m.filter.Empty() {
			return Pick{Used: true, Done: true}
		}
		m.filter.Reset()
		m.filtered()
	default:
		if name == "ctrl+d" && m.filter.Empty() {
			return Pick{}
		}
		before := m.filter.Revision()
		if !m.filter.Key(k) {
			return Pick{}
		}
		if m.filter.Revision() != before {
			m.filtered()
		}
	}
	return pickerUsed
}

// filtered shows the rows of a filter that was changed from the first one on.
func (m *Picker) filtered() {
	m.refilter()
	m.list, m.chosen = draw.List{}, false
}

func (m *Picker) move(n int) {
	m.chosen = true
	m.list.Move(n, m.len())
}

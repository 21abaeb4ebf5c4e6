package picker

import tea "charm.land/bubbletea/v2"

var used = Action{Used: true}

// Update takes a key, a paste or the mouse wheel.
func (m *Model) Update(msg tea.Msg) (Action, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return m.key(msg), nil
	case tea.PasteMsg:
		m.filter.Insert(msg.Content)
		m.filtered()
		return used, nil
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			m.move(-3)
			return used, nil
		case tea.MouseWheelDown:
			m.move(3)
			return used, nil
		}
	}
	return Action{}, nil
}

func (m *Model) key(k tea.KeyPressMsg) Action {
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
			return Action{Used: true, Done: true, ID: row.ID}
		}
	case "esc":
		if m.filter.Empty() {
			return Action{Used: true, Done: true}
		}
		m.filter.Reset()
		m.filtered()
	default:
		if name == "ctrl+d" && m.filter.Empty() {
			return Action{}
		}
		before := m.filter.Revision()
		if !m.filter.Key(k) {
			return Action{}
		}
		if m.filter.Revision() != before {
			m.filtered()
		}
	}
	return used
}

// filtered shows the rows of a filter that was changed from the first one on.
func (m *Model) filtered() {
	m.refilter()
	m.at, m.top, m.chosen = 0, 0, false
}

func (m *Model) move(n int) {
	m.chosen = true
	m.at = max(min(m.at+n, m.len()-1), 0)
}

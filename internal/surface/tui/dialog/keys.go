package dialog

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	p "github.com/fermata-agent/fermata/protocol"
)

// guard keeps keys from a dialog that opened under somebody's hands.
type guard struct {
	quiet time.Duration
	on    bool
	n     int // counts the keys, so that only the last timer ends the guard
}

// unguard ends the guard if no key came after the nth.
type unguard struct {
	to *Model
	n  int
}

// Guard leaves keys to the application (Action.Used is false) until none came
// for quiet. It keeps the letters of somebody who is just typing from answering
// a dialog that opened under their hands, or that they have not noticed: a letter
// that is no answer begins the guard again.
func (m *Model) Guard(quiet time.Duration) tea.Cmd {
	m.guard.quiet, m.guard.on = quiet, true
	return m.wait()
}

func (m *Model) wait() tea.Cmd {
	m.guard.n++
	end := unguard{m, m.guard.n}
	return tea.Tick(m.guard.quiet, func(time.Time) tea.Msg { return end })
}

// Listening reports whether a key would be taken as an answer: not as a part of
// a text, and not by the guard.
func (m *Model) Listening() bool { return !m.guard.on && !m.writing }

var used = Action{Used: true}

// Update takes a key, a paste, the mouse wheel, or an answer to a command of its own.
func (m *Model) Update(msg tea.Msg) (Action, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		var a Action
		if !m.guard.on {
			a = m.key(msg)
		}
		if m.guard.on {
			return a, m.wait()
		}
		return a, nil
	case tea.PasteMsg:
		if !m.writing {
			return Action{Used: !m.guard.on}, nil // nobody answers by pasting
		}
		m.words.Insert(msg.Content)
		return used, nil
	case tea.MouseWheelMsg:
		return m.wheel(msg), nil
	case unguard:
		if msg.to != m {
			return Action{}, nil
		}
		if msg.n == m.guard.n {
			m.guard.on = false
		}
		return used, nil
	}
	return Action{}, nil
}

func (m *Model) wheel(msg tea.MouseWheelMsg) Action {
	switch msg.Button {
	case tea.MouseWheelUp:
		m.body.scroll(-3)
	case tea.MouseWheelDown:
		m.body.scroll(3)
	default:
		return Action{}
	}
	return used
}

func (m *Model) key(k tea.KeyPressMsg) Action {
	if m.writing {
		return m.wordsKey(k)
	}
	name := k.Keystroke()
	escaped := m.escaped
	m.escaped = name == "esc"
	if id, ok := m.named(k); ok {
		return m.choose(id)
	}
	switch name {
	case "enter":
		if len(m.choices) == 0 {
			return Action{Used: true, Done: true}
		}
		return m.choose(m.choices[m.at].ID)
	case "up", "left", "shift+tab", "ctrl+p":
		m.step(-1)
	case "down", "right", "tab", "ctrl+n":
		m.step(1)
	case "esc":
		if !m.approval {
			return Action{Used: true, Done: true}
		}
		if escaped {
			return m.choose(string(p.Abort))
		}
	default:
		if m.body.key(name) {
			return used
		}
		// A letter that is no answer is of somebody who writes, if that is guarded against; else it is swallowed.
		m.guard.on = k.Text != "" && m.guard.quiet > 0
		return Action{Used: k.Text != "" && !m.guard.on}
	}
	return used
}

// named returns the choice that a key stands for, whether or not Caps Lock is on.
func (m *Model) named(k tea.KeyPressMsg) (string, bool) {
	for _, c := range m.choices {
		if c.Key == k.String() || c.Key == k.Keystroke() {
			return c.ID, true
		}
	}
	for _, c := range m.choices {
		if k.Text != "" && strings.EqualFold(c.Key, k.Text) {
			return c.ID, true
		}
	}
	return "", false
}

func (m *Model) step(n int) {
	if size := len(m.choices); size > 0 {
		m.at = (m.at + n + size) % size
	}
}

// choose takes a choice. A no of an approval first asks for words.
func (m *Model) choose(id string) Action {
	if !m.approval {
		return Action{Used: true, Done: true, Choice: id}
	}
	if id == string(p.Denied) {
		m.writing = true
		return used
	}
	if id == always {
		return Action{Used: true, Done: true, Decision: p.Approved, Always: true}
	}
	return Action{Used: true, Done: true, Decision: p.Decision(id)}
}

// wordsKey takes the keys of the line for words to the model.
func (m *Model) wordsKey(k tea.KeyPressMsg) Action {
	switch name := k.Keystroke(); name {
	case "enter":
		return Action{Used: true, Done: true, Decision: p.Denied, Message: strings.TrimSpace(m.words.Text())}
	case "esc": // back to the choices, words kept; it is not the first of two
		m.writing = false
	case "ctrl+j", "shift+enter", "alt+enter":
		m.words.Type("\n")
	case "up":
		m.words.Up()
	case "down":
		m.words.Down()
	case "pgup", "pgdown":
		m.body.key(name)
	default:
		if name == "ctrl+d" && m.words.Empty() {
			return Action{}
		}
		return Action{Used: m.words.Key(k)}
	}
	return used
}

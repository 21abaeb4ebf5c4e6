package dialog

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	p "github.com/fermata-agent/fermata/protocol"
)

// guard keeps a dialog from being answered by a sentence that is being typed.
type guard struct {
	quiet time.Duration
	on    bool
	n     int // counts the keys, so that only the last timer ends the wait

	held   tea.KeyPressMsg // a letter that answers if no key follows; its Code is 0 if there is none
	before int             // the choice that Enter took before it
}

// paused says that no key came for the quiet time after the nth.
type paused struct {
	to *Dialog
	n  int
}

// Guard lets a letter answer the dialog only if no key was pressed for the quiet time before
// it and presses no other key for the quiet time after it. Until then keys are left to the
// application (Action.Used is false), so that a sentence goes where it was meant to go,
// whether its writer has not noticed the dialog or it opened under their hands. Enter takes
// a letter at once, Esc takes it back.
func (m *Dialog) Guard(quiet time.Duration) tea.Cmd {
	m.guard.quiet, m.guard.on = quiet, true
	return m.wait()
}

func (m *Dialog) wait() tea.Cmd {
	m.guard.n++
	end := paused{m, m.guard.n}
	return tea.Tick(m.guard.quiet, func(time.Time) tea.Msg { return end })
}

// hold keeps a letter until it is known whether another key follows. What it stands for is
// marked at once.
func (m *Dialog) hold(k tea.KeyPressMsg, choice int) {
	m.guard.held, m.guard.before = k, m.list.At
	m.list.At = choice
}

// Withdraw takes back a letter that has not answered yet, and returns it; its Code is 0 if there is none.
func (m *Dialog) Withdraw() tea.KeyPressMsg {
	k := m.guard.held
	if k.Code != 0 {
		m.guard.held, m.list.At = tea.KeyPressMsg{}, m.guard.before
	}
	return k
}

// onPause ends the guard, and takes the letter that was held.
func (m *Dialog) onPause() Answer {
	m.guard.on = false
	if m.guard.held.Code == 0 {
		return used
	}
	m.guard.held = tea.KeyPressMsg{}
	return m.choose(m.choices[m.list.At].ID)
}

// Listening reports whether a key would be taken as an answer: not as a part of
// a text, and not by the guard.
func (m *Dialog) Listening() bool { return !m.guard.on && !m.writing && m.guard.held.Code == 0 }

var used = Answer{Used: true}

// Update takes a key, a paste, the mouse wheel, or the answer to one of its commands.
func (m *Dialog) Update(msg tea.Msg) (Answer, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return m.press(msg)
	case tea.PasteMsg:
		if m.writing {
			m.words.Insert(msg.Content)
			return used, nil
		}
		if first := m.Withdraw(); first.Code != 0 { // a text is being written
			m.guard.on = true
			return Answer{First: first}, m.wait()
		}
		return Answer{Used: !m.guard.on}, nil // a paste is no answer
	case tea.MouseWheelMsg:
		return m.wheel(msg), nil
	case paused:
		switch {
		case msg.to != m:
			return Answer{}, nil
		case msg.n != m.guard.n:
			return used, nil
		}
		return m.onPause(), nil
	}
	return Answer{}, nil
}

// press takes a key, unless it belongs to a text that is being typed.
func (m *Dialog) press(k tea.KeyPressMsg) (Answer, tea.Cmd) {
	if m.guard.on {
		return Answer{}, m.wait()
	}
	if m.guard.held.Code != 0 {
		switch k.Keystroke() {
		case "enter": // it is meant
			a := m.onPause()
			if m.writing {
				return m.key(k), nil
			}
			return a, nil
		case "esc": // it is not
			m.Withdraw()
		default:
			m.guard.on = true
			return Answer{First: m.Withdraw()}, m.wait()
		}
	}
	a := m.key(k)
	if m.guard.on || m.guard.held.Code != 0 {
		return a, m.wait()
	}
	return a, nil
}

func (m *Dialog) wheel(msg tea.MouseWheelMsg) Answer {
	switch msg.Button {
	case tea.MouseWheelUp:
		m.body.scroll(-3)
	case tea.MouseWheelDown:
		m.body.scroll(3)
	default:
		return Answer{}
	}
	return used
}

func (m *Dialog) key(k tea.KeyPressMsg) Answer {
	if m.writing {
		return m.wordsKey(k)
	}
	name := k.Keystroke()
	escaped := m.escaped
	m.escaped = name == "esc"
	if i, ok := m.named(k); ok {
		if m.guard.quiet > 0 && k.Text != "" {
			m.hold(k, i)
			return used
		}
		return m.choose(m.choices[i].ID)
	}
	switch name {
	case "enter":
		if len(m.choices) == 0 {
			return Answer{Used: true, Done: true}
		}
		return m.choose(m.choices[m.list.At].ID)
	case "up", "left", "shift+tab", "ctrl+p":
		m.list.Step(-1, len(m.choices))
	case "down", "right", "tab", "ctrl+n":
		m.list.Step(1, len(m.choices))
	case "esc":
		if !m.approval {
			return Answer{Used: true, Done: true}
		}
		if escaped {
			return m.choose(string(p.Abort))
		}
	default:
		if (k.Text == "" || m.Scrolls()) && m.body.key(name) {
			return used
		}
		// A letter that is no answer belongs to a text, if that is guarded against; else it is swallowed.
		m.guard.on = k.Text != "" && m.guard.quiet > 0
		return Answer{Used: k.Text != "" && !m.guard.on}
	}
	return used
}

// named returns the choice that a key stands for, whether or not Caps Lock is on.
func (m *Dialog) named(k tea.KeyPressMsg) (int, bool) {
	for i, c := range m.choices {
		if c.Key == k.String() || c.Key == k.Keystroke() {
			return i, true
		}
	}
	for i, c := range m.choices {
		if k.Text != "" && strings.EqualFold(c.Key, k.Text) {
			return i, true
		}
	}
	return 0, false
}

// choose takes a choice. A no of an approval first asks for words.
func (m *Dialog) choose(id string) Answer {
	if !m.approval {
		return Answer{Used: true, Done: true, Choice: id}
	}
	if id == string(p.Denied) {
		m.writing = true
		return used
	}
	if id == always {
		return Answer{Used: true, Done: true, Decision: p.Approved, Always: true}
	}
	return Answer{Used: true, Done: true, Decision: p.Decision(id)}
}

// wordsKey takes the keys of the line for words to the model.
func (m *Dialog) wordsKey(k tea.KeyPressMsg) Answer {
	switch name := k.Keystroke(); name {
	case "enter":
		return Answer{Used: true, Done: true, Decision: p.Denied, Message: strings.TrimSpace(m.words.Text())}
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
			return Answer{}
		}
		return Answer{Used: m.words.Key(k)}
	}
	return used
}

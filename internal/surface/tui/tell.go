package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/safetext"
)

// setting is how the person wants the screen to be.
func (m *model) setting() config.Screen {
	if m.o.Config == nil {
		return config.Screen{Title: true, Mouse: true, Theme: "auto"}
	}
	return m.o.Config.Screen
}

// takesMouse reports whether the program takes the mouse.
func (m *model) takesMouse() bool { return m.setting().Mouse && !m.inline() }

// inline reports whether the conversation goes to the terminal's own scrollback, in place of the
// alternate screen.
func (m *model) inline() bool { return m.setting().Inline }

// allTaken reports whether all that was said is in the scrollback: it ends with an empty line.
func (m *model) allTaken() bool { return m.inline() && m.view.Empty() && len(m.talk.tr.Items) > 0 }

// TakeAbove returns what is finished, inline: it is the terminal's from then on.
func (m *model) TakeAbove() []string {
	if !m.inline() || m.screen != nil {
		return nil
	}
	m.view.SetSize(m.width-2*m.margin(), m.height)
	return m.indent(m.view.Take(time.Now()))
}

// title is what the window says of us.
func (m *model) title() string {
	state := ""
	switch {
	case m.waits() || m.talk.tr.Active && m.talk.tr.Hold != nil:
		state = "● waiting"
	case m.busy():
		state = "⠧ working"
	case m.talk.id != "":
		state = "✓ done"
	default:
		return "fermata"
	}
	if name := m.talk.tr.Title; name != "" {
		return state + " · " + safetext.Cut(safetext.Line(name), 40)
	}
	return state + " · fermata"
}

// waits reports whether a person is asked something.
func (m *model) waits() bool { return m.talk.tr.Active && len(m.talk.asks) > 0 }

// notifies reports whether the person wants to be notified by the terminal.
func (m *model) notifies() bool { return m.o.Config != nil && m.o.Config.Notifications }

// notify lets the terminal notify the person: by its bell, and, if they look elsewhere, in
// the two ways that terminals know.
func (m *model) notify(text string) tea.Cmd {
	out := ""
	if m.setting().Bell {
		out += "\a"
	}
	if m.notifies() && m.unfocused {
		out += ansi.Notify(text) + "\x1b]777;notify;fermata;" + text + "\x1b\\"
	}
	if out == "" {
		return nil
	}
	return tea.Raw(out)
}

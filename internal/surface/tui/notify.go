package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// setting is how the person wants the screen to be.
func (m *model) setting() config.Screen {
	if m.o.Config == nil {
		return config.Screen{Title: true, Mouse: true, Theme: "auto", NotifyApproval: true, NotifyHold: true, NotifyTurnEnded: true, NotifyRecovered: true}
	}
	return m.o.Config.Screen
}

// takesMouse reports whether the program takes the mouse.
func (m *model) takesMouse() bool { return m.setting().Mouse && !m.inline() }

// inline reports whether the conversation goes to the terminal's own scrollback, in place of the
// alternate screen.
func (m *model) inline() bool { return m.setting().Inline }

// allTaken reports whether all of the conversation is in the scrollback: it ends with an empty line.
func (m *model) allTaken() bool { return m.inline() && m.view.Empty() && len(m.conv.tr.Items) > 0 }

// TakeAbove returns what is finished, inline: it is the terminal's from then on.
func (m *model) TakeAbove() []string {
	if !m.inline() || m.screen != nil {
		return nil
	}
	m.view.SetSize(m.width-2*m.margin(), m.height)
	return m.indent(m.view.Take(time.Now()))
}

// waits reports whether a person is asked something.
func (m *model) waits() bool {
	return m.conv.tr.Active && (len(m.conv.asks) > 0 || m.question() != nil)
}

// notifies reports whether the person wants to be notified by the terminal.
func (m *model) notifies() bool { return m.o.Config != nil && m.o.Config.Notifications }

// watched is what a person may want to hear of, as it was before some events.
type watched struct {
	asks, questions  int
	active, held, on bool // on: it was not of long ago
}

func (m *model) watch() watched {
	t := &m.conv
	return watched{len(t.asks), len(t.questions), t.tr.Active, t.tr.Hold != nil, t.caughtUp()}
}

// notifyOf notifies the person of what has happened since.
func (m *model) notifyOf(w watched) tea.Cmd {
	t, set := &m.conv, m.setting()
	switch {
	case !w.on:
	case len(t.asks) > w.asks && set.NotifyApproval:
		return m.notify("fermata asks for an approval")
	case len(t.questions) > w.questions && set.NotifyApproval:
		return m.notify("fermata: an MCP server asks something")
	case t.tr.Hold != nil && !w.held && set.NotifyHold:
		return m.notify("fermata waits for a limit of the model service")
	case w.active && !t.tr.Active && t.ended == p.Crashed && set.NotifyRecovered: // in the process that we had joined
		return m.notify("fermata: a crash ended the turn; the conversation is recovered")
	case w.active && !t.tr.Active && t.ended != p.Crashed && set.NotifyTurnEnded:
		return m.notify("fermata: the turn has ended")
	}
	return nil
}

// notifyOfRecovery notifies the person that the conversation was not closed as it should have been.
func (m *model) notifyOfRecovery(snap engine.Snapshot) tea.Cmd {
	if len(snap.Recovered) == 0 || !m.setting().NotifyRecovered {
		return nil
	}
	return m.notify("fermata: the conversation is recovered after a crash")
}

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

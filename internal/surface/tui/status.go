package tui

import (
	"time"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
)

// statusLine is the last line of the screen: what goes on, and with what. A hint
// takes its place, but never that of a stop.
func (m *model) statusLine(now time.Time) string {
	if m.hint.text != "" && !m.stopping() && m.leaving == nil {
		return m.theme.Paint(m.hint.role, safetext.Cut(m.hint.text, m.width))
	}
	s := m.Settings()
	return m.state().Line(now, screen.Facts{
		Settings: s, Place: m.place(s.Cwd), Context: m.conv.context, Usage: m.conv.base.Add(m.conv.tr.Usage),
		Cost: m.o.Cost, Background: len(m.conv.tr.Running),
	}, m.width, m.theme)
}

// state is what goes on.
func (m *model) state() screen.State {
	s := screen.State{
		Transcript: m.conv.tr, Begun: m.conv.id != "", Quitting: m.leaving != nil,
		Opening: m.opening != nil || !m.conv.caughtUp(), Busy: m.Busy(), Stopping: m.stopping(),
		Asking: m.waits(), AsksPlan: m.dialog != nil && m.dialog.plan, Planning: m.conv.planning, Frame: m.frame,
	}
	if at := m.conv.loading; at != nil {
		s.Loading, s.Percent = true, int(100*at.Load()/max(1, uint64(m.conv.last)))
	}
	return s
}

// place is the directory and the branch.
func (m *model) place(dir string) string {
	return safetext.Line(screen.Place(screen.InHome(dir, m.o.Home), m.where))
}

// ShortDir is a directory as it is shown.
func (m *model) ShortDir(dir string) string { return safetext.Line(screen.InHome(dir, m.o.Home)) }

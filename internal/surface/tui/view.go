package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// View draws the screen: always exactly as many lines as it is high.
func (m *model) View() tea.View {
	lines, cursor := m.draw(time.Now())
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = !m.inline() || m.overlay != nil
	if m.takesMouse() {
		v.MouseMode = tea.MouseModeCellMotion
	}
	if m.setting().Title {
		v.WindowTitle = m.state().Title()
	}
	v.Cursor = cursor
	v.ReportFocus = m.notify.On
	return v
}

// margin is how much is left free at each side of the conversation, and above the box.
func (m *model) margin() int {
	if m.width < 60 || m.height < 16 {
		return 0
	}
	return 1
}

func (m *model) draw(now time.Time) ([]string, *tea.Cursor) {
	if m.overlay != nil {
		lines, cursor := m.overlay.View(m.width, m.height)
		return screen.Exactly(lines, m.height), cursor
	}
	room := m.height - 1 // for the status line
	box, popup, cursor := m.box(room)
	chips := m.chips(min(3, room-len(box)-len(popup)))
	below := m.below(room - len(box) - len(popup) - len(chips))
	margin := m.margin()
	if len(below) == 0 && len(chips) == 0 && margin > 0 && len(box)+len(popup)+4 < room && !m.allTaken() {
		below = []string{""}
	}
	top := max(0, room-len(box)-len(popup)-len(chips)-len(below))

	lines := m.sel.Mark(m.indent(m.items(top, now)), m.theme)
	lines = append(lines, below...)
	lines = append(lines, chips...)
	lines = append(lines, popup...)
	if cursor != nil {
		at := *cursor
		at.Y += len(lines)
		cursor = &at
		if at.Y >= room { // the screen is too small for it
			cursor = nil
		}
	}
	lines = append(lines, box...)
	if !m.inline() {
		lines = screen.Exactly(lines, room)
	}
	return append(lines[:min(room, len(lines))], m.statusLine(now)), cursor
}

// items are what is shown of the conversation, in so many lines; inline at most as many.
func (m *model) items(height int, now time.Time) []string {
	m.view.SetSize(m.width-2*m.margin(), height)
	if len(m.conv.Transcript.Items) == 0 && len(m.notes) == 0 && m.conv.CaughtUp() && !m.Opening() {
		s := m.Settings()
		lines := screen.Welcome(s, m.o.Version, m.place(s.Cwd), m.width-2*m.margin(), m.theme)
		if m.inline() {
			height = min(height, len(lines))
		}
		return screen.Exactly(lines, height)
	}
	if m.inline() {
		m.view.SetSize(m.width-2*m.margin(), min(height, m.view.Height(now)))
	}
	return m.view.Lines(now)
}

func (m *model) indent(lines []string) []string { return screen.Indent(lines, m.margin()) }

// box is the composer, or the dialog in its place, and the popup above it.
func (m *model) box(room int) (box, popup []string, cursor *tea.Cursor) {
	if d := m.ask.Open; d != nil {
		box, cursor = d.View(m.width, max(1, min(room, max(room*2/3, 8))))
		if m.comp.Empty() && d.Scrolls() { // what is asked about matters most
			box, cursor = d.View(m.width, max(1, room))
		}
		if !m.comp.Empty() && room-len(box) > 6 { // the user may be typing in it
			draft, _ := m.comp.View(m.width, 3)
			box = append(box, draft...)
		}
		return box, nil, cursor
	}
	box, cursor = m.comp.View(m.width, max(1, min(12, room*2/3)))
	popup = m.comp.Popup(m.width)
	if most := room - len(box) - 1; len(popup) > most {
		popup = popup[:max(0, most)]
	}
	return box, popup, cursor
}

// chips are the messages that wait, one line each, the last ones if there are
// many.
func (m *model) chips(most int) []string {
	var sending []string
	if m.conv.Transcript.Active || m.Opening() { // else they are there in a moment
		sending = m.Out.Messages()
	}
	list := screen.Chips(m.conv.Transcript.Inputs, sending, m.width, m.theme)
	return list[max(0, len(list)-max(0, most)):]
}

// below says how much there is below the window.
func (m *model) below(room int) []string {
	if m.view.Following() || room < 3 || m.view.Below() == 0 {
		return nil
	}
	text := "  ↓ " + humanize.Count(m.view.Below(), "more line") + " below (Esc or End goes there)"
	return []string{m.theme.Paint(theme.Dim, safetext.Cut(text, m.width))}
}

// takesMouse reports whether the program takes the mouse.
func (m *model) takesMouse() bool { return m.setting().Mouse && !m.inline() }

// inline reports whether the conversation goes to the terminal's own scrollback, in place of the
// alternate screen.
func (m *model) inline() bool { return m.setting().Inline }

// allTaken reports whether all of the conversation is in the scrollback: it ends with an empty line.
func (m *model) allTaken() bool {
	return m.inline() && m.view.Empty() && len(m.conv.Transcript.Items) > 0
}

// TakeAbove returns what is finished, inline: it is the terminal's from then on.
func (m *model) TakeAbove() []string {
	if !m.inline() || m.overlay != nil {
		return nil
	}
	m.view.SetSize(m.width-2*m.margin(), m.height)
	return m.indent(m.view.Take(time.Now()))
}

// itemOptions is how items are drawn outside of the window.
func (m *model) itemOptions(width int) draw.Options {
	return draw.Options{Width: width, Theme: m.theme, Now: time.Now(), Dir: m.Settings().Cwd, HideReasoning: m.hidesReasoning()}
}

// statusLine is the last line of the screen: what is at work, and with what. A hint
// takes its place, but never that of a stop.
func (m *model) statusLine(now time.Time) string {
	if hint := m.hint.Line(m.width, m.theme); hint != "" && !m.Stopping() && m.leaving == nil {
		return hint
	}
	s := m.Settings()
	return m.state().Line(now, screen.Facts{
		Settings: s, Place: m.place(s.Cwd), Context: m.conv.Context, Usage: m.conv.Usage(),
		Cost: m.o.Cost, Background: len(m.conv.Transcript.Running),
	}, m.width, m.theme)
}

// state is what is at work.
func (m *model) state() screen.State {
	t := m.conv
	s := screen.State{
		Transcript: t.Transcript, Begun: t.ID != "", Quitting: m.leaving != nil,
		Opening: m.Opening() || !t.CaughtUp(), Busy: m.Busy(), Stopping: m.Stopping(),
		Asking: t.Waits(), AsksPlan: m.ask.AsksPlan(), Planning: t.Planning, Frame: m.spinner.Frame,
	}
	if t.Loading != nil {
		s.Loading, s.Percent = true, t.Percent()
	}
	return s
}

// place is the directory and the branch.
func (m *model) place(dir string) string {
	return safetext.Line(screen.Place(screen.InHome(dir, m.o.Home), m.branch))
}

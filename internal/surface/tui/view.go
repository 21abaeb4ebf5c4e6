package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
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
		return exactly(lines, m.height), cursor
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
		lines = exactly(lines, room)
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
		return exactly(lines, height)
	}
	if m.inline() {
		m.view.SetSize(m.width-2*m.margin(), min(height, m.view.Height(now)))
	}
	return m.view.Lines(now)
}

// indent puts the margin before lines.
func (m *model) indent(lines []string) []string {
	for i := range lines {
		if lines[i] != "" {
			lines[i] = strings.Repeat(" ", m.margin()) + lines[i]
		}
	}
	return lines
}

// box is the composer, or the dialog in its place, and the popup above it.
func (m *model) box(room int) (box, popup []string, cursor *tea.Cursor) {
	if m.dialog != nil {
		box, cursor = m.dialog.View(m.width, max(1, min(room, max(room*2/3, 8))))
		if m.comp.Empty() && m.dialog.Scrolls() { // what is asked about matters most
			box, cursor = m.dialog.View(m.width, max(1, room))
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
	var list []string
	for _, in := range m.conv.Transcript.Inputs {
		list = append(list, m.chip(modeWord(in.Mode), p.Written(in.Content)))
	}
	for _, text := range m.Out.Messages() {
		if m.conv.Transcript.Active || m.Opening() { // else it is there in a moment
			list = append(list, m.chip("sending", text))
		}
	}
	if most = max(0, most); len(list) > most {
		list = list[len(list)-most:]
	}
	return list
}

// modeWord says what becomes of a message that waits.
func modeWord(mode p.WhenBusy) string {
	switch mode {
	case p.Queue:
		return "queued"
	case p.Replace:
		return "replacing"
	}
	return "steering"
}

func (m *model) chip(what, text string) string {
	line := strings.Join(strings.Fields(safetext.Clean(text)), " ")
	line = safetext.Cut(fmt.Sprintf("  ⤷ %s: %s", what, line), m.width-14)
	return m.theme.Paint(theme.User, line) + m.theme.Paint(theme.Dim, safetext.Cut("  (↑ edits)", m.width-safetext.Width(line)))
}

// below says how much there is below the window.
func (m *model) below(room int) []string {
	if m.view.Following() || room < 3 {
		return nil
	}
	n := m.view.Below()
	if n == 0 {
		return nil
	}
	return []string{m.theme.Paint(theme.Dim, safetext.Cut("  ↓ "+humanize.Count(n, "more line")+" below (Esc or End goes there)", m.width))}
}

// exactly makes a list n lines long.
func exactly(lines []string, n int) []string {
	if len(lines) > n {
		return lines[:max(0, n)]
	}
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines
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
		Asking: t.Waits(), AsksPlan: m.dialog != nil && m.dialog.plan, Planning: t.Planning, Frame: m.frame,
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

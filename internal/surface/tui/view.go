package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// View draws the screen: always exactly as many lines as it is high.
func (m *model) View() tea.View {
	lines, cursor := m.draw(time.Now())
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = !m.inline() || m.screen != nil
	if m.takesMouse() {
		v.MouseMode = tea.MouseModeCellMotion
	}
	if m.setting().Title {
		v.WindowTitle = m.state().Title()
	}
	v.Cursor = cursor
	v.ReportFocus = m.notifies()
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
	if m.screen != nil {
		lines, cursor := m.screen.view(m.width, m.height)
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

	lines := m.sel.Mark(m.indent(m.conversation(top, now)), m.theme)
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

// conversation is what is shown of it, in so many lines; inline at most as many.
func (m *model) conversation(height int, now time.Time) []string {
	m.view.SetSize(m.width-2*m.margin(), height)
	if len(m.conv.tr.Items) == 0 && len(m.conv.notes) == 0 && m.conv.caughtUp() && m.opening == nil {
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
		if !m.comp.Empty() && room-len(box) > 6 { // it may be under somebody's hands
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
	for _, in := range m.conv.tr.Inputs {
		list = append(list, m.chip(word(in.Mode), p.Written(in.Content)))
	}
	for _, text := range m.out.Messages() {
		if m.conv.tr.Active || m.opening != nil { // else it is there in a moment
			list = append(list, m.chip("sending", text))
		}
	}
	if most = max(0, most); len(list) > most {
		list = list[len(list)-most:]
	}
	return list
}

func word(mode p.WhenBusy) string {
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

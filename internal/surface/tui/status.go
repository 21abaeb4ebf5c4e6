package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/surface/tui/words"
	p "github.com/fermata-agent/fermata/protocol"
)

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// status is the last line of the screen: what goes on, and with what. A hint
// takes its place, but never that of a stop.
func (m *model) status(now time.Time) string {
	if m.hint.text != "" && !m.stopping() && m.leaving == nil {
		return m.theme.Paint(m.hint.role, safetext.Cut(m.hint.text, m.width))
	}
	state, role := m.state(now)
	line := safetext.Cut(state, m.width)
	rest := words.Fit(m.facts(), m.width-safetext.Width(line)-3)
	if rest == "" {
		return m.theme.Paint(role, line)
	}
	gap := m.width - safetext.Width(line) - safetext.Width(rest)
	return m.theme.Paint(role, line) + strings.Repeat(" ", max(1, gap)) + m.theme.Paint(theme.Dim, rest)
}

// state is what goes on.
func (m *model) state(now time.Time) (string, theme.Role) {
	tr := m.conv.tr
	turning := spinner[m.frame%len(spinner)] + " "
	elapsed := func() string { return words.Clock(now.Sub(tr.Started)) }
	switch {
	case m.leaving != nil && m.Busy():
		return turning + "stopping the turn, then quitting…", theme.Warn
	case m.leaving != nil:
		return turning + "quitting…", theme.Warn
	case m.stopping():
		return turning + "stopping…", theme.Warn
	case m.opening != nil || !m.conv.caughtUp():
		return turning + "opening…", theme.Accent
	case m.waits():
		return "● waiting for your answer " + elapsed(), theme.Warn
	case m.dialog != nil && m.dialog.plan:
		return "● the plan waits for your answer", theme.Warn
	case tr.Active && tr.Hold != nil:
		return "● waiting for a limit " + elapsed() + " · /try-now · Esc stops", theme.Warn
	case tr.Active && m.conv.planning:
		return turning + "planning " + elapsed() + " · Esc stops", theme.Accent
	case tr.Active:
		return turning + "working " + elapsed() + " · Esc stops", theme.Accent
	case m.Busy():
		return turning + "sending…", theme.Accent
	case m.conv.loading != nil:
		return fmt.Sprintf("%sloading… %d %%", turning, m.conv.percent()), theme.Accent
	}
	return "ready · /help", theme.Dim
}

func (m *model) facts() []words.Fact {
	s := m.Settings()
	list := []words.Fact{{Text: strings.TrimSpace(s.Model + " " + s.Effort), Rank: 9}, {Text: m.place(s.Cwd), Rank: 7}}
	if n := m.conv.context; n > 0 {
		text := "context " + words.Tokens(n)
		if s.ContextWindow > 0 {
			text = fmt.Sprintf("context %d %%", min(100, 100*n/s.ContextWindow))
		}
		list = append(list, words.Fact{Text: text, Rank: 6})
	}
	if u := m.conv.base.Add(m.conv.tr.Usage); u.Total > 0 {
		list = append(list, words.Fact{Text: words.Tokens(u.Total) + " tokens" + m.cost(s, u), Rank: 3})
	}
	if s.Plan {
		list = append(list, words.Fact{Text: "plan mode: read-only", Rank: 10})
	} else {
		list = append(list, words.Fact{Text: string(s.Sandbox.Mode), Rank: 5}, words.Fact{Text: words.Asks(s.Approval), Rank: 4})
	}
	if n := len(m.conv.tr.Running); n > 0 {
		list = append(list, words.Fact{Text: fmt.Sprintf("%d in background", n), Rank: 8})
	}
	return slices.DeleteFunc(list, func(f words.Fact) bool { return f.Text == "" })
}

// place is the directory and the branch.
func (m *model) place(dir string) string {
	if home := m.o.Home; home != "" && (dir == home || strings.HasPrefix(dir, home+"/")) {
		dir = "~" + strings.TrimPrefix(dir, home)
	}
	if len([]rune(dir)) > 30 { // the end says more
		r := []rune(dir)
		dir = "…" + string(r[len(r)-29:])
	}
	if m.where != "" && dir != "" {
		dir += " (" + m.where + ")"
	}
	return safetext.Line(dir)
}

// cost is what the conversation has cost so far, if the model's price is known.
func (m *model) cost(s p.Settings, u p.Usage) string {
	if m.o.Cost == nil {
		return ""
	}
	dollars, ok := m.o.Cost(s, u)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" $%.2f", dollars)
}

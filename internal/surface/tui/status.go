package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
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
	rest := fit(m.facts(), m.width-safetext.Width(line)-3)
	if rest == "" {
		return m.theme.Paint(role, line)
	}
	gap := m.width - safetext.Width(line) - safetext.Width(rest)
	return m.theme.Paint(role, line) + strings.Repeat(" ", max(1, gap)) + m.theme.Paint(theme.Dim, rest)
}

// state is what goes on.
func (m *model) state(now time.Time) (string, theme.Role) {
	tr := m.talk.tr
	turning := spinner[m.frame%len(spinner)] + " "
	elapsed := func() string { return clock(now.Sub(tr.Started)) }
	switch {
	case m.leaving != nil && m.busy():
		return turning + "stopping the turn, then quitting…", theme.Warn
	case m.leaving != nil:
		return turning + "quitting…", theme.Warn
	case m.stopping():
		return turning + "stopping…", theme.Warn
	case m.opening != nil || !m.talk.caught():
		return turning + "opening…", theme.Accent
	case tr.Active && len(m.talk.asks) > 0:
		return "● waiting for your answer " + elapsed(), theme.Warn
	case tr.Active && tr.Hold != nil:
		return "● waiting for a limit " + elapsed() + " · /try-now · Esc stops", theme.Warn
	case tr.Active && m.talk.planning:
		return turning + "planning " + elapsed() + " · Esc stops", theme.Accent
	case tr.Active:
		return turning + "working " + elapsed() + " · Esc stops", theme.Accent
	case m.busy():
		return turning + "sending…", theme.Accent
	case m.talk.loading != nil:
		return fmt.Sprintf("%sloading… %d %%", turning, m.talk.percent()), theme.Accent
	}
	return "ready · /help", theme.Dim
}

// A fact is a part of the status line. Where there is little room, those of
// the lowest rank are left out.
type fact struct {
	text string
	rank int
}

func (m *model) facts() []fact {
	s := m.settings()
	list := []fact{{strings.TrimSpace(s.Model + " " + s.Effort), 9}, {m.place(s.Cwd), 7}}
	if n := m.talk.context; n > 0 {
		text := "context " + tokens(n)
		if s.ContextWindow > 0 {
			text = fmt.Sprintf("context %d %%", min(100, 100*n/s.ContextWindow))
		}
		list = append(list, fact{text, 6})
	}
	if u := m.talk.base.Add(m.talk.tr.Usage); u.Total > 0 {
		list = append(list, fact{tokens(u.Total) + " tokens" + m.cost(s, u), 3})
	}
	if s.Plan {
		list = append(list, fact{"plan mode: read-only", 10})
	} else {
		list = append(list, fact{string(s.Sandbox.Mode), 5}, fact{asks(s.Approval), 4})
	}
	if n := len(m.talk.tr.Running); n > 0 {
		list = append(list, fact{fmt.Sprintf("%d in background", n), 8})
	}
	return slices.DeleteFunc(list, func(f fact) bool { return f.text == "" })
}

// asks says when a person is asked.
func asks(a p.ApprovalPolicy) string {
	switch a {
	case p.ApprovalNever:
		return "never asks"
	case p.ApprovalOnRequest:
		return "asks on request"
	case p.ApprovalOnFailure:
		return "asks on failure"
	case p.ApprovalUntrusted:
		return "asks for unknown commands"
	}
	return string(a)
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

// fit joins as many facts as fit, in their order.
func fit(list []fact, width int) string {
	for len(list) > 0 {
		var words []string
		least := 0
		for i, f := range list {
			words = append(words, f.text)
			if f.rank < list[least].rank {
				least = i
			}
		}
		line := strings.Join(words, " · ")
		if safetext.Width(line) <= width {
			return line
		}
		list = slices.Delete(slices.Clone(list), least, least+1)
	}
	return ""
}

func tokens(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%d M", n/1_000_000)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%d k", n/1000)
	case n >= 1000:
		return fmt.Sprintf("%.1f k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// clock is a time that runs, without parts that flicker.
func clock(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
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

package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// accepted is the message that follows an accepted plan.
const accepted = "The plan is accepted, and plan mode is over. Carry it out."

// plan turns plan mode on, with a task if one is given, or off. Where a plan waits to be
// accepted, it asks about it again.
func (m *model) plan(args string) tea.Cmd {
	on := m.Settings().Plan
	switch {
	case args == "off" && !on:
		return m.Hint(theme.Accent, "plan mode is off")
	case args == "off":
		return m.setPlan(false)
	case args != "" && m.Busy():
		return m.idle(nil)
	case args != "":
		return m.submitWith(composer.Submit{Text: args}, &p.Overrides{Plan: new(true)})
	case !on:
		return m.setPlan(true)
	case m.planned():
		return m.askAboutPlan()
	}
	return m.Hint(theme.Accent, "plan mode is on: describe a task; /plan off ends it")
}

// togglePlan turns plan mode on or off.
func (m *model) togglePlan() tea.Cmd { return m.setPlan(!m.Settings().Plan) }

func (m *model) setPlan(on bool) tea.Cmd {
	done := "plan mode is on: it only reads until you accept a plan"
	if !on {
		now := m.Settings()
		done = "plan mode is off: it may " + screen.May(now) + ", " + screen.Asks(now.Approval)
	}
	if m.Busy() {
		done += "; from the next turn"
	}
	return m.Configure(p.Overrides{Plan: &on}, done)
}

// planLabel says in the edge of the box whether it is plan mode.
func (m *model) planLabel() string {
	on, active := m.Settings().Plan, m.conv.tr.Active
	switch {
	case active && on && !m.conv.planning:
		return "plan mode from the next turn"
	case active && m.conv.planning || !active && on:
		return "plan mode: read-only until you accept a plan"
	}
	return ""
}

// planned reports whether the last turn was one in plan mode and has completed, so that there is
// something to accept.
func (m *model) planned() bool {
	return m.Settings().Plan && !m.Busy() && m.conv.proposed
}

// askAboutPlan asks whether the plan is accepted.
func (m *model) askAboutPlan() tea.Cmd {
	after := m.Settings()
	m.dialog = &asking{
		plan: true,
		Dialog: dialog.NewConfirm(m.theme, dialog.Confirm{
			Title: "Carry out this plan?",
			Body:  []string{"Nothing has been changed. If you accept it, plan mode ends."},
			Choices: []dialog.Choice{
				{ID: "yes", Key: "y", Label: "yes; then it may " + screen.May(after) + ", and " + screen.Asks(after.Approval)},
				{ID: "no", Key: "n", Label: "no, keep planning: say what should differ"},
				{ID: "off", Key: "o", Label: "no, and end plan mode"},
			},
		}),
		done: func(a dialog.Answer) tea.Cmd {
			switch a.Choice {
			case "yes":
				return m.acceptPlan()
			case "off":
				return m.setPlan(false)
			}
			return m.Hint(theme.Accent, "still in plan mode: say what should differ; /plan asks again")
		},
	}
	return m.dialog.Guard(guardTime)
}

func (m *model) acceptPlan() tea.Cmd {
	return m.send(&client.Op{Begins: true, Make: func(context.Context) (p.Op, error) {
		return p.UserTurn{Content: p.Text(accepted), Overrides: &p.Overrides{Plan: new(false)}}, nil
	}})
}

// endPlanDialog closes the question about a plan that was answered elsewhere.
func (m *model) endPlanDialog() {
	if m.dialog != nil && m.dialog.plan && !m.planned() {
		m.dialog = nil
	}
}

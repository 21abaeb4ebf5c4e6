package commands

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// acceptedPlan is the message that follows an accepted plan.
const acceptedPlan = "The plan is accepted, and plan mode is over. Carry it out."

// SwitchPlan turns plan mode on, with a task if there is one, or off. Where a plan can be accepted, it asks about it again.
func (s *Questions) SwitchPlan(args string) tea.Cmd {
	on := s.Settings().Plan
	switch {
	case args == "off" && !on:
		return s.Hint(theme.Accent, "plan mode is off")
	case args == "off":
		return s.SetPlan(false)
	case args != "" && s.Busy():
		return s.ShowError(engine.ErrBusy)
	case args != "":
		return s.Submit(args, &p.Overrides{Plan: new(true)})
	case !on:
		return s.SetPlan(true)
	case s.Client.HasPlan():
		return s.AskPlan()
	}
	return s.Hint(theme.Accent, "plan mode is on: describe a task; /plan off ends it")
}

// SetPlan turns plan mode on or off.
func (s Set) SetPlan(on bool) tea.Cmd {
	done := "plan mode is on: it only reads until you accept a plan"
	if !on {
		now := s.Settings()
		done = "plan mode is off: it may " + screen.May(now) + ", " + screen.Asks(now.Approval)
	}
	if s.Busy() {
		done += "; from the next turn"
	}
	return s.Configure(p.Overrides{Plan: &on}, done)
}

// planQuestion asks whether the plan is accepted.
func (s Set) planQuestion() dialog.Confirm {
	after := s.Settings()
	return dialog.Confirm{
		Title: "Carry out this plan?",
		Body:  []string{"Nothing has been changed. If you accept it, plan mode ends."},
		Choices: []dialog.Choice{
			{ID: "yes", Key: "y", Label: "yes; then it may " + screen.May(after) + ", and " + screen.Asks(after.Approval)},
			{ID: "no", Key: "n", Label: "no, keep planning: say what should differ"},
			{ID: "off", Key: "o", Label: "no, and end plan mode"},
		},
	}
}

// answerPlan does what the user has chosen.
func (s Set) answerPlan(choice string) tea.Cmd {
	switch choice {
	case "yes":
		return s.Send(&client.Op{Begins: true, Make: func(context.Context) (p.Op, error) {
			return p.UserTurn{Content: p.Text(acceptedPlan), Overrides: &p.Overrides{Plan: new(false)}}, nil
		}})
	case "off":
		return s.SetPlan(false)
	}
	return s.Hint(theme.Accent, "still in plan mode: say what should differ; /plan asks again")
}

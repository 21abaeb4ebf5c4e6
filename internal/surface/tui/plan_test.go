package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// now are the settings that the journal of a conversation ends with.
func now(d *driver) p.Settings {
	d.t.Helper()
	snap, err := d.e.Resume(d.t.Context(), d.m.conv.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	return snap.Settings
}

func writing(o *Options) {
	settings := o.Settings
	o.Settings = func(ctx context.Context) (p.Settings, error) {
		s, err := settings(ctx)
		s.Sandbox.Mode = p.SandboxWorkspaceWrite
		return s, err
	}
}

// The plan is made read-only; when it is accepted, the mode of before is in force with the turn that
// carries it out.
func TestPlanIsAccepted(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, writing)
		d.say("/plan", "enter")
		d.sees("plan mode is on", "plan mode: read-only until you accept a plan")
		d.say("tidy up", "enter")
		req := e.Request()
		if text := lastEnvironment(req); !strings.Contains(text, "Plan mode is on") || !strings.Contains(text, "<sandbox_mode>read-only<") {
			t.Errorf("the model is sent\n%s", text)
		}
		d.sees("planning")
		if s := now(d); !s.Plan || s.Sandbox.Mode != p.SandboxWorkspaceWrite {
			t.Errorf("the settings are %+v", s)
		}
		req.Answer("First this, then that.")
		d.wait(time.Second)
		d.sees("Carry out this plan?", "then it may write in this directory")
		d.answer("y")
		d.wait(time.Second)
		req = e.Request()
		if text := lastEnvironment(req); !strings.Contains(text, "The plan is accepted") || !strings.Contains(text, "<sandbox_mode>workspace-write<") {
			t.Errorf("the model is sent\n%s", text)
		}
		d.sees("working")
		d.seesNot("plan mode: read-only")
		if now(d).Plan {
			t.Error("plan mode is still on")
		}
		req.Answer("Done.")
		d.wait(time.Second)
		d.seesNot("Carry out")
	})
}

func TestPlanIsChangedThenDropped(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, writing)
		d.say("/plan tidy up", "enter")
		e.Request().Answer("First this.")
		d.wait(time.Second)
		d.answer("n")
		d.sees("still in plan mode")
		answered(d, "shorter", "This.")
		d.sees("Carry out this plan?")
		d.press("esc")
		d.seesNot("Carry out")
		d.say("/plan", "enter")
		d.wait(time.Second)
		d.sees("Carry out this plan?")
		d.press("o")
		d.wait(time.Second)
		d.sees("plan mode is off: it may write in this directory")
		if now(d).Plan {
			t.Error("plan mode is still on")
		}
		d.press("shift+tab")
		d.wait(time.Second)
		if d.sees("plan mode is on"); !now(d).Plan {
			t.Error("plan mode is not on")
		}
		d.say("/plan off", "enter")
		d.wait(time.Second)
		d.seesNot("until you accept")
	})
}

// An interrupted turn has proposed nothing.
func TestInterruptedPlanIsNotOffered(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, writing)
		d.say("/plan tidy up", "enter")
		e.Request().Delta("First")
		d.wait(time.Second)
		d.press("esc")
		d.wait(time.Second)
		d.sees("interrupted", "plan mode: read-only until you accept a plan")
		d.seesNot("Carry out")
		d.say("/plan", "enter")
		d.sees("describe a task")
	})
}

// A second client sees the mode, is asked too, and its question goes when the other has answered.
func TestPlanForTwoClients(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, writing)
		answered(d, "hello", "hi")
		other := drive(t, e, resuming(d.m.conv.ID))
		other.wait(time.Second)
		d.say("/plan tidy up", "enter")
		other.wait(time.Second)
		other.sees("planning", "plan mode: read-only until you accept a plan")
		e.Request().Answer("First this.")
		d.wait(time.Second)
		other.wait(time.Second)
		other.sees("Carry out this plan?")
		d.answer("y")
		d.wait(time.Second)
		e.Request()
		other.wait(time.Second)
		other.seesNot("Carry out this plan?", "plan mode: read-only")
		other.sees("working")
		d.press("esc")
		d.wait(time.Second)
	})
}

// lastEnvironment is what the model was last sent of its environment, and what came after it.
func lastEnvironment(r *enginetest.Request) string {
	var all strings.Builder
	for _, it := range r.Prompt.Items {
		all.WriteString(p.PlainText(it.Content) + "\n")
	}
	text := all.String()
	return text[max(0, strings.LastIndex(text, "<environment_context>")):]
}

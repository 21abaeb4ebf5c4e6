package engine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

func TestWrongSettingsAreNamed(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		for _, tt := range []struct {
			field    string
			settings p.Settings
		}{
			{"Settings.Cwd", p.Settings{Cwd: "src"}},
			{"Settings.ContextWindow", p.Settings{ContextWindow: -1}},
			{"Settings.Approval", p.Settings{Approval: "sometimes"}},
			{"Settings.Sandbox.Mode", p.Settings{Sandbox: p.SandboxPolicy{Mode: "none"}}},
			{"Settings.OutputSchema", p.Settings{OutputSchema: json.RawMessage("{")}},
		} {
			_, err := e.Create(t.Context(), tt.settings)
			wantField(t, err, tt.field)
		}
		bad := p.ApprovalPolicy("sometimes")
		for field, op := range map[string]p.Op{
			"UserTurn.Overrides.Approval":      p.UserTurn{Content: p.Text("x"), Overrides: &p.Overrides{Approval: &bad}},
			"UserTurn.WhenBusy":                &p.UserTurn{Content: p.Text("x"), WhenBusy: "wait"},
			"Configure.Overrides.OutputSchema": p.Configure{Overrides: p.Overrides{OutputSchema: json.RawMessage("nul")}},
			"TryNow.Overrides.Approval":        p.TryNow{Overrides: &p.Overrides{Approval: &bad}},
			"Interrupt.Reason":                 p.Interrupt{Reason: "completed"},
		} {
			_, err := e.Submit(t.Context(), id, op)
			wantField(t, err, field)
		}
		if list, _ := e.Store.List(t.Context()); len(list) != 1 {
			t.Errorf("%d conversations", len(list))
		}
	})
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var wrong *engine.FieldError
	if !errors.As(err, &wrong) || wrong.Field != field {
		t.Errorf("got %v, want an error about %s", err, field)
	}
}

func TestOpsAsPointers(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Must(id, &p.UserTurn{Content: p.Text("hi")})
		e.Request()
		e.Must(id, &p.Interrupt{})
		w.Expect("turn_ended interrupted")
		for _, op := range []p.Op{nil, (*p.UserTurn)(nil), (*p.Interrupt)(nil)} {
			if _, err := e.Submit(t.Context(), id, op); !errors.Is(err, engine.ErrNoOp) {
				t.Errorf("%T: %v", op, err)
			}
		}
		broken := p.Undo{Started: &p.PatchStarted{Record: json.RawMessage("{")}}
		if _, err := e.Submit(t.Context(), id, broken); err == nil {
			t.Error("an op that cannot be recorded is accepted")
		}
	})
}

// A panic of a model or a tool is an error of its turn, without a stack; the stack
// goes to whoever wants it.
func TestPanicsLeaveNoStackInEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stack string
		e := enginetest.New(t, enginetest.Options{Config: func(c *engine.Config) {
			c.Turns.Model = func(p.Settings) (engine.Model, error) { panic("boom") }
			c.Panicked = func(v any, s []byte) { stack = string(s) }
		}})
		id := e.Begin()
		end, err := engine.RunTurn(t.Context(), e, id, p.UserTurn{Content: p.Text("hi")}, nil)
		if err != nil || end.End.Error == nil || end.End.Error.Message != "internal error: boom" {
			t.Errorf("end %+v, %v", end.End.Error, err)
		}
		if !strings.Contains(stack, "TestPanicsLeaveNoStackInEvents") {
			t.Errorf("stack %q", stack)
		}
	})
}

package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A turnRun is a RunTurn under way.
type turnRun struct {
	end    engine.TurnEnd
	err    error
	lines  []string
	done   chan struct{}
	cancel context.CancelFunc
}

func runTurn(t *testing.T, e engine.Engine, id p.ConversationID, ut p.UserTurn) *turnRun {
	ctx, cancel := context.WithCancel(t.Context())
	r := &turnRun{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(r.done)
		r.end, r.err = engine.RunTurn(ctx, e, id, ut, func(ev p.Event) { r.lines = append(r.lines, enginetest.Line(ev)) })
	}()
	synctest.Wait()
	return r
}

func (r *turnRun) wait(t *testing.T, want p.EndReason) {
	t.Helper()
	<-r.done
	if r.err != nil || r.end.End.Reason != want {
		t.Fatalf("turn ended %q, %v, want %q; events %q", r.end.End.Reason, r.err, want, r.lines)
	}
}

func TestRunTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		r := runTurn(t, e, id, p.UserTurn{Content: p.Text("hi")})
		e.Request().Answer("hello")
		r.wait(t, p.Completed)
		if r.end.Message != "hello" || r.end.Turn != 1 || r.end.Usage.Total != 11 {
			t.Errorf("end %+v", r.end)
		}
		want := []string{"turn_started", "user_message hi", "model_requested 1", "assistant_message hello", "model_ended", "turn_ended completed"}
		if d := cmp.Diff(want, r.lines); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
	})
}

func TestRunTurnCancelledIsSeenToItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		r := runTurn(t, e, id, p.UserTurn{Content: p.Text("hi")})
		req := e.Request()
		req.Delta("he")
		r.cancel()
		req.Stopped()
		r.wait(t, p.Interrupted)
		if r.end.Message != "he" || r.lines[len(r.lines)-1] != "turn_ended interrupted" {
			t.Errorf("end %+v, events %q", r.end, r.lines)
		}
	})
}

func TestTwoRunTurnsShareASteeredTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		one := runTurn(t, e, id, p.UserTurn{Content: p.Text("one")})
		req := e.Request()
		two := runTurn(t, e, id, p.UserTurn{Content: p.Text("two"), WhenBusy: p.Steer})
		req.Answer("1")
		req = e.Request() // with both
		two.cancel()      // cancelling either interrupts the turn
		req.Stopped()
		one.wait(t, p.Interrupted)
		two.wait(t, p.Interrupted)
		if one.end.Returned || two.end.Returned {
			t.Errorf("returned: %t, %t, but both were delivered", one.end.Returned, two.end.Returned)
		}
	})
}

// A message that has yet to join the turn is taken back alone.
func TestRunTurnThatHasYetToJoinIsTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		one := runTurn(t, e, id, p.UserTurn{Content: p.Text("one")})
		req := e.Request()
		two := runTurn(t, e, id, p.UserTurn{Content: p.Text("two"), WhenBusy: p.Steer})
		two.cancel()
		<-two.done
		if two.err != nil || !two.end.Returned || two.end.End.Reason != "" {
			t.Errorf("end %+v, %v", two.end, two.err)
		}
		req.Answer("1") // the turn is not touched
		one.wait(t, p.Completed)
		e.Idle()
	})
}

func TestRunTurnThatWaitsIsTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		one := runTurn(t, e, id, p.UserTurn{Content: p.Text("one")})
		req := e.Request()
		two := runTurn(t, e, id, p.UserTurn{Content: p.Text("two"), WhenBusy: p.Queue})
		two.cancel()
		<-two.done
		if two.err != nil || !two.end.Returned || two.end.Turn != 0 {
			t.Errorf("end %+v, %v", two.end, two.err)
		}
		req.Answer("1") // the first is not touched
		one.wait(t, p.Completed)
		e.Idle()
	})
}

func TestRunTurnInTheQueueSeesOnlyItsOwnTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		one := runTurn(t, e, id, p.UserTurn{Content: p.Text("one")})
		req := e.Request()
		two := runTurn(t, e, id, p.UserTurn{Content: p.Text("two"), WhenBusy: p.Queue})
		req.Answer("1")
		one.wait(t, p.Completed)
		e.Request().Answer("2")
		two.wait(t, p.Completed)
		want := []string{"turn_started", "user_message two", "model_requested 1", "assistant_message 2", "model_ended", "turn_ended completed"}
		if d := cmp.Diff(want, two.lines); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
	})
}

// A message that was to join a turn which fails starts the next one, and RunTurn
// goes with it.
func TestRunTurnFollowsASteeredMessageIntoTheNextTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		one := runTurn(t, e, id, p.UserTurn{Content: p.Text("one")})
		req := e.Request()
		two := runTurn(t, e, id, p.UserTurn{Content: p.Text("two"), WhenBusy: p.Steer})
		req.Fail(enginetest.Refused())
		one.wait(t, p.Failed)
		e.Request().Answer("2")
		two.wait(t, p.Completed)
		if two.end.Turn != 2 || two.end.Message != "2" || two.end.Returned {
			t.Errorf("end %+v", two.end)
		}
		want := []string{
			"input_accepted steer two", "model_ended refused", "stop_requested failed", "turn_ended failed",
			"turn_started", "user_message two", "model_requested 1", "assistant_message 2", "model_ended", "turn_ended completed",
		}
		if d := cmp.Diff(want, two.lines); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
	})
}

// Cancelling RunTurn reaches the turn that its message is in now.
func TestRunTurnCancelledAfterItsMessageMovedOn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		one := runTurn(t, e, id, p.UserTurn{Content: p.Text("one")})
		req := e.Request()
		two := runTurn(t, e, id, p.UserTurn{Content: p.Text("two"), WhenBusy: p.Steer})
		req.Fail(enginetest.Refused())
		one.wait(t, p.Failed)
		second := e.Request()
		two.cancel()
		second.Stopped()
		two.wait(t, p.Interrupted)
		if two.end.Turn != 2 {
			t.Errorf("end %+v", two.end)
		}
	})
}

// A steered message that somebody deletes is not followed any longer: the turn
// that it was to join is not its own.
func TestRunTurnOfADeletedMessage(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		one := runTurn(t, e, id, p.UserTurn{Content: p.Text("one")})
		req := e.Request()
		two := runTurn(t, e, id, p.UserTurn{Content: p.Text("two"), WhenBusy: p.Steer})
		e.Must(id, p.DeleteInput{Input: 2})
		<-two.done
		if two.err != nil || !two.end.Returned {
			t.Errorf("end %+v, %v", two.end, two.err)
		}
		req.Answer("1")
		one.wait(t, p.Completed)
	})
}

func TestRunTurnWithACancelledContextRecordsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := engine.RunTurn(ctx, e, id, p.UserTurn{Content: p.Text("hi")}, func(p.Event) {})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		w.Nothing()
	})
}

func TestRunTurnRefused(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		_, err := engine.RunTurn(t.Context(), e, id, p.UserTurn{}, func(p.Event) {})
		if !errors.Is(err, engine.ErrEmpty) {
			t.Errorf("empty message: %v", err)
		}
	})
}

func TestRunApprovalFollowsTheTurnItWakes(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		e.Run().Ask("rm")
		w.Expect("approval_requested 1.1.0")
		var lines []string
		done := make(chan engine.TurnEnd)
		go func() {
			end, err := engine.RunApproval(t.Context(), e, id, p.Approve{Call: p.CallID{Turn: 1, Response: 1}, Decision: p.Approved},
				func(ev p.Event) { lines = append(lines, enginetest.Line(ev)) })
			if err != nil {
				t.Error(err)
			}
			done <- end
		}()
		e.Run().Finish("removed")
		e.Request().Answer("ok")
		if end := <-done; end.End.Reason != p.Completed || end.Message != "ok" || lines[0] != "approval_resolved 1.1.0 approved" {
			t.Errorf("end %+v, events %q", end, lines)
		}
	})
}

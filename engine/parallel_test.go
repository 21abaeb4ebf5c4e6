package engine_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// reading begins a turn with calls that run side by side, and returns them in their order.
func reading(e *enginetest.Engine, id p.ConversationID, wireIDs ...string) []*enginetest.Run {
	e.Say(id, "go")
	r := e.Request()
	for _, w := range wireIDs {
		r.Call(w, "look", "{}")
	}
	r.End()
	runs := make([]*enginetest.Run, len(wireIDs))
	for range wireIDs {
		run := e.Run()
		runs[run.Call.ID.Index] = run
	}
	return runs
}

// Outputs are recorded as calls end, and sent in the order of the calls.
func TestOutputsAreSentInTheOrderOfTheCalls(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		runs := reading(e, id, "a", "b", "c")
		for _, i := range []int{2, 0, 1} {
			runs[i].Finish("of " + runs[i].Call.WireID)
			w.Expect("tool_output " + runs[i].Call.ID.String() + " of " + runs[i].Call.WireID)
		}
		r := e.Request()
		var outputs []string
		for _, it := range r.Prompt.Items {
			if it.Kind == p.PromptOutput {
				outputs = append(outputs, it.WireID+" "+it.Text)
			}
		}
		if want := []string{"a of a", "b of b", "c of c"}; !slices.Equal(outputs, want) {
			t.Errorf("the model was sent %q, want %q", outputs, want)
		}
		r.Answer("done")
		w.Expect("turn_ended completed")
		verify(t, e, id)
	})
}

// While one call waits for its approval, others run and end. If the turn is interrupted then, the approval is
// cancelled with its end; if the process is, the same happens when the conversation is opened.
func TestApprovalBesideRunningCalls(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		runs := reading(e, id, "a", "b")
		runs[0].Ask("rm", "x")
		w.Expect("approval_requested " + runs[0].Call.ID.String())
		if snap, err := e.Resume(t.Context(), id); err != nil || snap.Waiting || len(snap.PendingApprovals) != 1 {
			t.Errorf("waits: %t, approvals %v, %v", snap.Waiting, snap.PendingApprovals, err)
		}
		e.Must(id, p.Interrupt{})
		w.Expect("approval_resolved " + runs[0].Call.ID.String() + " cancelled")
		w.Expect("turn_ended interrupted")
		verify(t, e, id)

		runs = reading(e, id, "a", "b")
		runs[0].Ask("rm", "x")
		w.Expect("approval_requested " + runs[0].Call.ID.String())
		e.Must(id, p.Approve{Call: runs[0].Call.ID, Decision: p.Approved})
		synctest.Wait()
		e.Idle() // it runs alone
		runs[1].Finish("b")
		again := e.Run()
		if again.Call.ID != runs[0].Call.ID || again.Call.Grant != p.Approved {
			t.Errorf("runs %s with %q", again.Call.ID, again.Call.Grant)
		}
		again.Finish("a")
		e.Request().Answer("done")
		w.Expect("turn_ended completed")
		verify(t, e, id)
	})
}

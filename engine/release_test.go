package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal/file"
	p "github.com/fermata-agent/fermata/protocol"
)

// What is let go of can be opened by others; a turn that waits goes on waiting.
func TestReleaseLetsOthersIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := file.New(t.TempDir(), file.Options{Poll: true})
		ours, theirs := enginetest.New(t, enginetest.Options{Store: store}), enginetest.New(t, enginetest.Options{Store: store})
		id := ours.Begin()
		ours.Say(id, "go")
		r := ours.Request()
		r.Call("c1", "work", "{}")
		r.End()
		ours.Run().Ask("rm", "x")
		ours.Watch(id, 0).Expect("approval_requested 1.1.0")
		if _, err := theirs.Resume(t.Context(), id); err == nil {
			t.Fatal("two engines have it open")
		}
		if err := errors.Join(ours.Release(t.Context(), id), ours.Release(t.Context(), id)); err != nil {
			t.Fatal(err)
		}
		snap, err := theirs.Resume(t.Context(), id)
		if err != nil || !snap.Waiting || len(snap.PendingApprovals) != 1 {
			t.Fatalf("it is %+v, %v", snap, err)
		}
		theirs.Must(id, p.Approve{Call: snap.PendingApprovals[0], Decision: p.Approved})
		theirs.Run().Finish("done")
		theirs.Request().Answer("done")
	})
}

// A turn that runs is stopped, and nobody is waited for longer than the context says.
func TestReleaseStops(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Deaf()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := e.Release(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := e.Release(t.Context(), id); err != nil {
			t.Error(err)
		}
		r.End() // of a worker that nobody waits for any more
		w.Expect("turn_ended interrupted")
		e.Say(id, "again") // opens it
		e.Request().Answer("yes")
	})
}

func TestStopAllEndsEveryTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		idle := e.Begin()
		ids := []p.ConversationID{e.Begin(), e.Begin()}
		for _, id := range ids {
			e.Say(id, "go")
			e.Request()
		}
		waits := e.Begin()
		e.Say(waits, "go")
		r := e.Request()
		r.Call("a", "work", "{}")
		r.End()
		e.Run().Ask("rm")
		synctest.Wait()
		e.StopAll(t.Context(), p.Error{Kind: p.ErrorJournal, Message: "the servers are gone"})
		synctest.Wait()
		for _, id := range append(ids, idle) {
			for ev, err := range e.Read(t.Context(), id) {
				if err != nil {
					t.Fatal(err)
				}
				if end, ok := ev.Body.(*p.TurnEnded); ok && end.Reason == p.Failed && end.Error.Message == "the servers are gone" {
					ids = slices.DeleteFunc(ids, func(o p.ConversationID) bool { return o == id })
				}
			}
		}
		if len(ids) > 0 {
			t.Errorf("turns of %v were not stopped", ids)
		}
		if snap, err := e.Resume(t.Context(), waits); err != nil || !snap.Active || len(snap.PendingApprovals) != 1 {
			t.Errorf("a turn that waits was stopped: %+v, %v", snap, err)
		}
	})
}

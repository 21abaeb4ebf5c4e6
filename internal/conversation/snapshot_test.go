package conversation_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A snapshot is of durable events, like everything that a client sees: if the
// process died, other events would get the numbers of those that were not. And
// what follows a snapshot says nothing of items that it has already.
func TestSnapshotIsDurable(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, d *slowDisk) {
		e.Say(id, "one")
		r := e.Request()
		d.set(time.Second)
		r.Delta("whole")
		r.Message("whole")
		synctest.Wait() // it is recorded and not durable
		start := time.Now()
		snap, err := e.Resume(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < time.Second {
			t.Errorf("the snapshot came after %v, before it was durable", took)
		}
		r.End()
		for ev, err := range e.Subscribe(t.Context(), id, snap.Last) {
			if err != nil {
				t.Fatal(err)
			}
			if delta, ok := ev.Body.(*p.Delta); ok {
				t.Errorf("after the snapshot came text of an item in it: %q", delta.Text)
			}
			if _, ended := ev.Body.(*p.TurnEnded); ended {
				break
			}
		}
	})
}

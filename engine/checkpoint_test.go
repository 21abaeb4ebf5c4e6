package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// Processes that each run one short turn make a checkpoint as well, when they
// have together recorded enough, and it is written when they end.
func TestManyOpeningsMakeACheckpoint(t *testing.T) {
	store := journal.NewMemoryStore(journal.MemoryOptions{})
	var id p.ConversationID
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{Store: store})
		id = e.Begin()
		closed(t, e)
	})
	const turns, size = 40, 10 << 10
	var checkpoints []uint64
	for range turns {
		synctest.Test(t, func(t *testing.T) {
			e := enginetest.New(t, enginetest.Options{Store: store})
			e.Say(id, strings.Repeat("x", size))
			e.Request().Answer("yes")
			synctest.Wait()
			closed(t, e)
		})
		j, err := store.Open(t.Context(), string(id))
		if err != nil {
			t.Fatal(err)
		}
		if n := j.Recovery().CheckpointSeq; n > 0 && (len(checkpoints) == 0 || checkpoints[len(checkpoints)-1] != n) {
			checkpoints = append(checkpoints, n)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(checkpoints); n < 2 || n > turns/5 {
		t.Errorf("%d turns of %d bytes made checkpoints at %v", turns, size, checkpoints)
	}

	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{Store: store})
		e.Say(id, "and now")
		r := e.Request()
		if n := len(r.Prompt.Items); n != 2*turns+2 { // with the environment
			t.Errorf("the model is sent %d items", n)
		}
		r.Answer("yes")
		synctest.Wait()
		verify(t, e, id)
	})
}

func closed(t *testing.T, e *enginetest.Engine) {
	t.Helper()
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A turn that waits goes on with the settings it began with, also after a
// restart; what was changed meanwhile is for the next one.
func TestWaitingTurnKeepsItsSettings(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("a", "work", "{}")
		r.End()
		e.Run().Ask("rm")
		synctest.Wait()
		dir := "/elsewhere"
		e.Must(id, p.Configure{Overrides: p.Overrides{Cwd: &dir}})

		e = kill(t, e, id, enginetest.Options{})
		snap, err := e.Resume(t.Context(), id)
		if err != nil || len(snap.PendingApprovals) != 1 {
			t.Fatalf("%+v, %v", snap, err)
		}
		e.Must(id, p.Approve{Call: snap.PendingApprovals[0], Decision: p.Approved})
		run := e.Run()
		if got := run.Call.Settings.Cwd; got != "/w" {
			t.Errorf("the approved call runs in %s", got)
		}
		run.Finish("done")
		e.Request().Answer("yes")
		synctest.Wait()
		e.Say(id, "more")
		e.Request().Answer("yes")
		if snap, _ := e.Resume(t.Context(), id); snap.Settings.Cwd != dir {
			t.Errorf("the next turn works in %s", snap.Settings.Cwd)
		}
	})
}

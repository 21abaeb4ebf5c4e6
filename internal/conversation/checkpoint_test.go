package conversation_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/fold"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/journaltest"
	p "github.com/fermata-agent/fermata/protocol"
)

// large is a message after whose turn a checkpoint is due.
var large = p.UserTurn{Content: append(p.Text("much"), p.Content{Type: p.ContentImage, ImageURL: strings.Repeat("x", 200<<10)})}

// A checkedStore fails the test if a checkpoint is not of durable records.
type checkedStore struct {
	*slowDisk
	t       *testing.T
	written chan uint64 // has room for all
}

func (s *checkedStore) Create(ctx context.Context, id string, at time.Time) (journal.Journal, error) {
	j, err := s.slowDisk.Create(ctx, id, at)
	return &checkedJournal{j, s}, err
}

type checkedJournal struct {
	journal.Journal
	s *checkedStore
}

func (j *checkedJournal) Checkpoint(ctx context.Context, seq uint64, state []byte) error {
	if n, _ := j.Durable(); seq > n {
		j.s.t.Errorf("a checkpoint of record %d, durable are %d", seq, n)
	}
	j.s.written <- seq
	return j.Journal.Checkpoint(ctx, seq, state)
}

// A checkpoint holds durable events only: the others may be lost by a crash.
func TestCheckpointIsOfDurableEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &checkedStore{newSlowDisk(), t, make(chan uint64, 100)}
		e := enginetest.New(t, enginetest.Options{Store: s})
		id := e.Begin()
		w := e.Watch(id, 0)
		e.Must(id, large)
		r := e.Request()
		r.Message("1")
		synctest.Wait() // the end is synced alone
		s.set(20 * time.Millisecond)
		r.End()
		time.Sleep(time.Millisecond) // the end is recorded and not durable
		e.Say(id, "two")
		w.Expect("turn_ended completed")
		synctest.Wait()
		if len(s.written) > 0 {
			t.Errorf("a checkpoint was written while a turn had begun")
		}
		e.Request().Answer("2")
		w.Expect("turn_ended completed")
		synctest.Wait()
		if len(s.written) != 1 {
			t.Errorf("%d checkpoints were written, want one", len(s.written))
		}
	})
}

// What a command has printed is in the journal only, not in the state. It is
// found after a checkpoint and a crash.
func TestOutputBeforeACheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journaltest.NewFileStore(t, journal.MemoryOptions{})
		e := enginetest.New(t, enginetest.Options{Store: store})
		id := e.Begin()
		w := e.Watch(id, 0)
		e.Say(id, "serve")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		run, job := e.Run(), e.Job()
		if err := run.Keep(job, "1"); err != nil {
			t.Fatal(err)
		}
		job.Print("up")
		run.Finish("it runs")
		e.Request().Answer("done")
		w.Expect("turn_ended completed")
		e.Must(id, large)
		e.Request().Answer("much")
		w.Expect("turn_ended completed")
		time.Sleep(time.Minute)
		store.Crash(string(id), journal.CrashKill, rand.New(rand.NewPCG(1, 1)))
		e.Kill()

		e = enginetest.New(t, enginetest.Options{Store: store})
		w = e.Watch(id, 0)
		w.Expect("background_ended 1 crashed")
		if got := w.Last().Body.(*p.BackgroundEnded).Result.Output; got != "up" {
			t.Errorf("its output is %q after the crash, want %q", got, "up")
		}
	})
}

// A turn that waits for an approval, and is closed, continues from a checkpoint.
func TestCheckpointOfAWaitingTurn(t *testing.T) {
	store := journal.NewMemoryStore(journal.MemoryOptions{})
	var id p.ConversationID
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{Store: store})
		id = e.Begin()
		e.Must(id, large)
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		e.Run().Question(p.ApprovalRequested{Kind: p.ApproveCommand, Command: []string{"make"}, Detail: json.RawMessage(`"d"`)})
		synctest.Wait()
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	wantCheckpoint(t, store, id)
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{Store: store})
		w := e.Watch(id, 0)
		e.Must(id, p.Approve{Call: p.CallID{Turn: 1, Response: 1}, Decision: p.Approved})
		run := e.Run()
		if run.Call.Grant != p.Approved || string(run.Call.Asked) != `"d"` {
			t.Errorf("it runs with grant %q, asked for %s", run.Call.Grant, run.Call.Asked)
		}
		run.Finish("made")
		e.Request().Answer("done")
		w.Expect("tool_output 1.1.0 made", "turn_ended completed")
	})
}

// A checkpoint that is of another event than the journal says is not used: events would be missing, or be
// folded twice.
func TestCheckpointOfAnotherEventIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemoryStore(journal.MemoryOptions{})
		one := enginetest.New(t, enginetest.Options{Store: store})
		id := one.Begin()
		one.Must(id, p.Rename{Title: "old"})
		one.Must(id, p.Rename{Title: "new"})
		if err := one.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		j, err := store.Open(t.Context(), string(id))
		if err != nil {
			t.Fatal(err)
		}
		recs, err := j.Read(t.Context(), 0, 2)
		if err != nil {
			t.Fatal(err)
		}
		state := fold.New()
		for _, r := range recs {
			body, err := p.DecodeBody(r.Kind, r.Body)
			if err != nil {
				t.Fatal(err)
			}
			state.Evolve(p.Event{Seq: p.Seq(r.Seq), Time: r.Time, Body: body})
		}
		data, err := state.Save()
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Checkpoint(t.Context(), 3, data); err != nil { // it is of event 2
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}

		two := enginetest.New(t, enginetest.Options{Store: store})
		snap, err := two.Resume(t.Context(), id)
		if err != nil || snap.Title != "new" || snap.Last != 3 {
			t.Errorf("resumed with %v: the title is %q, the last event %d, want \"new\" and 3", err, snap.Title, snap.Last)
		}
	})
}

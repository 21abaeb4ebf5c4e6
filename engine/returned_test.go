package engine_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	following "github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// returnedTexts are the texts of the messages that a conversation says are returned.
func returnedTexts(t *testing.T, e *enginetest.Engine, id p.ConversationID) (texts []string) {
	t.Helper()
	snap, err := e.Resume(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range snap.Returned {
		texts = append(texts, p.PlainText(in.Content))
	}
	return texts
}

// interruptWithMessages starts a turn, queues messages and interrupts the turn. It returns their numbers.
func interruptWithMessages(e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch, texts ...string) (ids []p.InputID) {
	e.Say(id, "go")
	e.Request()
	for _, text := range texts {
		ids = append(ids, e.Say(id, text, p.Queue).Input)
	}
	e.Must(id, p.Interrupt{})
	w.Expect("turn_ended interrupted")
	return ids
}

// A returned message is returned until a client sends, takes or drops it: after other turns, and after the
// conversation was opened again.
func TestReturnedMessagesStayUntilResolved(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		ids := interruptWithMessages(e, id, w, "one", "two", "three")
		talk(e, id, w, "something else")
		if err := e.Release(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got := returnedTexts(t, e, id); !slices.Equal(got, []string{"one", "two", "three"}) {
			t.Fatalf("returned: %q", got)
		}

		e.Must(id, p.ResolveReturned{Inputs: ids[:1], As: p.ResolvedDropped})
		w.Expect("returned_resolved dropped")
		for _, op := range []p.Op{
			p.ResolveReturned{Inputs: ids[:2], As: p.ResolvedTaken}, p.UserTurn{Content: p.Text("x"), Returned: ids[:2]},
		} {
			if _, err := e.Submit(t.Context(), id, op); !errors.Is(err, engine.ErrNotReturned) {
				t.Errorf("%T of one that was dropped: %v", op, err)
			}
		}

		e.Must(id, p.UserTurn{Returned: ids[1:2]}) // as it was written
		w.Expect("turn_started", "user_message two", "returned_resolved sent", "model_requested 1")
		if got := e.Request().Inputs(); got[len(got)-1] != "user two" {
			t.Errorf("the model is sent %q", got)
		}
		if got := returnedTexts(t, e, id); !slices.Equal(got, []string{"three"}) {
			t.Errorf("returned: %q", got)
		}
		e.Must(id, p.ResolveReturned{Inputs: ids[2:], As: p.ResolvedTaken}) // while a turn runs
		e.Must(id, p.Interrupt{})
		w.Expect("returned_resolved taken", "turn_ended interrupted")
		if got := returnedTexts(t, e, id); len(got) > 0 {
			t.Errorf("returned: %q", got)
		}
	})
}

// Of two clients that send the same returned message, one does.
func TestOneOfTwoClientsSendsAReturnedMessage(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		ids := interruptWithMessages(e, id, w, "again")
		errs := make(chan error, 2)
		for range cap(errs) {
			go func() {
				_, err := e.Submit(t.Context(), id, p.UserTurn{Returned: ids, WhenBusy: p.Queue})
				errs <- err
			}()
		}
		got := []bool{errors.Is(<-errs, engine.ErrNotReturned), errors.Is(<-errs, engine.ErrNotReturned)}
		if got[0] == got[1] {
			t.Errorf("refused: %v", got)
		}
		e.Request().Answer("done")
		w.Expect("turn_ended completed")
		e.Idle()
	})
}

// What waits when the process is killed is returned when the conversation is opened, and stays so.
func TestReturnedAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemoryStore(journal.MemoryOptions{})
		e := enginetest.New(t, enginetest.Options{Store: store})
		id := e.Begin()
		e.Say(id, "go")
		e.Request()
		e.Say(id, "steer", p.Steer)
		e.Say(id, "queue", p.Queue)
		store.Crash(string(id), journal.CrashKill, rand.New(rand.NewPCG(1, 1)))
		e.Kill()

		e = enginetest.New(t, enginetest.Options{Store: store})
		w := e.Watch(id, 0)
		talk(e, id, w, "other")
		talk(e, id, w, "another")
		if got := returnedTexts(t, e, id); !slices.Equal(got, []string{"steer", "queue"}) {
			t.Errorf("returned: %q", got)
		}
	})
}

func TestListCountsReturnedMessages(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		count := func(want int) {
			t.Helper()
			page, err := e.List(t.Context(), engine.ListOptions{})
			if err != nil || len(page.Items) != 1 || page.Items[0].Returned != want {
				t.Fatalf("listed as %+v, %v; want %d returned messages", page.Items, err, want)
			}
		}
		ids := interruptWithMessages(e, id, w, "one", "two")
		count(2)
		e.Must(id, p.ResolveReturned{Inputs: ids[:1], As: p.ResolvedTaken})
		count(1)
		talk(e, id, w, "other")
		count(1)
		e.Say(id, "a long turn") // whose beginning is not among the last records
		for n := range 40 {
			r := e.Request()
			r.Call("c", "look", "{}")
			r.End()
			e.Run().Finish("ok")
			if n == 0 {
				e.Must(id, p.ResolveReturned{Inputs: ids[1:], As: p.ResolvedDropped})
			}
		}
		e.Request()
		count(0)
		e.Must(id, p.Interrupt{})
		w.Expect("turn_ended interrupted")
		count(0)
	})
}

// A copy has the messages that were returned in the original, and what becomes of them there is its own affair.
func TestForkHasReturnedMessages(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		ids := interruptWithMessages(e, id, w, "one")
		fork, err := e.Fork(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		e.Must(id, p.ResolveReturned{Inputs: ids, As: p.ResolvedDropped})
		got := [][]string{returnedTexts(t, e, id), returnedTexts(t, e, fork)}
		if d := cmp.Diff([][]string{nil, {"one"}}, got); d != "" {
			t.Errorf("returned in both (-want +got):\n%s", d)
		}
	})
}

// Whoever waits for the delivery of a message hears what became of it.
func TestAwaitDelivery(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		type outcome struct {
			is   following.Delivery
			turn p.TurnID
			err  error
		}
		await := func(r p.Receipt) <-chan outcome {
			got := make(chan outcome, 1)
			go func() {
				is, turn, err := following.AwaitDelivery(t.Context(), e, id, r)
				got <- outcome{is, turn, err}
			}()
			return got
		}
		started := await(e.Say(id, "go"))
		r := e.Request()
		steered, queued := await(e.Say(id, "steer", p.Steer)), await(e.Say(id, "queue", p.Queue))
		deleted := e.Say(id, "delete", p.Queue)
		gone := await(deleted)
		e.Must(id, p.DeleteInput{Input: deleted.Input})
		r.Call("c", "look", "{}")
		r.End()
		e.Run().Finish("ok")
		e.Request()
		e.Must(id, p.Interrupt{})
		w.Expect("turn_ended interrupted")
		got := []outcome{<-started, <-steered, <-queued, <-gone}
		want := []outcome{{following.Delivered, 1, nil}, {following.Delivered, 1, nil}, {following.Returned, 0, nil}, {following.Deleted, 0, nil}}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

package conversation_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// withoutTimes leaves out when a turn began and how long it took: TestTurnTimes in package fold looks at that.
var withoutTimes = cmpopts.IgnoreFields(p.TurnSummary{}, "Began", "Took")

// A conversation that is opened again continues as if it had stayed open,
// whether its state comes from a checkpoint or from all of its records.
func TestReopenedConversationContinues(t *testing.T) {
	for name, size := range map[string]int{"replayed": 10, "from a checkpoint": 200 << 10} {
		t.Run(name, func(t *testing.T) {
			store := journal.NewMemoryStore(journal.MemoryOptions{})
			var id p.ConversationID
			var before conversation.Snapshot
			synctest.Test(t, func(t *testing.T) { id, before = lead(t, store, size) })
			if name == "from a checkpoint" {
				wantCheckpoint(t, store, id)
			}
			synctest.Test(t, func(t *testing.T) { follow(t, store, id, before) })
		})
	}
}

// lead makes a conversation in which a command was approved for good, a warning
// was given, and the context is nearly full.
func lead(t *testing.T, store journal.Store, size int) (p.ConversationID, conversation.Snapshot) {
	e := enginetest.New(t, enginetest.Options{Store: store})
	id, err := e.Create(t.Context(), p.Settings{Cwd: "/w", ContextWindow: 1000})
	if err != nil {
		t.Fatal(err)
	}
	e.Must(id, p.Rename{Title: "a title"})
	e.Say(id, strings.Repeat("x", size))
	r := e.Request()
	r.Usage = &p.Usage{Input: 500, Output: 50, Total: 550}
	r.Call("c", "work", "{}")
	r.End()
	run := e.Run()
	if err := run.Call.Host.Record(t.Context(), &p.Notice{Text: "beware", Warn: true}); err != nil {
		t.Fatal(err)
	}
	run.Question(p.ApprovalRequested{Kind: p.ApproveCommand, Command: []string{"make"}, Cwd: "/w"})
	synctest.Wait()
	e.Must(id, p.Approve{Call: p.CallID{Turn: 1, Response: 1}, Decision: p.ApprovedForSession})
	e.Run().Finish("made")
	r = e.Request()
	r.Usage = &p.Usage{Input: 900, Output: 50, Total: 950}
	r.Answer("done")
	synctest.Wait()
	snap, err := e.Resume(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return id, snap
}

func wantCheckpoint(t *testing.T, store journal.Store, id p.ConversationID) {
	t.Helper()
	j, err := store.Open(t.Context(), string(id))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if j.Recovery().CheckpointSeq == 0 {
		t.Fatal("there is no checkpoint: the test shows nothing")
	}
}

// follow opens the conversation of lead and continues it.
func follow(t *testing.T, store journal.Store, id p.ConversationID, before conversation.Snapshot) {
	e := enginetest.New(t, enginetest.Options{Store: store})
	snap, err := e.Resume(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, snap); d != "" {
		t.Errorf("the state (-before +after):\n%s", d)
	}
	w := e.Watch(id, snap.Last)
	e.Say(id, "next")
	sum := e.Request()
	if !sum.Prompt.NoCalls {
		t.Errorf("no summary is asked for although the context is nearly full: %q", sum.Inputs())
	}
	sum.Answer("all so far")
	r := e.Request()
	r.Call("c", "work", "{}")
	r.End()
	run := e.Run()
	if !run.Call.Grants.Has([]string{"make"}, "/w") {
		t.Error("what was approved for the conversation would be asked for again")
	}
	if !run.Call.Warned["beware"] {
		t.Error("the warning would be given again")
	}
	run.Finish("ok")
	e.Request().Answer("done")
	w.Expect("turn_ended completed")
}

// Programs outside are notified of the turn that ended, also if the next one
// has started, or has been interrupted, before the end was durable.
func TestNotifyReportsTheTurnThatEnded(t *testing.T) {
	for _, reason := range []p.EndReason{p.Completed, p.Interrupted} {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { notifyOfTwoTurns(t, reason) })
		})
	}
}

func notifyOfTwoTurns(t *testing.T, second p.EndReason) {
	var mu sync.Mutex
	var got []p.TurnSummary
	d := newSlowDisk()
	e := enginetest.New(t, enginetest.Options{Store: d, Config: func(c *engine.Config) {
		c.Turns.Ended = func(s p.TurnSummary) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, s)
		}
	}})
	id := e.Begin()
	e.Say(id, "one")
	r := e.Request()
	d.set(20 * time.Millisecond)
	r.Answer("1")
	time.Sleep(time.Millisecond) // the end of the first turn is recorded and not durable
	there, last := "/there", ""
	go e.Submit(t.Context(), id, p.UserTurn{Content: p.Text("two"), Overrides: &p.Overrides{Cwd: &there}})
	time.Sleep(time.Millisecond)
	if second == p.Interrupted {
		e.Must(id, p.Interrupt{})
	} else {
		last = "2"
		e.Request().Answer(last)
	}
	time.Sleep(time.Second)
	mu.Lock()
	defer mu.Unlock()
	want := []p.TurnSummary{
		{Conversation: id, Turn: 1, Cwd: "/w", Reason: p.Completed, Inputs: []string{"one"}, Last: "1"},
		{Conversation: id, Turn: 2, Cwd: "/there", Reason: second, Inputs: []string{"two"}, Last: last},
	}
	if d := cmp.Diff(want, got, withoutTimes); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A running turn is measured by the context window of its own model, not by
// that of the model that the next turn will have.
func TestWindowOfTheRunningTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		windows := map[string]int64{"small": 100, "big": 1000}
		e := enginetest.New(t, enginetest.Options{Config: func(c *engine.Config) {
			c.Turns.Window = func(s p.Settings) int64 { return windows[s.Model] }
		}})
		id, err := e.Create(t.Context(), p.Settings{Cwd: "/w", Model: "big", ContextWindow: 1000})
		if err != nil {
			t.Fatal(err)
		}
		e.Say(id, "one")
		r := e.Request()
		r.Usage = &p.Usage{Input: 500, Total: 500}
		r.Call("c", "work", "{}")
		r.End()
		run := e.Run()
		small := "small"
		e.Must(id, p.Configure{Overrides: p.Overrides{Model: &small}})
		run.Finish("ok")
		if r = e.Request(); r.Prompt.NoCalls {
			t.Errorf("the running turn, of model %s, is summarised", r.Prompt.Model)
		}
		r.Usage = &p.Usage{Input: 500, Total: 500}
		r.Answer("done")
		synctest.Wait()
		e.Say(id, "two")
		if r = e.Request(); !r.Prompt.NoCalls {
			t.Errorf("the next turn, of model %s, is not summarised", r.Prompt.Model)
		}
		r.Answer("summary")
		e.Request().Answer("2")
	})
}

// An op is taken before what workers report: an interrupt does not wait behind
// a flood of output.
func TestOpsAreTakenBeforeReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		e := enginetest.New(t, enginetest.Options{Config: func(c *engine.Config) {
			c.Turns.Window = func(p.Settings) int64 { <-hold; return 0 } // the owner stands still
		}})
		id := e.Begin()
		w := e.Watch(id, 0)
		for range 20 { // either could be taken first by chance
			e.Say(id, "go")
			r := e.Request()
			model := "m"
			go e.Submit(t.Context(), id, p.Configure{Overrides: p.Overrides{Model: &model}})
			synctest.Wait()
			go r.Message("late")
			go e.Submit(t.Context(), id, p.Interrupt{})
			synctest.Wait()
			hold <- struct{}{}
			w.Expect("stop_requested interrupted", "turn_ended interrupted")
		}
		for _, ev := range w.All {
			if _, ok := ev.Body.(*p.AssistantMessage); ok {
				t.Fatalf("turn %d: a report was taken before an interrupt that waited", ev.Turn)
			}
		}
	})
}

// Whoever keeps what turns changed is notified of each that waits, also if a client brings its own notifications.
func TestWaitsReportsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []p.TurnSummary
		e := enginetest.New(t, enginetest.Options{Config: func(c *engine.Config) {
			c.TurnWaits = func(s p.TurnSummary) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, s)
			}
			c.ForClient = func(any) (engine.TurnConfig, error) { return engine.TurnConfig{}, nil }
		}})
		id := e.Begin()
		ctx := conversation.WithClient(t.Context(), conversation.Client{Brings: "its own"})
		go e.Submit(ctx, id, p.UserTurn{Content: p.Text("one")})
		q := e.Request()
		q.Call("c", "work", "{}")
		q.End()
		e.Run().Ask("rm", "-r")
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		want := []p.TurnSummary{{Conversation: id, Turn: 1, Cwd: "/w", Inputs: []string{"one"}}}
		if d := cmp.Diff(want, got, withoutTimes); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

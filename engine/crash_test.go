package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// kill ends an engine as kill -9 would and starts another on the same store.
func kill(t *testing.T, e *enginetest.Engine, id p.ConversationID, o enginetest.Options) *enginetest.Engine {
	t.Helper()
	synctest.Wait() // a client that has only begun to follow would open the conversation between the two that come
	store := e.Store.(*journal.MemoryStore)
	store.Crash(string(id), journal.CrashKill, rand.New(rand.NewPCG(1, 1)))
	e.Kill()
	o.Store = store
	return enginetest.New(t, o)
}

func TestApprovalOutlivesTheProcess(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		e.Run().Ask("rm", "x")
		w.Expect("approval_requested 1.1.0")
		e.Say(id, "and then this", p.Queue)

		e = kill(t, e, id, enginetest.Options{})
		snap, err := e.Resume(t.Context(), id)
		if err != nil || !snap.Active || !snap.Waiting || len(snap.PendingApprovals) != 1 || len(snap.Inputs) != 1 {
			t.Fatalf("after the kill: %+v, %v", snap, err)
		}
		e.Idle() // it goes on waiting; nothing runs
		w = e.Watch(id, snap.Last)
		e.Must(id, p.Approve{Call: snap.PendingApprovals[0], Decision: p.Approved})
		e.Run().Finish("removed")
		e.Request().Answer("ok")
		w.ExpectExactly("approval_resolved 1.1.0 approved", "call_started 1.1.0 approved", "tool_output 1.1.0 removed",
			"model_requested 2", "assistant_message ok", "model_ended", "turn_ended completed",
			"turn_started", "user_message and then this", "model_requested 1")
	})
}

func TestKillInMidSentence(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		e.Say(id, "talk")
		r := e.Request()
		r.Delta("one two")
		e.Say(id, "wait", p.Queue)
		time.Sleep(200 * time.Millisecond)
		r.Delta(" three")

		e = kill(t, e, id, enginetest.Options{})
		snap, err := e.Resume(t.Context(), id)
		if err != nil || snap.Active || snap.Ended != p.Crashed || len(snap.Recovered) == 0 {
			t.Fatalf("after the kill: %+v, %v", snap, err)
		}
		w := e.Watch(id, 5)
		w.Expect("stop_requested crashed")
		w.Expect("model_ended", "input_returned wait", "turn_ended crashed")
		var said string
		for _, ev := range w.All {
			if m, ok := ev.Body.(*p.AssistantMessage); ok {
				said = m.Text
			}
		}
		if !strings.HasPrefix(said, "one two") || !strings.HasPrefix("one two three", said) {
			t.Errorf("kept %q", said)
		}
		e.Say(id, "what happened?")
		lines := e.Request().Inputs()
		want := []string{"user talk", "assistant " + said, "user <turn_aborted>", "user what happened?"}
		if d := cmp.Diff(want, lines[1:]); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
	})
}

func TestKillDuringCommandReclaimsItsProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		run := e.Run()
		if err := run.Call.Host.Record(t.Context(), &p.CommandStarted{Call: run.Call.ID, Process: []byte(`{"pid":7}`)}); err != nil {
			t.Fatal(err)
		}
		run.Print("half")
		time.Sleep(200 * time.Millisecond)

		var reclaimed []string
		e = kill(t, e, id, enginetest.Options{Config: func(c *engine.Config) {
			c.Recovery.Reclaim = func(_ context.Context, process json.RawMessage) (int, error) {
				reclaimed = append(reclaimed, string(process))
				return 3, nil
			}
		}})
		w := e.Watch(id, 0)
		w.Expect("stop_requested crashed")
		w.ExpectExactly("tool_output 1.1.0 aborted", "turn_ended crashed")
		if d := cmp.Diff([]string{`{"pid":7}`}, reclaimed); d != "" {
			t.Errorf("reclaimed (-want +got):\n%s", d)
		}
		out := w.All[len(w.All)-2].Body.(*p.ToolOutput)
		if !strings.HasSuffix(out.Output, "half") || out.Command == nil || out.Command.Output != "half" {
			t.Errorf("output %+v", out)
		}
		if end := w.Last().Body.(*p.TurnEnded); end.Killed != 3 {
			t.Errorf("killed %d, want 3", end.Killed)
		}
	})
}

// A stop does not wait for the disk; only the turn's end does.
func TestStopWithAnFsyncThatTakesASecond(t *testing.T) {
	for _, phase := range []string{"model", "command", "not yet begun"} {
		t.Run(phase, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := journal.NewMemoryStore(journal.MemoryOptions{SyncDelay: func() time.Duration { return time.Second }})
				e := enginetest.New(t, enginetest.Options{Store: slow})
				id := e.Begin()
				w := e.Watch(id, 1)
				go e.Submit(t.Context(), id, p.UserTurn{Content: p.Text("go")})
				var stopped <-chan struct{}
				switch phase {
				case "model":
					r := e.Request()
					stopped = r.Ctx().Done()
				case "command":
					r := e.Request()
					r.Call("c", "work", "{}")
					r.End()
					stopped = e.Run().Ctx.Done()
				default:
					time.Sleep(10 * time.Millisecond) // the request is recorded, not durable, so not made
					done := make(chan struct{})
					close(done)
					stopped = done
				}
				at := time.Now()
				e.Must(id, p.Interrupt{})
				<-stopped
				if d := time.Since(at); d > 50*time.Millisecond {
					t.Errorf("stopped after %v", d)
				}
				w.Expect("turn_ended interrupted")
				if d := time.Since(at); d > 4*time.Second {
					t.Errorf("ended after %v", d)
				}
				e.Idle()
			})
		})
	}
}

// What an event asks for is done when the event is durable, and not before.
func TestNothingIsDoneBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := journal.NewMemoryStore(journal.MemoryOptions{SyncDelay: func() time.Duration { return time.Second }})
		e := enginetest.New(t, enginetest.Options{Store: slow})
		id := e.Begin()
		since := func(at time.Time, what string) {
			t.Helper()
			if d := time.Since(at); d < time.Second {
				t.Errorf("%s after %v, before it can be durable", what, d)
			}
		}
		at := time.Now()
		accepted := make(chan struct{})
		go func(at time.Time) {
			defer close(accepted)
			e.Say(id, "go")
			since(at, "the receipt")
		}(at)
		r := e.Request()
		since(at, "the model was asked")
		at = time.Now()
		r.Call("c", "work", "{}")
		r.End()
		run := e.Run()
		since(at, "the call ran")
		at = time.Now()
		if err := run.Call.Host.Record(t.Context(), &p.CommandStarted{Call: run.Call.ID}); err != nil {
			t.Fatal(err)
		}
		since(at, "the command was released")
		run.Finish("ok")
		e.Request().Answer("done")
		w := e.Watch(id, 0)
		w.Expect("turn_ended completed")
		<-accepted
	})
}

// A worker that was given up and speaks in the next turn is not heard.
func TestLateModelOfALostTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "one")
		old := e.Request()
		old.Deaf()
		e.Must(id, p.Interrupt{})
		w.Expect("turn_ended interrupted")
		e.Say(id, "two")
		r := e.Request()
		old.Message("too late")
		old.End()
		synctest.Wait()
		r.Answer("on time")
		w.ExpectExactly("turn_started", "user_message two", "model_requested 1", "assistant_message on time", "model_ended", "turn_ended completed")
		w.Nothing()
	})
}

// A full disk ends the turn; everybody is told, and what was recorded stays.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := atomic.Bool{}
		errFull := errors.New("no space left on device")
		store := journal.NewMemoryStore(journal.MemoryOptions{SyncError: func() error {
			if full.Load() {
				return errFull
			}
			return nil
		}})
		e := enginetest.New(t, enginetest.Options{Store: store})
		id := e.Begin()
		w := e.Watch(id, 1)
		e.Say(id, "go")
		r := e.Request()
		r.Delta("some te")
		synctest.Wait() // who begins to watch later cannot open it
		full.Store(true)
		if _, err := e.Submit(t.Context(), id, p.UserTurn{Content: p.Text("more")}); !errors.Is(err, errFull) {
			t.Errorf("a message that cannot be recorded: %v", err)
		}
		r.Stopped()
		w.Expect("stop_requested failed (unsaved)", "assistant_message some te (cut) (unsaved)", "turn_ended failed (unsaved)")
		end := w.Last().Body.(*p.TurnEnded)
		if end.Error == nil || end.Error.Kind != p.ErrorJournal || !strings.Contains(end.Error.Message, "no space left") || end.Error.Hint == "" {
			t.Errorf("end %+v", end.Error)
		}
		w.Nothing()

		full.Store(false) // room again: the conversation opens, and says how it was left
		snap, err := e.Resume(t.Context(), id)
		if err != nil || snap.Active || snap.Ended != p.Crashed {
			t.Fatalf("after the disk has room: %+v, %v", snap, err)
		}
		e.Say(id, "go on")
		e.Request().Answer("on it")
	})
}

func TestAttachInMidSentence(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		rc := e.Say(id, "talk")
		r := e.Request()
		r.Delta("one ")
		early := e.WatchAll(id, rc.Seq+3)
		early.ExpectExactly("delta 1.1.0 0 one")
		r.Delta("two ")
		early.ExpectExactly("delta 1.1.0 4 two")
		late := e.WatchAll(id, rc.Seq)
		late.ExpectExactly("turn_started", "user_message talk", "model_requested 1", "delta 1.1.0 0 one two")
		r.Delta("three")
		for _, w := range []*enginetest.Watch{early, late} {
			w.ExpectExactly("delta 1.1.0 8 three")
		}
		r.Answer("one two three")
		for _, w := range []*enginetest.Watch{early, late} {
			w.ExpectExactly("assistant_message one two three", "model_ended", "turn_ended completed")
			w.Nothing()
		}
	})
}

func TestSecondWriterIsToldWhoOwnsTheConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		other := enginetest.New(t, enginetest.Options{Store: e.Store})
		at := time.Now()
		_, err := other.Resume(t.Context(), id)
		var locked *engine.LockedError
		if !errors.As(err, &locked) || locked.PID == 0 || err.Error() != "open conversation "+string(id)+": "+locked.Error() {
			t.Fatalf("second writer: %v", err)
		}
		if d := time.Since(at); d < 2*time.Second || d > 4*time.Second {
			t.Errorf("it waited %v for the owner", d)
		}
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Resume(t.Context(), id); err != nil {
			t.Errorf("after the owner has ended: %v", err)
		}
	})
}

func TestShutdownStopsWhatRunsAndKeepsWhatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		waiting := e.Begin()
		e.Say(waiting, "ask me")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		e.Run().Ask("rm")
		synctest.Wait()
		e.Say(id, "go")
		running := e.Request()
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		running.Stopped()
		w.Expect("turn_ended interrupted")
		next := enginetest.New(t, enginetest.Options{Store: e.Store})
		snap, err := next.Resume(t.Context(), waiting)
		if err != nil || !snap.Waiting {
			t.Errorf("the turn that waited: %+v, %v", snap, err)
		}
		if _, err := e.Submit(t.Context(), id, p.Interrupt{}); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("an op after the shutdown: %v", err)
		}
	})
}

// Somebody who only looks sees a conversation grow that another process runs.
func TestTailFromOutside(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		other := enginetest.New(t, enginetest.Options{Store: e.Store})
		ctx, cancel := context.WithCancel(t.Context())
		var lines []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ev, err := range other.Tail(ctx, id, 0) {
				if err != nil {
					return
				}
				lines = append(lines, enginetest.Line(ev))
			}
		}()
		e.Say(id, "talk")
		r := e.Request()
		r.Delta("one ")
		time.Sleep(time.Second)
		r.Delta("two")
		time.Sleep(time.Second)
		r.Answer("one two three")
		w.Expect("turn_ended completed")
		time.Sleep(time.Second)
		cancel()
		<-done
		want := []string{
			"conversation_started", "turn_started", "user_message talk", "model_requested 1", "delta 1.1.0 0 one", "delta 1.1.0 4 two",
			"delta 1.1.0 7  three", "assistant_message one two three", "model_ended", "turn_ended completed",
		}
		if d := cmp.Diff(want, lines); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
	})
}

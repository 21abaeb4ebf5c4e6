package engine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/fsck"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// keeping begins a turn whose call keeps a job, and is answered.
func keeping(t *testing.T, e *enginetest.Engine, id p.ConversationID, j *enginetest.Job) {
	t.Helper()
	e.Say(id, "serve")
	r := e.Request()
	r.Call("c", "work", "{}")
	r.End()
	run := e.Run()
	if err := run.Keep(j, `{"pid":7}`); err != nil {
		t.Fatalf("keep: %v", err)
	}
	run.Finish("running")
}

// kept is a whole turn that leaves a job behind.
func kept(t *testing.T, e *enginetest.Engine, id p.ConversationID, j *enginetest.Job) {
	t.Helper()
	keeping(t, e, id, j)
	e.Request().Answer("it serves")
	synctest.Wait()
}

// verify asks the judge about what is recorded.
func verify(t *testing.T, e *enginetest.Engine, id p.ConversationID) {
	t.Helper()
	var c fsck.Checker
	for _, ev := range recorded(t, e, id) {
		c.Apply(ev)
	}
	for _, problem := range c.End() {
		t.Error(problem)
	}
}

func recorded(t *testing.T, e *enginetest.Engine, id p.ConversationID) []p.Event {
	t.Helper()
	v, err := e.Store.View(t.Context(), string(id))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	recs, err := v.Read(t.Context(), 0, 10000)
	if err != nil {
		t.Fatal(err)
	}
	var all []p.Event
	for _, r := range recs {
		body, err := p.DecodeBody(r.Kind, r.Body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Event{Seq: p.Seq(r.Seq), Time: r.Time, Turn: p.TurnID(r.Turn), Body: body})
	}
	return all
}

// ends returns how the background commands ended, in the order of their ends.
func ends(events []p.Event) (out []*p.BackgroundEnded) {
	for _, ev := range events {
		if b, ok := ev.Body.(*p.BackgroundEnded); ok {
			out = append(out, b)
		}
	}
	return out
}

func TestBackgroundCommandGoesOnAfterItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		j := e.Job()
		kept(t, e, id, j)
		w.Expect("background_started 1 1.1.0", "tool_output 1.1.0 running", "turn_ended completed")
		snap, err := e.Resume(t.Context(), id)
		if err != nil || len(snap.Background) != 1 || snap.Background[0].ID != 1 || snap.Active {
			t.Fatalf("snapshot %+v, %v", snap, err)
		}

		early := e.WatchAll(id, snap.Last)
		j.Print("one ")
		early.ExpectExactly("delta 0.0.1 0 one")
		j.Print("two ")
		early.ExpectExactly("delta 0.0.1 4 two")
		late := e.WatchAll(id, snap.Last) // it attaches in the middle
		late.ExpectExactly("delta 0.0.1 0 one two")
		e.Say(id, "meanwhile") // the next turn does not touch it
		e.Request().Answer("yes")
		w.Expect("turn_ended completed")
		if !j.Runs() {
			t.Error("it was stopped")
		}
		j.Print("three")
		synctest.Wait()
		j.Exit(3)
		for _, c := range []*enginetest.Watch{early, late} {
			c.Expect("delta 0.0.1 8 three", "background_ended 1 completed")
			c.Nothing()
			for _, ev := range c.All {
				switch ev.Body.(type) {
				case *p.Delta, *p.BackgroundEnded:
					if ev.Turn != 0 {
						t.Errorf("%s belongs to turn %d", enginetest.Line(ev), ev.Turn)
					}
				}
			}
		}
		end := late.Last().Body.(*p.BackgroundEnded)
		if end.Result.Output != "one two three" || end.Result.ExitCode != 3 {
			t.Errorf("result %+v", end.Result)
		}
		if snap, err := e.Resume(t.Context(), id); err != nil || len(snap.Background) > 0 {
			t.Errorf("after its end: %+v, %v", snap, err)
		}
		verify(t, e, id)
	})
}

// Deltas add up to what was printed, also if the end is seen before the last.
func TestBackgroundDeltasAddUp(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		j := e.Job()
		kept(t, e, id, j)
		w.Expect("turn_ended completed")
		c := e.WatchAll(id, w.Last().Seq)
		j.Print("one")
		c.ExpectExactly("delta 0.0.1 0 one")
		j.Print(" two") // and at once:
		j.Exit(0)
		c.ExpectExactly("delta 0.0.1 3  two", "background_ended 1 completed")
		c.Nothing()
	})
}

// Of output with a gap nobody can say where the rest begins.
func TestBackgroundOutputWithAGap(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		j := e.Job()
		kept(t, e, id, j)
		w.Expect("turn_ended completed")
		c := e.WatchAll(id, w.Last().Seq)
		j.Print("one")
		c.ExpectExactly("delta 0.0.1 0 one")
		j.Return(p.CommandResult{Output: "one [gap] last", Omitted: 50})
		c.ExpectExactly("background_ended 1 completed")
		c.Nothing()
	})
}

// An interrupt kills the background commands of its turn, and only these; the
// turn ends when they have ended.
func TestInterruptEndsTheTurnsBackgroundCommands(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		other, own, slow := e.Job(), e.Job(), e.DeafJob()
		kept(t, e, id, other)
		w.Expect("turn_ended completed")
		keeping(t, e, id, own)
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		run := e.Run()
		if err := run.Keep(slow, `{"pid":9}`); err != nil {
			t.Fatal(err)
		}
		run.Finish("x")
		e.Request()
		at := time.Now()
		e.Must(id, p.Interrupt{})
		var stop *conversation.StoppedError
		if err := slow.Stopped(); !errors.As(err, &stop) || stop.Reason != p.Interrupted {
			t.Errorf("cause %v", err)
		}
		if time.Since(at) > 0 {
			t.Errorf("stopped after %v", time.Since(at))
		}
		w.Expect("stop_requested interrupted")
		w.ExpectInAnyOrder("background_ended 2 interrupted", "model_ended")
		w.Nothing() // the slow one runs
		time.Sleep(300 * time.Millisecond)
		w.Nothing()
		slow.Exit(0)
		w.ExpectExactly("background_ended 3 completed", "turn_ended interrupted")
		if end := w.Last().Body.(*p.TurnEnded); end.Killed != 2 {
			t.Errorf("killed %d, want the two of command 2", end.Killed)
		}
		if !other.Runs() {
			t.Error("the command of another turn was stopped")
		}
		e.Say(id, "so?")
		lines := e.Request().Prompt.Items
		text := p.PlainText(lines[len(lines)-2].Content)
		if !strings.Contains(text, "session 2: serve") || strings.Contains(text, "session 1") || !strings.Contains(text, "(exit code 0)") {
			t.Errorf("the model is told %q", text)
		}
	})
}

func TestInterruptWithoutATurnLeavesBackgroundCommandsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		j := e.Job()
		kept(t, e, id, j)
		if _, err := e.Submit(t.Context(), id, p.Interrupt{}); !errors.Is(err, turn.ErrNothingToStop) {
			t.Errorf("interrupt: %v", err)
		}
		if !j.Runs() {
			t.Error("it was stopped")
		}
	})
}

// A command that does not die is given up when the turn's time is over, with
// what it had printed; its late end is not heard.
func TestBackgroundCommandThatDoesNotDie(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		j := e.DeafJob()
		keeping(t, e, id, j)
		e.Request()
		j.Print("so far")
		at := time.Now()
		e.Must(id, p.Interrupt{})
		w.Expect("background_ended 1 interrupted", "turn_ended interrupted")
		if d := time.Since(at); d != stopBound {
			t.Errorf("given up after %v, want %v", d, stopBound)
		}
		if end := ends(w.All)[0]; end.Result.Output != "so far" || end.Result.ExitCode != -1 {
			t.Errorf("result %+v", end.Result)
		}
		j.Print("LATE")
		j.Exit(0)
		w.Nothing()
		verify(t, e, id)
	})
}

func TestKillBackground(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		one, two := e.Job(), e.Job()
		kept(t, e, id, one)
		kept(t, e, id, two)
		e.Say(id, "a turn that goes on")
		r := e.Request()
		e.Must(id, p.KillBackground{ID: 2})
		w.Expect("background_ended 2 interrupted")
		if !one.Runs() || two.Runs() {
			t.Errorf("running: %t and %t", one.Runs(), two.Runs())
		}
		if err := two.Stopped(); err == nil {
			t.Error("stopped without a cause")
		}
		for _, n := range []p.BackgroundID{2, 3, 0} {
			if _, err := e.Submit(t.Context(), id, p.KillBackground{ID: n}); !errors.Is(err, turn.ErrNoBackground) {
				t.Errorf("kill of command %d: %v", n, err)
			}
		}
		r.Answer("still here")
		w.Expect("turn_ended completed")
		one.Exit(0)
		w.ExpectExactly("background_ended 1 completed")
		verify(t, e, id)
	})
}

func TestMostBackgroundCommands(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		const most = 64
		e.Say(id, "many")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		run := e.Run()
		var jobs []*enginetest.Job
		for n := range most {
			j := e.Job()
			if err := run.Keep(j, "{}"); err != nil || int(j.ID) != n+1 {
				t.Fatalf("command %d is number %d: %v", n+1, j.ID, err)
			}
			jobs = append(jobs, j)
		}
		if err := run.Keep(e.Job(), "{}"); err == nil || !strings.Contains(err.Error(), "64") {
			t.Fatalf("one too many: %v", err)
		}
		jobs[9].Exit(0) // one that ended makes room, and its number is not used again
		w.Expect("background_ended 10 completed")
		j := e.Job()
		if err := run.Keep(j, "{}"); err != nil || j.ID != most+1 {
			t.Fatalf("after one has ended: number %d, %v", j.ID, err)
		}
		run.Finish("x")
		next := e.Request()
		next.Call("d", "work", "{}")
		next.End()
		call := e.Run().Call
		if len(call.Background) != most || call.Background[10] != nil || call.Background[9] == nil || call.Background[65] == nil {
			t.Errorf("a call is given %d commands", len(call.Background))
		}
		e.Must(id, p.Interrupt{})
		w.Expect("turn_ended interrupted")
		verify(t, e, id)
	})
}

// A command that has ended can be asked for its last words.
func TestEndedBackgroundCommandIsStillKnownToCalls(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		j := e.Job()
		kept(t, e, id, j)
		j.Exit(0)
		w.Expect("background_ended 1 completed")
		e.Say(id, "read it")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		if run := e.Run(); run.Call.Background[1] != j {
			t.Errorf("given %v", run.Call.Background)
		}
	})
}

func TestKeepAfterTheStop(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "immortal")
		r.End()
		run := e.Run()
		e.Must(id, p.Interrupt{})
		if err := run.Keep(e.Job(), "{}"); !errors.Is(err, turn.ErrStopping) {
			t.Errorf("keep while the turn stops: %v", err)
		}
		w.Expect("turn_ended interrupted") // the call was given up
		if err := run.Keep(e.Job(), "{}"); err == nil {
			t.Error("kept after the turn has ended")
		}
		run.Finish("late")
		w.Nothing()
		verify(t, e, id)
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := run.Keep(e.Job(), "{}"); !errors.Is(err, conversation.ErrClosed) {
			t.Errorf("kept after the shutdown: %v", err)
		}
	})
}

// The model hears of a background command when a crash can no longer forget it.
func TestKeepIsDurableFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := journal.NewMemoryStore(journal.MemoryOptions{SyncDelay: func() time.Duration { return time.Second }})
		e := enginetest.New(t, enginetest.Options{Store: slow})
		id := e.Begin()
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		run := e.Run()
		at := time.Now()
		if err := run.Keep(e.Job(), "{}"); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(at); d < time.Second {
			t.Errorf("kept after %v, before it can be durable", d)
		}
		second := e.Job()
		failed := make(chan error)
		go func() { failed <- run.Keep(second, "{}") }()
		time.Sleep(500 * time.Millisecond) // recorded, not yet durable
		at = time.Now()
		e.Must(id, p.Interrupt{})
		_ = second.Stopped()
		if d := time.Since(at); d > 50*time.Millisecond {
			t.Errorf("stopped after %v", d)
		}
		if err := <-failed; err != nil {
			t.Errorf("keep: %v", err)
		}
		e.Watch(id, 0).Expect("background_started 2 1.1.0", "background_ended 2 interrupted", "turn_ended interrupted")
		verify(t, e, id)
	})
}

func TestBackgroundCommandAndAFailedTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		j := e.Job()
		keeping(t, e, id, j)
		e.Request().Fail(enginetest.Refused())
		w.Expect("stop_requested failed", "turn_ended failed")
		if !j.Runs() {
			t.Error("the background command of a turn that failed was stopped")
		}
		w.Nothing()
		j.Exit(0)
		w.Expect("background_ended 1 completed")
		verify(t, e, id)
	})
}

func TestSnapshotListsBackgroundCommands(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		kept(t, e, id, e.Job())
		snap, err := e.Resume(t.Context(), id)
		want := []p.BackgroundStarted{{
			ID: 1, Call: p.CallID{Turn: 1, Response: 1}, Command: []string{"serve", `{"pid":7}`}, Cwd: "/w", Process: json.RawMessage(`{"pid":7}`),
		}}
		if d := cmp.Diff(want, snap.Background); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
	})
}

// haltedJob makes whoever stops it stand still for longer than a stop may take.
type haltedJob struct{ *enginetest.Job }

func (j haltedJob) Stop(cause error) {
	time.Sleep(2 * stopBound)
	j.Job.Stop(cause)
}

// When everything has stood still, owner and worker alike, the worker is not
// given up before it had its turn to speak.
func TestStandstillWhileStopping(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		run := e.Run()
		if _, _, err := run.Call.Host.Keep(t.Context(), p.BackgroundStarted{Command: []string{"serve"}}, haltedJob{e.Job()}); err != nil {
			t.Fatal(err)
		}
		run.Finish("running")
		e.Request().Answer("it serves")
		synctest.Wait()
		worker := e.DeafJob()
		keeping(t, e, id, worker)
		e.Request()
		e.Must(id, p.Interrupt{})
		e.Must(id, p.KillBackground{ID: 1})
		time.Sleep(time.Millisecond)
		worker.Return(p.CommandResult{ExitCode: -1, Killed: 2})
		w.Expect("turn_ended interrupted")
		for _, end := range ends(w.All) {
			if end.Result.Killed != 2 {
				t.Errorf("recorded of %d: %+v", end.ID, end.Result)
			}
		}
		verify(t, e, id)
	})
}

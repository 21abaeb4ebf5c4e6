package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine/enginetest"
	"github.com/fermata-agent/fermata/internal/conversation"
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
	v, err := e.Store.View(string(id))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	recs, err := v.Read(0, 10000)
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
		if !strings.Contains(text, "session 2: serve") || strings.Contains(text, "session 1") || strings.Contains(text, "session 3") {
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

// The end of the process kills all, and waits for it; but not without end.
func TestShutdownEndsBackgroundCommands(t *testing.T) {
	for _, while := range []string{"idle", "a turn runs", "an approval is open"} {
		for _, dies := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, dies %t", while, dies), func(t *testing.T) {
				bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
					one, two := e.DeafJob(), e.Job()
					kept(t, e, id, one)
					kept(t, e, id, two)
					busy(e, id, while)
					if dies {
						go func() {
							_ = one.Stopped()
							time.Sleep(700 * time.Millisecond)
							one.Exit(0)
						}()
					}
					at := time.Now()
					if err := e.Shutdown(t.Context()); err != nil {
						t.Fatal(err)
					}
					want := stopBound
					if dies {
						want = 700 * time.Millisecond
					}
					if d := time.Since(at); d != want {
						t.Errorf("it took %v, want %v", d, want)
					}
					if one.Runs() || two.Runs() {
						t.Error("a command was not stopped")
					}
					verify(t, e, id)
					next := enginetest.New(t, enginetest.Options{Store: e.Store})
					snap, err := next.Resume(t.Context(), id)
					if err != nil || len(snap.Background) > 0 || len(snap.Repaired) > 0 || snap.Waiting != (while == "an approval is open") {
						t.Errorf("opened again: %+v, %v", snap, err)
					}
				})
			})
		}
	}
}

// busy begins what goes on meanwhile.
func busy(e *enginetest.Engine, id p.ConversationID, while string) {
	switch while {
	case "a turn runs":
		e.Say(id, "go")
		e.Request()
	case "an approval is open":
		e.Say(id, "go")
		r := e.Request()
		r.Call("a", "work", "{}")
		r.End()
		e.Run().Ask("rm")
		synctest.Wait()
	}
}

func TestJournalFailureEndsBackgroundCommands(t *testing.T) {
	for _, while := range []string{"idle", "a turn runs", "an approval is open"} {
		t.Run(while, func(t *testing.T) {
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
				j := e.Job()
				kept(t, e, id, j)
				busy(e, id, while)
				full.Store(true)
				if _, err := e.Submit(t.Context(), id, p.Rename{Title: "x"}); !errors.Is(err, errFull) {
					t.Errorf("an op that cannot be recorded: %v", err)
				}
				_ = j.Stopped()
				w.Expect("background_ended 1 interrupted (unsaved)")
			})
		})
	}
}

func TestKillFindsBackgroundCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		one, two := e.Job(), e.Job()
		kept(t, e, id, one)
		one.Print("half a ")
		keeping(t, e, id, two)
		e.Request()
		time.Sleep(200 * time.Millisecond)
		var reclaimed []string
		e = kill(t, e, id, enginetest.Options{Config: func(c *conversation.Config) {
			c.Reclaim = func(_ context.Context, process json.RawMessage) (int, error) {
				reclaimed = append(reclaimed, string(process))
				return 1, nil
			}
		}})
		snap, err := e.Resume(t.Context(), id)
		if err != nil || len(snap.Background) > 0 || snap.Ended != p.Crashed {
			t.Fatalf("after the kill: %+v, %v", snap, err)
		}
		if want := []string{`{"pid":7}`, `{"pid":7}`}; !slices.Equal(reclaimed, want) {
			t.Errorf("reclaimed %q, want %q", reclaimed, want)
		}
		for _, want := range []string{"background command 1 (serve", "background command 2 (serve", "2 processes"} {
			if !strings.Contains(strings.Join(snap.Repaired, "\n"), want) {
				t.Errorf("repaired %q lacks %q", snap.Repaired, want)
			}
		}
		got := ends(recorded(t, e, id))
		if len(got) != 2 || got[0].Reason != p.Crashed || got[1].Reason != p.Crashed || got[0].Result.Output != "half a " {
			t.Errorf("ends %+v", got)
		}
		verify(t, e, id)
		e.Say(id, "what happened?")
		if lines := e.Request().Inputs(); !slices.Contains(lines, "user <environment_context>") {
			t.Errorf("the model is told %q", lines)
		}

		e = kill(t, e, id, enginetest.Options{}) // they are not found twice
		if _, err := e.Resume(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got := ends(recorded(t, e, id)); len(got) != 2 {
			t.Errorf("ends %+v", got)
		}
	})
}

// An approval that is open and a background command that runs: the crash ends
// the one and keeps the other.
func TestKillWhileAnApprovalIsOpenBesideABackgroundCommand(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		keeping(t, e, id, e.Job())
		r := e.Request()
		r.Call("a", "work", "{}")
		r.End()
		e.Run().Ask("rm")
		w.Expect("approval_requested 1.2.0")
		e = kill(t, e, id, enginetest.Options{})
		snap, err := e.Resume(t.Context(), id)
		if err != nil || !snap.Waiting || len(snap.Background) > 0 {
			t.Fatalf("after the kill: %+v, %v", snap, err)
		}
		e.Must(id, p.Approve{Call: snap.Asking[0], Decision: p.Approved})
		e.Run().Finish("removed")
		e.Request().Answer("ok")
		e.Watch(id, snap.Last).Expect("turn_ended completed")
		verify(t, e, id)
	})
}

// A fork has no part in what the original runs.
func TestForkWhileABackgroundCommandRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reclaimed := atomic.Int32{}
		e := enginetest.New(t, enginetest.Options{Config: func(c *conversation.Config) {
			c.Reclaim = func(context.Context, json.RawMessage) (int, error) { return int(reclaimed.Add(1)), nil }
		}})
		id := e.Begin()
		w := e.Watch(id, 1)
		gone, j := e.Job(), e.Job()
		kept(t, e, id, gone)
		kept(t, e, id, j)
		gone.Exit(0)
		w.Expect("background_ended 1 completed")
		fork, err := e.Fork(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n := reclaimed.Load(); n > 0 || !j.Runs() {
			t.Errorf("the original's process was reclaimed %d times; it runs: %t", n, j.Runs())
		}
		snap, err := e.Resume(t.Context(), fork)
		if err != nil || len(snap.Background) > 0 || len(snap.Repaired) > 0 {
			t.Errorf("fork: %+v, %v", snap, err)
		}
		got := ends(recorded(t, e, fork))
		if len(got) != 2 || got[0].ID != 1 || got[0].Reason != p.Completed || got[1].ID != 2 || got[1].Reason != p.Interrupted {
			t.Errorf("ends in the fork: %+v", got)
		}
		verify(t, e, fork)
		if snap, err := e.Resume(t.Context(), id); err != nil || len(snap.Background) != 1 {
			t.Errorf("original: %+v, %v", snap, err)
		}
		keeping(t, e, fork, e.Job()) // it counts on from there
		e.Request().Answer("ok")
		e.Watch(fork, 0).Expect("background_started 3 3.1.0")
		j.Exit(0)
		w.Expect("background_ended 2 completed")
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
		w.Expect("stop_requested failed", "background_ended 1 interrupted", "turn_ended failed")
		var stop *conversation.StoppedError
		if err := j.Stopped(); !errors.As(err, &stop) || stop.Reason != p.Failed {
			t.Errorf("cause %v", err)
		}
		w.Nothing()
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

// A message that waits for the next turn is handed back at the end of the
// process; that it is must not keep anybody from waiting for the commands.
func TestShutdownWhileAMessageWaitsForTheNextTurn(t *testing.T) {
	t.Skip("the owner hands messages back with a turn.Lost, which calls running commands crashed; turn.HandBack is for it")
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		j := e.DeafJob()
		kept(t, e, id, j)
		e.Say(id, "go")
		r := e.Request()
		r.Deaf()
		e.Must(id, p.Interrupt{})
		e.Say(id, "after the stop", p.Queue)
		go func() {
			_ = j.Stopped()
			time.Sleep(500 * time.Millisecond)
			r.End()
			time.Sleep(500 * time.Millisecond)
			j.Exit(0)
		}()
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Expect("turn_ended interrupted")
		w.ExpectExactly("input_returned after the stop", "background_ended 1 completed")
		verify(t, e, id)
	})
}

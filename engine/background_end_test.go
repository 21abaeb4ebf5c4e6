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

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

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
					if err != nil || len(snap.Background) > 0 || len(snap.Recovered) > 0 || snap.Waiting != (while == "an approval is open") {
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
		e = kill(t, e, id, enginetest.Options{Config: func(c *engine.Config) {
			c.Recovery.Reclaim = func(_ context.Context, process json.RawMessage) (int, error) {
				reclaimed = append(reclaimed, string(process))
				return 1, nil
			}
		}})
		if one.Runs() || two.Runs() {
			t.Error("the engine was ended at once, and what it ran goes on")
		}
		snap, err := e.Resume(t.Context(), id)
		if err != nil || len(snap.Background) > 0 || snap.Ended != p.Crashed {
			t.Fatalf("after the kill: %+v, %v", snap, err)
		}
		if want := []string{`{"pid":7}`, `{"pid":7}`}; !slices.Equal(reclaimed, want) {
			t.Errorf("reclaimed %q, want %q", reclaimed, want)
		}
		for _, want := range []string{"background command 1 (serve", "background command 2 (serve", "2 processes"} {
			if !strings.Contains(strings.Join(snap.Recovered, "\n"), want) {
				t.Errorf("repaired %q lacks %q", snap.Recovered, want)
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
		e.Must(id, p.Approve{Call: snap.PendingApprovals[0], Decision: p.Approved})
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
		e := enginetest.New(t, enginetest.Options{Config: func(c *engine.Config) {
			c.Recovery.Reclaim = func(context.Context, json.RawMessage) (int, error) { return int(reclaimed.Add(1)), nil }
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
		if err != nil || len(snap.Background) > 0 || len(snap.Recovered) > 0 {
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

// A message that waits for the next turn is handed back at the end of the
// process; that it is must not keep anybody from waiting for the commands.
func TestShutdownWhileAMessageWaitsForTheNextTurn(t *testing.T) {
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

// grow makes a turn that records more than is read back without a checkpoint.
func grow(e *enginetest.Engine, id p.ConversationID) {
	e.Say(id, strings.Repeat("x", 512<<10))
	e.Request().Answer("much")
	synctest.Wait()
	time.Sleep(time.Second)
}

// A checkpoint is made when nothing runs: else what runs would be forgotten.
func TestBackgroundCommandsAndCheckpoints(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		j := e.Job()
		kept(t, e, id, j)
		j.Print("up")
		grow(e, id)
		e = kill(t, e, id, enginetest.Options{})
		if _, err := e.Resume(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got := ends(recorded(t, e, id)); len(got) != 1 || got[0].Reason != p.Crashed || got[0].Result.Output != "up" {
			t.Fatalf("ends %+v", got)
		}

		grow(e, id) // now nothing runs
		e = kill(t, e, id, enginetest.Options{})
		kept(t, e, id, e.Job())
		snap, err := e.Resume(t.Context(), id)
		if err != nil || len(snap.Background) != 1 || snap.Background[0].ID != 2 {
			t.Errorf("it does not count on: %+v, %v", snap.Background, err)
		}
	})
}

func TestKillStopsBackgroundCommands(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		j := e.Job()
		kept(t, e, id, j)
		e.Kill()
		if j.Runs() {
			t.Error("the engine is gone, and the command runs")
		}
	})
}

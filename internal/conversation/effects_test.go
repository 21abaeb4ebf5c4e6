package conversation_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// A slowDisk is a store whose syncs take as long as the test says.
type slowDisk struct {
	*journal.MemoryStore
	delay atomic.Int64
}

func newSlowDisk() *slowDisk {
	d := &slowDisk{}
	d.MemoryStore = journal.NewMemoryStore(journal.MemoryOptions{SyncDelay: func() time.Duration { return time.Duration(d.delay.Load()) }})
	return d
}

func (d *slowDisk) set(delay time.Duration) { d.delay.Store(int64(delay)) }

// bubble runs a test on a conversation whose disk can be slow.
func bubble(t *testing.T, f func(t *testing.T, e *enginetest.Engine, id p.ConversationID, d *slowDisk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDisk()
		e := enginetest.New(t, enginetest.Options{Store: d})
		f(t, e, e.Begin(), d)
	})
}

// The request of a turn that was interrupted before its record was durable is
// not made by the turn that follows, however long the disk takes.
func TestRequestOfAnInterruptedTurnIsNeverMade(t *testing.T) {
	for name, disk := range map[string]time.Duration{"within the stop bound": time.Second, "beyond it": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, d *slowDisk) {
				w := e.Watch(id, 0)
				d.set(disk)
				go e.Submit(t.Context(), id, p.UserTurn{Content: p.Text("one")})
				time.Sleep(100 * time.Millisecond)
				e.Must(id, p.Interrupt{})
				time.Sleep(2 * time.Second)
				go e.Submit(t.Context(), id, p.UserTurn{Content: p.Text("two")})
				r := e.Request()
				if got := r.Inputs()[len(r.Inputs())-1]; got != "user two" {
					t.Errorf("the request ends with %q", got)
				}
				time.Sleep(time.Minute)
				e.Idle()
				r.Answer("2")
				w.Expect("stop_requested interrupted")
				stopped := w.Last().Time
				w.Expect("turn_ended interrupted")
				if took := w.Last().Time.Sub(stopped); took > 0 {
					t.Errorf("the turn took %v to stop although nothing had begun", took)
				}
				w.Expect("turn_started", "turn_ended completed")
			})
		})
	}
}

// A call that was not yet durable when the turn was interrupted does not run,
// and its output says so.
func TestCallOfAnInterruptedTurnIsNeverRun(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, d *slowDisk) {
		w := e.Watch(id, 0)
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "{}")
		synctest.Wait()
		d.set(time.Second)
		r.End()
		time.Sleep(100 * time.Millisecond) // CallStarted is recorded and not durable
		e.Must(id, p.Interrupt{})
		e.Idle()
		w.Expect("call_started 1.1.0", "stop_requested interrupted", "tool_output 1.1.0 aborted")
		want := "aborted: the user stopped the turn before this ran, so it was not run"
		if got := w.Last().Body.(*p.ToolOutput).Output; got != want {
			t.Errorf("the output is %q, want %q", got, want)
		}
		w.Expect("turn_ended interrupted")
		time.Sleep(time.Minute)
		e.Idle()
		w.Nothing()
	})
}

// A tool that has returned writes nothing any more, although its call has no output yet: what it wrote late would
// be shown to clients, and be in no output.
func TestReturnedToolWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *slowDisk) {
		run := runCall(e, id)
		run.Print("seen\n")
		run.Ask("make")
		synctest.Wait()
		run.Print("late\n")
		var shown []string
		for ev, err := range e.Read(t.Context(), id) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := ev.Body.(*p.Delta); ok {
				shown = append(shown, d.Text)
			}
		}
		if want := []string{"seen\n"}; !slices.Equal(shown, want) {
			t.Errorf("clients are shown %q, want %q", shown, want)
		}
	})
}

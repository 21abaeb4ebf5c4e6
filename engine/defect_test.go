package engine_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/panics"
	p "github.com/fermata-agent/fermata/protocol"
)

// A defect in the owner of one conversation is a crash of that conversation: whoever waits gets an error, the next
// op recovers what is recorded, and other conversations run on.
func TestPanicOfAnOwnerEndsOnlyItsConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var traces atomic.Int32
		e := enginetest.New(t, enginetest.Options{Config: func(c *engine.Config) {
			c.Panicked = func(_ any, stack []byte) {
				traces.Add(1)
				if !strings.Contains(string(stack), "conversation.(*owner)") {
					t.Errorf("the trace is %s", stack)
				}
			}
		}})
		broken, other := e.Begin(), e.Begin()
		e.Say(other, "go")
		request := e.Request()
		e.Say(broken, "go")
		r := e.Request()
		r.Call("w", "work", "{}")
		r.End()
		run := e.Run()
		if err := run.Keep(e.Job(), "this is not JSON, and cannot be recorded"); err == nil {
			t.Error("the command was kept")
		}
		synctest.Wait()
		if traces.Load() != 1 || run.Ctx.Err() == nil {
			t.Errorf("%d traces; the tool was stopped: %v", traces.Load(), run.Ctx.Err())
		}
		snap, err := e.Resume(t.Context(), broken)
		if err != nil || snap.Active || snap.Ended != p.Crashed {
			t.Errorf("%v: the turn is active: %v, ended: %s", err, snap.Active, snap.Ended)
		}
		e.Say(broken, "again")
		e.Request().Answer("here I am")
		request.Answer("and I never noticed")
		synctest.Wait()
		for _, id := range []p.ConversationID{broken, other} {
			if snap, err := e.Resume(t.Context(), id); err != nil || snap.Ended != p.Completed {
				t.Errorf("%v: ended %s", err, snap.Ended)
			}
		}
	})
}

// A defect that shows when a conversation is opened is an error of that, and does not keep its journal locked.
func TestPanicOfOpeningIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemoryStore(journal.MemoryOptions{})
		e := enginetest.New(t, enginetest.Options{Store: store})
		id := e.Begin()
		e.Say(id, "go")
		r := e.Request()
		r.Call("w", "work", "{}")
		r.End()
		e.Run().Ask("rm") // it waits, so that opening needs its tools
		synctest.Wait()
		if err := e.Local.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		works := false
		e = enginetest.New(t, enginetest.Options{Store: store, Config: func(c *engine.Config) {
			tools := c.Tools
			c.Panicked = func(any, []byte) {}
			c.Turns.Tools = func(p.Settings) []engine.Tool {
				if !works {
					panic("no tools")
				}
				return tools
			}
		}})
		var broken *panics.Error
		if _, err := e.Resume(t.Context(), id); !errors.As(err, &broken) {
			t.Errorf("opened: %v", err)
		}
		works = true
		if snap, err := e.Resume(t.Context(), id); err != nil || !snap.Waiting {
			t.Errorf("%v: waiting: %v", err, snap.Waiting)
		}
	})
}

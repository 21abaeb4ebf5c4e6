// Package enginetest checks that models, tools and stores do what an engine relies on. A program that brings its own
// calls these functions from its tests.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/store/memory"
)

// TestModel checks a model: that it answers messages of a conversation, that it stops when a turn is interrupted, and that
// the conversation continues afterwards. text is a message that it answers without a tool; interrupt is one whose answer
// takes so long that it can be interrupted after its first words.
func TestModel(t *testing.T, m engine.Model, text, interrupt string) {
	var running atomic.Int32
	c := begin(t, engine.Config{StopTimeout: stopTimeout, Model: engine.ModelFunc(func(ctx context.Context, r engine.Request, reply *engine.Reply) error {
		running.Add(1)
		defer running.Add(-1)
		return m.Stream(ctx, r, reply)
	})})
	t.Run("Answers", func(t *testing.T) { c.completes(t, text) })
	t.Run("Interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		deltas := 0
		end := c.run(ctx, t, interrupt, func(ev protocol.Event) {
			if _, ok := ev.Body.(*protocol.Delta); ok {
				deltas++
				cancel()
			}
		})
		switch {
		case deltas == 0:
			t.Error("the model passes nothing on before its response is over: call Reply.Text as it arrives")
		case running.Load() > 0:
			t.Error("the turn has ended, and Stream has not returned: it must when its context ends")
		case end.End.Reason != protocol.Interrupted:
			t.Errorf("the turn ended as %s, want interrupted: is the answer long enough?", end.End.Reason)
		case end.Message == "":
			t.Error("the words before the interrupt are lost")
		}
	})
	t.Run("Continues", func(t *testing.T) { c.completes(t, text) })
	t.Run("EndedContext", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if end := c.run(ctx, t, text, nil); end.Turn != 0 {
			t.Errorf("a turn was run: %+v", end)
		}
	})
	c.check(t)
}

// TestTool checks a tool: that its description can be used, that each of the calls, whose arguments are given, succeeds
// or asks for an approval, that arguments which are not JSON are an error and not a panic, and that a call returns when its
// turn is interrupted.
func TestTool(t *testing.T, tool engine.Tool, arguments ...string) {
	name := tool.Spec().Name
	var next string // the arguments of the call that the model makes
	n := 0
	var running atomic.Int32
	watched := engine.NewTool(tool.Spec(), func(ctx context.Context, c engine.Call) (engine.Output, error) {
		running.Add(1)
		defer running.Add(-1)
		return tool.Run(ctx, c)
	})
	c := begin(t, engine.Config{StopTimeout: stopTimeout, Tools: []engine.Tool{watched}, Model: engine.ModelFunc(func(_ context.Context, r engine.Request, reply *engine.Reply) error {
		if r.Items[len(r.Items)-1].Kind != protocol.PromptOutput {
			n++
			reply.Call(fmt.Sprint("call_", n), name, next)
		}
		return nil
	})})
	// call runs a turn with one call, and interrupts it when the call begins if that is wanted.
	call := func(t *testing.T, interrupt bool) (out protocol.ToolOutput, end engine.TurnEnd) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		end = c.run(ctx, t, "call", func(ev protocol.Event) {
			switch b := ev.Body.(type) {
			case *protocol.CallStarted:
				if interrupt {
					cancel()
				}
			case *protocol.ApprovalRequested:
				_, err := c.Submit(ctx, c.id, protocol.Approve{Call: b.Call, Decision: protocol.Approved})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			case *protocol.ToolOutput:
				out = *b
			}
		})
		return out, end
	}
	for _, a := range arguments {
		next = a
		t.Run("Call", func(t *testing.T) {
			if out, end := call(t, false); out.Failed || out.Aborted || end.End.Reason != protocol.Completed {
				t.Errorf("%s %s: the turn %s, the output is %q", name, next, end.End.Reason, out.Output)
			}
		})
		t.Run("Interrupted", func(t *testing.T) {
			if _, end := call(t, true); running.Load() > 0 {
				t.Errorf("%s %s: the turn %s, and Run has not returned: it must when its context ends", name, next, end.End.Reason)
			}
		})
	}
	t.Run("NotJSON", func(t *testing.T) {
		if next = "{"; len(tool.Spec().Grammar) > 0 {
			t.Skip("its argument is free text")
		}
		if out, end := call(t, false); end.End.Reason != protocol.Completed || !out.Failed {
			t.Errorf("%s {: the turn %s, failed is %t, the output is %q", name, end.End.Reason, out.Failed, out.Output)
		}
	})
	if t.Failed() {
		return
	}
	c.check(t)
}

// TestStore checks a store: that conversations survive the death of an engine with everything that was recorded, that one
// engine has a conversation open at a time, and that they can be listed, forked, archived and deleted. open returns the
// store; it is called once for each engine, so that a store outside of the process is connected to several times.
func TestStore(t *testing.T, open func(t testing.TB) engine.Store) {
	first := begin(t, engine.Config{Store: open(t), Model: echo, IdleAfter: -1})
	first.completes(t, "one")
	other := first
	other.Local = start(t, engine.Config{Store: open(t), Model: echo, IdleAfter: -1})
	t.Run("OneOwner", func(t *testing.T) {
		_, err := other.Resume(t.Context(), first.id)
		if locked := (*protocol.LockedError)(nil); !errors.As(err, &locked) {
			t.Errorf("a second engine opens the conversation: %v, want a *protocol.LockedError", err)
		}
	})
	t.Run("Crash", func(t *testing.T) {
		first.Kill()
		state, err := other.Resume(t.Context(), first.id)
		if err != nil || state.Turn != 1 || state.Ended != protocol.Completed {
			t.Fatalf("after a crash: turn %d %s, %v", state.Turn, state.Ended, err)
		}
		other.completes(t, "two")
	})
	t.Run("List", func(t *testing.T) {
		if s := other.summary(t, false); s == nil || s.FirstLine != "one" || s.Turns != 2 {
			t.Errorf("the list shows %+v", s)
		}
	})
	t.Run("Fork", func(t *testing.T) {
		id, err := other.Fork(t.Context(), first.id, 0)
		if err != nil {
			t.Fatal(err)
		}
		fork := other
		fork.id = id
		fork.completes(t, "three")
		if err := other.Delete(t.Context(), id); err != nil {
			t.Error(err)
		}
		if fork.summary(t, false) != nil {
			t.Error("a deleted conversation is listed")
		}
	})
	t.Run("Archive", func(t *testing.T) {
		if err := other.Archive(t.Context(), first.id); err != nil {
			t.Fatal(err)
		}
		if other.summary(t, false) != nil || other.summary(t, true) == nil {
			t.Error("the conversation is not listed as archived")
		}
		if err := other.Unarchive(t.Context(), first.id); err != nil {
			t.Fatal(err)
		}
		other.completes(t, "four")
	})
	other.check(t)
}

// stopTimeout is how long an interrupted turn waits for what runs. Only what does not stop takes so long.
const stopTimeout = 10 * time.Second

// echo is a model that repeats the last message.
var echo = engine.ModelFunc(func(_ context.Context, r engine.Request, reply *engine.Reply) error {
	reply.Text(r.LastMessage())
	return nil
})

// A conversation is one that a test runs turns in.
type conversation struct {
	*engine.Local
	id protocol.ConversationID
}

func start(t *testing.T, c engine.Config) *engine.Local {
	t.Helper()
	if c.Store == nil {
		c.Store = memory.New()
	}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown(context.WithoutCancel(t.Context())) })
	return e
}

func begin(t *testing.T, c engine.Config) conversation {
	t.Helper()
	e := start(t, c)
	id, err := e.Create(t.Context(), protocol.Settings{Cwd: t.TempDir(), Model: "test", Approval: protocol.ApprovalOnRequest})
	if err != nil {
		t.Fatal(err)
	}
	return conversation{e, id}
}

// run runs a turn. One whose context has ended is not begun.
func (c conversation) run(ctx context.Context, t *testing.T, text string, fn func(protocol.Event)) engine.TurnEnd {
	t.Helper()
	end, err := engine.RunTurn(ctx, c, c.id, protocol.UserTurn{Content: protocol.Text(text)}, fn)
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	return end
}

// completes runs a turn that has to complete with a message.
func (c conversation) completes(t *testing.T, text string) {
	t.Helper()
	end := c.run(t.Context(), t, text, nil)
	if end.End.Reason != protocol.Completed || end.Message == "" {
		t.Errorf("%q: the turn %s, the message is %q, %v", text, end.End.Reason, end.Message, end.End.Error)
	}
}

// summary returns what the list shows of the conversation, nil if it is not there.
func (c conversation) summary(t *testing.T, archived bool) *protocol.Summary {
	t.Helper()
	page, err := c.List(t.Context(), engine.ListOptions{Archived: archived, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range page.Items {
		if s.ID == c.id {
			return &page.Items[i]
		}
	}
	return nil
}

// check reports what is wrong with the conversation as it is recorded.
func (c conversation) check(t *testing.T) {
	t.Helper()
	if err := c.Release(t.Context(), c.id); err != nil {
		t.Fatal(err)
	}
	report, err := c.Check(t.Context(), c.id)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range append(report.Problems, report.Lost...) {
		t.Error(problem)
	}
}

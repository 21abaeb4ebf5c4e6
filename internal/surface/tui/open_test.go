package tui

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	p "github.com/fermata-agent/fermata/protocol"
)

// conversationOf is a conversation with a number of turns.
func conversationOf(e *enginetest.Engine, turns int) p.ConversationID {
	id := e.Begin()
	for i := range turns {
		e.Say(id, fmt.Sprintf("question %d.", i+1))
		e.Request().Answer(fmt.Sprintf("answer %d.", i+1))
		synctest.Wait() // for the end of the turn, which the next question would join
	}
	return id
}

func TestResume(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := conversationOf(e, 2)
		d := drive(t, e, resuming(id))
		d.wait(time.Second)
		d.sees("question 1.", "answer 1.", "question 2.", "answer 2.", "ready")
		d.say("more", "enter")
		e.Request().Answer("answer 3.")
		d.wait(time.Second)
		d.sees("answer 3.")
		if d.m.conv.ID != id {
			t.Error("it is another conversation")
		}
	})
}

func TestResumeWithAPrompt(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := conversationOf(e, 1)
		kept := &memory{}
		d := drive(t, e, resuming(id), func(o *Options) { o.Prompt, o.History = "and now?", kept })
		e.Request().Answer("now this")
		d.wait(time.Second)
		d.sees("answer 1.", "and now?", "now this")
		if len(kept.added) != 1 || kept.added[0] != "and now?" {
			t.Errorf("the history holds %q", kept.added)
		}
	})
}

// After a crash the first new line says what was found.
func TestResumeAfterACrash(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("hello", "enter")
		r := e.Request()
		r.Delta("half a sen")
		d.say("steered", "enter")
		d.wait(time.Second)
		id := d.m.conv.ID
		e.Kill()

		again := enginetest.New(t, enginetest.Options{Store: e.Store})
		d = drive(t, again, resuming(id))
		d.wait(time.Second)
		d.sees("half a sen", "crashed", "recovered on open", "│ › steered")
	})
}

// What an earlier stop returned is not put into the composer again when
// there were turns since.
func TestResumeDoesNotBringOldInputBack(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("hello", "enter")
		r := e.Request()
		d.say("back", "tab")
		d.press("esc")
		r.Stopped()
		d.wait(time.Second)
		d.press("ctrl+u")
		d.say("other", "enter")
		e.Request().Answer("yes")
		d.wait(time.Second)

		again := drive(t, e, resuming(d.m.conv.ID))
		again.wait(time.Second)
		if text := again.m.comp.Text(); text != "" {
			t.Errorf("the composer holds %q", text)
		}
	})
}

func TestOverridesOfThisRun(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := conversationOf(e, 1)
		model := "other"
		d := drive(t, e, resuming(id), func(o *Options) {
			o.Overrides = func(p.Settings) p.Overrides { return p.Overrides{Model: &model} }
		})
		d.wait(time.Second)
		d.sees("other")
		last := d.m.conv.Last
		again := drive(t, e, resuming(id), func(o *Options) {
			o.Overrides = func(p.Settings) p.Overrides { return p.Overrides{Model: &model} }
		})
		again.wait(time.Second)
		if again.m.conv.Last != last {
			t.Error("what does not differ was recorded again")
		}
	})
}

// A lockedEngine has a conversation that somebody else has open.
type lockedEngine struct {
	engine.Engine
	id p.ConversationID
}

func (l lockedEngine) Resume(ctx context.Context, id p.ConversationID) (engine.Snapshot, error) {
	if id == l.id {
		return engine.Snapshot{}, fmt.Errorf("open: %w", &engine.LockedError{Owner: engine.Owner{PID: 4242}})
	}
	return l.Engine.Resume(ctx, id)
}

func TestLockedConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		locked, free := conversationOf(e, 1), conversationOf(e, 1)
		e.Must(free, p.Rename{Title: "the free one"})
		d := drive(t, e, resuming(locked), func(o *Options) {
			o.Engine = lockedEngine{e, locked}
			o.Owner = func(pid int) string { return fmt.Sprintf("fermata as %d", pid) }
		})
		d.wait(time.Second)
		d.sees("process 4242 (fermata as 4242): use it there, or close it first", "the free one")
		d.say("free", "enter")
		d.wait(time.Second)
		d.sees("question 1.", "ready")
		if d.m.conv.ID != free {
			t.Error("not the one that was chosen")
		}
	})
}

func TestResumeOfNothing(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, resuming(p.NewConversationID(time.Now())))
		d.wait(time.Second)
		d.sees("no conversations yet", "not found")
		d.press("esc")
		d.say("hello", "enter")
		e.Request().Answer("hi")
		d.wait(time.Second)
		d.sees("hi", "ready")
	})
}

// countingEngine counts the events that are read.
type countingEngine struct {
	engine.Engine
	read *atomic.Int64
}

func (c countingEngine) Subscribe(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		for e, err := range c.Engine.Subscribe(ctx, id, after) {
			c.read.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

// Of a long conversation the end is loaded first, from the beginning of a turn;
// the rest when somebody goes there.
func TestLongConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		const turns = 1500 // of five events
		id := conversationOf(e, turns)
		var read atomic.Int64
		d := drive(t, e, resuming(id), func(o *Options) { o.Engine = countingEngine{e, &read} })
		d.wait(time.Second)
		d.sees(fmt.Sprintf("answer %d.", turns), "ready")
		if n := read.Load(); n > client.TailEvents+100 {
			t.Errorf("%d events were read", n)
		}
		if got, want := d.m.conv.Usage().Total, int64(11*turns); got != want {
			t.Errorf("it shows %d tokens, want %d", got, want)
		}
		first := d.m.conv.Transcript.Items[0].Text
		if !strings.HasPrefix(first, "question ") || first == "question 1." {
			t.Errorf("it begins with %q", first)
		}
		d.say("x", "enter") // a turn that runs meanwhile
		r := e.Request()
		r.Delta("half of it")
		d.wait(time.Second)
		d.press("home")
		d.wait(5 * time.Second)
		if n := len(d.m.conv.Transcript.Items); n < 2*turns {
			t.Fatalf("%d items are there", n)
		}
		if got, want := d.m.conv.Usage().Total, int64(11*turns); got != want {
			t.Errorf("it shows %d tokens, want %d", got, want)
		}
		d.press("home")
		d.sees("question 1.")
		d.press("end")
		d.sees("half of it")
		r.Message("half of it, and the rest")
		r.End()
		d.wait(time.Second)
		d.sees("half of it, and the rest", "ready")
	})
}

// A turn that is longer than what is loaded at first is loaded whole.
func TestLongTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := conversationOf(e, 1)
		e.Say(id, "long")
		for range client.TailEvents {
			r := e.Request()
			r.Call("c", "look", "{}")
			r.End()
			e.Run().Finish("ok")
		}
		e.Request().Answer("over")
		d := drive(t, e, resuming(id))
		d.wait(time.Second)
		d.sees("over", "ready")
		if first := d.m.conv.Transcript.Items[0].Text; first != "long" && first != "question 1." {
			t.Errorf("it begins with %q", first)
		}
	})
}

// brokenEngine loses its conversation.
type brokenEngine struct {
	engine.Engine
	broken *atomic.Bool
}

func (b brokenEngine) Subscribe(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		for e, err := range b.Engine.Subscribe(ctx, id, after) {
			if b.broken.Load() {
				yield(p.Event{}, errors.New("the disk is gone"))
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// A feed that ends is reported, and begun again with the next message.
func TestFeedThatBreaks(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		var broken atomic.Bool
		d := drive(t, e, func(o *Options) { o.Engine = brokenEngine{e, &broken} })
		d.say("one", "enter")
		r := e.Request()
		broken.Store(true)
		r.Answer("first answer")
		d.wait(time.Second)
		d.sees("the disk is gone")
		broken.Store(false)
		d.say("two", "enter")
		e.Request().Answer("second answer")
		d.wait(time.Second)
		d.sees("first answer", "second answer", "ready")
	})
}

func TestPanicOfTheFeedIsOurs(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("one", "enter")
		e.Request().Answer("x")
		d.wait(time.Second)
		defer func() {
			if r := recover(); r == nil {
				t.Error("it goes on")
			}
		}()
		d.m.Update(client.Batch{From: d.m.conv.Feed, Err: &client.PanicError{Value: "ouch"}})
	})
}

// Whoever leaves from a new conversation sees the id of the one before.
func TestQuitFromANewConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "yes")
		id := d.m.conv.ID
		d.say("/new", "enter")
		d.press("ctrl+d")
		if r := d.m.result(); !d.over || r.Conversation != id || r.Lines[0] != "to resume: fermata resume "+string(id) {
			t.Errorf("over %v, %+v", d.over, r)
		}
	})
}

// slowEngine takes long to open a conversation.
type slowEngine struct{ engine.Engine }

func (s slowEngine) Resume(ctx context.Context, id p.ConversationID) (engine.Snapshot, error) {
	select {
	case <-time.After(3 * time.Second):
		return s.Engine.Resume(ctx, id)
	case <-ctx.Done():
		return engine.Snapshot{}, context.Cause(ctx)
	}
}

// Nobody is welcomed to a new conversation while another is being opened, and
// what is not known is not shown.
func TestNoWelcomeWhileOpening(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := conversationOf(e, 1)
		broken := func(o *Options) {
			o.Engine = slowEngine{e}
			o.Settings = func(context.Context) (p.Settings, error) { return p.Settings{}, errors.New("no provider") }
		}
		d := drive(t, e, broken, resuming(id))
		d.wait(time.Second)
		d.sees("opening…")
		d.seesNot("fermata test")
		d.wait(3 * time.Second)
		d.sees("answer 1.")

		d = drive(t, e, broken, func(o *Options) { o.Pick = true })
		d.wait(time.Second)
		d.press("esc")
		d.sees("fermata test", "│ ● │  /w")
		d.seesNot("\n  commands ")
	})
}

// Esc takes the choice back while the conversation is being opened.
func TestOpeningIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		conversationOf(e, 1)
		d := drive(t, e, func(o *Options) { o.Engine, o.Pick = slowEngine{e}, true })
		d.wait(time.Second)
		d.press("enter")
		d.sees("opening…")
		d.press("esc")
		d.wait(5 * time.Second)
		d.sees("fermata test", "ready")
		if d.m.conv.ID != "" {
			t.Error("it was opened")
		}
	})
}

// Names of files are completed where the conversation works.
func TestFilesOfTheConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id, err := e.Create(t.Context(), p.Settings{Cwd: "/elsewhere", Model: "puppet"})
		if err != nil {
			t.Fatal(err)
		}
		d := drive(t, e, resuming(id), func(o *Options) {
			o.Files = func(_ context.Context, dir, _ string) []string { return []string{"in" + dir + "/file"} }
		})
		d.wait(time.Second)
		d.press("@", "f")
		d.wait(time.Second)
		d.sees("in/elsewhere/file")
		d.press("esc", "ctrl+u")
		d.say("/new", "enter")
		d.wait(time.Second)
		d.press("@", "f")
		d.wait(time.Second)
		d.sees("in/w/file")
	})
}

// A conversation whose directory was removed can be read, and says how to continue elsewhere.
func TestResumeWhereNothingIs(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id, err := e.Create(t.Context(), p.Settings{Cwd: "/no/such/directory", Model: "puppet"})
		if err != nil {
			t.Fatal(err)
		}
		d := drive(t, e, resuming(id))
		d.wait(time.Second)
		d.sees("no longer exists:", "/no/such/directory; fermata resume "+string(id)+" -C")
	})
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id, err := e.Create(t.Context(), p.Settings{Cwd: "/no/such/directory", Model: "puppet"})
		if err != nil {
			t.Fatal(err)
		}
		d := drive(t, e, resuming(id), func(o *Options) {
			o.Overrides = func(p.Settings) p.Overrides { dir := "/"; return p.Overrides{Cwd: &dir} }
		})
		d.wait(time.Second)
		d.seesNot("no longer exists")
	})
}

// An approval that comes while something else is on the screen is announced.
func TestApprovalBehindAScreen(t *testing.T) {
	for _, line := range []string{"/help", "/approvals"} {
		bubble(t, func(t *testing.T, e *enginetest.Engine) {
			d := drive(t, e)
			d.say("do it", "enter")
			r := e.Request()
			d.say(line, "enter")
			r.Call("c1", "work", "{}")
			r.End()
			e.Run().Ask("rm", "x")
			d.wait(time.Second)
			d.sees("an approval is pending")
			d.seesNot("rm x")
			d.press("esc")
			d.sees("rm x")
			d.wait(time.Second)
			d.answer("y")
			e.Run().Finish("done")
			e.Request().Answer("ok")
			d.wait(time.Second)
			d.sees("ok")
		})
	}
}

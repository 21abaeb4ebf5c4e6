package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

func TestMessageAndAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.sees("fermata test", "puppet", "ready")
		d.say("hello", "enter")
		r := e.Request()
		d.wait(time.Second)
		d.sees("› hello", "working 1 s")
		r.Delta("good ")
		d.wait(2 * client.FrameTime)
		d.sees("good")
		r.Message("good day")
		r.End()
		d.wait(2 * client.FrameTime)
		d.sees("good day", "ready")
		d.seesNot("working")
	})
}

func TestConversationBeginsWithItsFirstMessage(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.wait(time.Second)
		if page, err := e.List(t.Context(), listAll); err != nil || len(page.Items) != 0 {
			t.Fatalf("%v, %v: it was begun before anybody said something", page, err)
		}
		if r := d.m.result(); r.Conversation != "" || len(r.Lines) != 0 {
			t.Errorf("nothing was said, and it prints %v", r)
		}
		d.say("hello", "enter")
		e.Request().Answer("hi")
		d.wait(time.Second)
		if r := d.m.result(); r.Conversation == "" || r.Lines[0] != "to resume: fermata resume "+string(r.Conversation) {
			t.Errorf("it prints %v", r)
		}
	})
}

// Stopping is shown at once, before the engine has answered.
func TestStopInText(t *testing.T) {
	for _, key := range []string{"esc", "ctrl+c"} {
		bubble(t, func(t *testing.T, e *enginetest.Engine) {
			d := drive(t, e)
			d.say("hello", "enter")
			r := e.Request()
			r.Delta("half a sen")
			d.wait(2 * client.FrameTime)
			d.step(press(key))
			d.sees("stopping…", "half a sen")
			d.m.Hint(theme.Error, "something else") // which does not hide it
			d.sees("stopping…")
			r.Stopped()
			d.wait(100 * time.Millisecond)
			d.m.hint.Clear()
			d.sees("half a sen", "partial", "interrupted after", "reply kept", "ready")
			d.seesNot("stopping…")

			d.say("again", "enter")
			e.Request().Answer("whole")
			d.wait(100 * time.Millisecond)
			d.sees("half a sen", "interrupted", "whole", "ready")
		})
	}
}

// A stop that comes before the message has been taken stops what it leads to.
func TestStopWhileTheMessageIsOnItsWay(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("a", "enter")
		e.Request().Answer("b")
		d.wait(time.Second)

		d.step(press("c"))
		d.step(press("enter"))
		d.sees("sending…")
		d.step(press("esc"))
		d.sees("stopping…")
		d.settle()
		d.wait(100 * time.Millisecond)
		d.sees("interrupted after", "ready")
		e.Idle()
	})
}

// Messages that the conversation has not taken when the stop comes are back.
func TestStopGivesBackWhatWasNotTaken(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("a", "enter")
		r := e.Request()
		d.wait(time.Second)
		for _, k := range []string{"o", "n", "e", "enter", "t", "w", "o", "tab", "t", "h", "r", "e", "e", "enter", "esc"} {
			d.step(press(k))
		}
		d.settle()
		r.Stopped()
		d.wait(time.Second)
		d.sees("interrupted after", "ready")
		text := d.m.comp.Text()
		for _, it := range d.m.conv.Transcript.Items { // the first may have been taken, and was stopped then
			if it.Kind == transcript.User && it.Text == "one" {
				text += it.Text
			}
		}
		for _, word := range []string{"one", "two", "three"} {
			if occurrences(text, word) != 1 {
				t.Errorf("%q is %d times in %q", word, occurrences(text, word), text)
			}
		}
		e.Idle()
	})
}

// What waits when the turn is stopped is back in the composer, before what is
// being written.
func TestStopHandsInputBack(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("a", "enter")
		r := e.Request()
		d.say("steered", "enter")
		d.say("queued", "tab")
		d.sees("steering: steered", "queued: queued")
		d.say("half", "left")
		d.press("esc")
		r.Stopped()
		d.wait(time.Second)
		if got, want := d.m.comp.Text(), "steered\n\nqueued\n\nhalf"; got != want {
			t.Errorf("the composer holds %q, want %q", got, want)
		}
		d.seesNot("joins in:", "next:")
	})
}

func TestSteerQueueReplace(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("first", "enter")
		r := e.Request()
		d.say("second", "enter")
		d.say("third", "alt+enter")
		d.sees("steering: second", "queued: third")
		r.Answer("one")
		r = e.Request()
		d.wait(time.Second)
		d.sees("› second", "queued: third")
		d.seesNot("joins in:")
		d.say("fourth", "ctrl+s")
		r.Stopped()
		d.wait(time.Second)
		d.sees("replaced after", "› fourth")
		e.Request().Answer("four")
		d.wait(time.Second)
		d.sees("four", "ready")
	})
}

func TestTakeAWaitingMessageBack(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("first", "enter")
		r := e.Request()
		d.say("one", "tab")
		d.say("two", "tab")
		d.press("up")
		d.wait(time.Second)
		d.sees("queued: one")
		d.seesNot("queued: two")
		if got := d.m.comp.Text(); got != "two" {
			t.Fatalf("the composer holds %q", got)
		}
		d.say("!", "tab")
		d.sees("queued: one", "queued: two!")
		r.Answer("done")
		e.Request().Answer("done")
		e.Request().Answer("done")
		d.wait(time.Second)
		d.sees("› one", "› two!", "ready")
	})
}

// The message was delivered in the instant before.
func TestTakeBackTooLate(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("first", "enter")
		r := e.Request()
		d.say("one", "enter")
		r.Answer("ok")
		e.Request()
		d.step(press("up")) // what is shown is older than what is
		d.settle()
		d.sees("too late")
		d.wait(time.Second)
		if text := d.m.comp.Text(); text != "" {
			t.Errorf("the composer holds %q", text)
		}
	})
}

// A stop that was meant for a turn which has just ended does not hit the next.
func TestLateStopDoesNotHitTheNextTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("one", "enter")
		r := e.Request()
		d.say("two", "tab")
		r.Answer("first")
		next := e.Request()
		d.step(press("esc")) // what is shown is older than what is
		d.wait(time.Second)
		d.sees("› two", "working")
		next.Answer("second")
		d.wait(time.Second)
		d.sees("second", "ready")
		d.seesNot("interrupted after")
	})
}

// What an old feed still gives is not shown in another conversation.
func TestOldFeedIsNotHeard(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("one", "enter")
		e.Request().Answer("first")
		d.wait(time.Second)
		old := d.m.conv.Feed
		d.say("/new", "enter")
		d.send(client.Batch{From: old, Events: []p.Event{{Seq: 99, Turn: 7, Body: &p.TurnStarted{}}, {Seq: 100, Turn: 7, Body: &p.Notice{Text: "from before"}}}})
		d.seesNot("from before", "working")
	})
}

// A refusing engine refuses the first interrupt.
type refusing struct {
	engine.Engine
	err error
}

func (e *refusing) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	if _, ok := op.(p.Interrupt); ok && e.err != nil {
		err := e.err
		e.err = nil
		return p.Receipt{}, err
	}
	return e.Engine.Submit(ctx, id, op)
}

// An interrupt that is refused is shown, and can be tried again.
func TestStopThatIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		stubborn := &refusing{Engine: e, err: errors.New("no such luck")}
		d := drive(t, e, func(o *Options) { o.Engine = stubborn })
		d.say("one", "enter")
		r := e.Request()
		d.wait(time.Second)
		d.press("esc")
		d.wait(time.Second)
		d.sees("no such luck")
		d.press("esc")
		r.Stopped()
		d.wait(time.Second)
		d.sees("interrupted after")
	})
}

// However small the screen, all of the box is on it.
func TestBoxIsNeverCut(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("one", "enter")
		r := e.Request()
		for _, text := range []string{"two", "three", "four", "five"} {
			d.say(text, "tab")
		}
		d.press("/")
		for height := 4; height < 24; height++ {
			d.send(tea.WindowSizeMsg{Width: 80, Height: height})
			lines := strings.Split(d.screen(), "\n")
			if box := lines[height-2]; !strings.HasPrefix(box, "╰") && !strings.HasPrefix(box, "› /") {
				t.Errorf("at a height of %d:\n%s", height, d.screen())
			}
		}
		d.press("ctrl+u")
		r.Answer("ok")
	})
}

package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	p "github.com/fermata-agent/fermata/protocol"
)

// A message for a conversation that could not be opened goes to no other one.
func TestPromptForALockedConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		locked := conversationOf(e, 1)
		free := conversationOf(e, 1)
		e.Must(free, p.Rename{Title: "the free one"})
		d := drive(t, e, resuming(locked), func(o *Options) { o.Engine, o.Prompt = lockedEngine{e, locked}, "delete it all" })
		d.wait(time.Second)
		d.sees("open in process 4242")
		d.say("free", "enter")
		d.wait(time.Second)
		if d.m.conv.ID != free || d.m.Busy() {
			t.Fatalf("it shows %s, busy %v", d.m.conv.ID, d.m.Busy())
		}
		if got := d.m.comp.Text(); got != "delete it all" {
			t.Errorf("the composer holds %q", got)
		}
		d.sees("ready")
	})
}

// An error that does not fit in a line is to be read whole.
func TestLongError(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "yes")
		d.m.ShowError(errors.New(strings.Repeat("word ", 30) + "done."))
		d.sees("done.", "ready")
		d.m.ShowError(errors.New("short"))
		d.sees("short")
		if n := len(d.m.notes); n != 1 {
			t.Errorf("%d notes", n)
		}
	})
}

// An answer that comes when its conversation is no longer on the screen makes us
// follow nothing.
func TestAnswerOfTheConversationBefore(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "yes")
		id := d.m.conv.ID
		d.say("/new", "enter")
		d.send(client.Sent{Op: client.NewOp(p.KillBackground{}), Conversation: id})
		d.wait(time.Second)
		if d.m.conv.Feed != nil {
			t.Error("it follows a conversation that is not there")
		}
		d.sees("ready")
		d.seesNot("not found")
	})
}

// What is written in a dialog is kept when the conversation is loaded whole.
func TestDialogWhileEarlierIsLoaded(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := conversationOf(e, client.TailEvents)
		d := drive(t, e, resuming(id))
		d.wait(time.Second)
		asked(d, "rm", "x")
		d.answer("n")
		d.press("z")
		before := d.m.ask.Open
		d.run(d.m.loadEarlier())
		d.wait(5 * time.Second)
		if d.m.conv.From != 0 {
			t.Fatal("it was not loaded")
		}
		if d.m.ask.Open == nil || d.m.ask.Open != before {
			t.Error("the dialog is another one")
		}
		d.seesNot("elsewhere")
		d.press("enter")
		e.Request().Answer("well then")
		d.wait(time.Second)
		d.sees("well then")
	})
}

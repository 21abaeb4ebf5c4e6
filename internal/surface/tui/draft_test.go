package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
)

// drafts are kept in memory, as package store keeps them in files.
type drafts map[string]string

func (d drafts) Load(id string) (string, error) { return d[id], nil }

func (d drafts) Save(id, text string) error {
	if d[id] = text; text == "" {
		delete(d, id)
	}
	return nil
}

func with(kept drafts) func(*Options) { return func(o *Options) { o.Drafts = kept } }

// What is written is kept as it is written, so that a kill loses next to nothing, and
// is there again in the same place.
func TestDraftOutlivesTheProgram(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		kept := drafts{}
		d := drive(t, e, with(kept))
		d.say("half a tho", "left")
		d.wait(2 * composer.DraftSaveTime)
		if kept[""] != "half a tho" {
			t.Fatalf("kept: %q", kept)
		}
		again := drive(t, e, with(kept)) // the other one is as good as dead
		again.wait(time.Second)
		again.sees("› half a tho")
		again.say("ught", "enter")
		e.Request().Answer("yes")
		again.wait(time.Second)
		if len(kept) != 0 {
			t.Errorf("it was sent, and kept: %q", kept)
		}
	})
}

// A draft belongs to its conversation, and comes along to another one.
func TestDraftOfAConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := e.Begin()
		kept := drafts{string(id): "written before"}
		d := drive(t, e, with(kept), resuming(id))
		d.wait(time.Second)
		d.sees("› written before")
		d.say("!", "left")
		d.wait(2 * composer.DraftSaveTime)
		if kept[string(id)] != "written before!" {
			t.Errorf("kept: %q", kept)
		}
		d.m.newConversation()
		d.wait(2 * composer.DraftSaveTime)
		d.send(nil)
		d.wait(2 * composer.DraftSaveTime)
		if len(kept) != 1 || kept[""] != "written before!" {
			t.Errorf("in a new conversation: %q", kept)
		}
	})
}

// Messages that a stop returned are in the draft, too, and do not come twice.
func TestReturnedMessageIsNotDoubledByItsDraft(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		kept := drafts{}
		d := drive(t, e, with(kept))
		d.say("hello", "enter")
		r := e.Request()
		d.say("and then", "enter")
		d.press("esc")
		r.Stopped()
		d.wait(time.Second)
		id := d.m.conv.ID
		if kept[string(id)] != "and then" {
			t.Fatalf("kept: %q", kept)
		}
		again := drive(t, e, with(kept), resuming(id))
		again.wait(time.Second)
		if got := again.m.comp.Text(); got != "and then" {
			t.Errorf("the composer holds %q", got)
		}
	})
}

// While nothing runs Ctrl-C takes away the draft, which ↑ brings back, then it quits;
// the hint that says so goes when it is no longer true.
func TestCtrlCWithADraft(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("a draft", "left")
		d.press("ctrl+c")
		d.sees("cleared")
		if !d.m.comp.Empty() || d.over {
			t.Fatalf("the composer holds %q; over: %v", d.m.comp.Text(), d.over)
		}
		d.press("up")
		d.sees("› a draft")
		d.press("ctrl+c", "ctrl+c")
		d.sees("press Ctrl-C again to quit")
		d.wait(armTime + time.Millisecond)
		d.seesNot("press Ctrl-C again")
		d.press("ctrl+c")
		if d.over {
			t.Fatal("it quit, and no hint was to be seen")
		}
		if d.press("ctrl+c"); !d.over {
			t.Error("it did not quit")
		}
	})
}

// While a turn runs Ctrl-C interrupts it, and what is written stays.
func TestCtrlCWhileATurnRunsKeepsTheDraft(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("hello", "enter")
		r := e.Request()
		d.wait(2 * client.FrameTime)
		d.say("a draft", "left")
		d.press("ctrl+c")
		r.Stopped()
		d.wait(time.Second)
		d.sees("interrupted", "› a draft", "ready")
	})
}

// Esc does what the screen says: first to the bottom, then stop. End goes there also
// with a draft.
func TestEscAndEndWhenScrolled(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("hello", "enter")
		r := e.Request()
		r.Delta(strings.Repeat("a line\n\n", 50) + "the end")
		d.wait(2 * client.FrameTime)
		d.say("draft", "pgup")
		d.sees("Esc or End goes there")
		d.press("end")
		d.sees("the end")
		d.press("pgup", "esc")
		d.sees("the end", "working")
		if d.m.Stopping() {
			t.Fatal("the turn was stopped")
		}
		d.press("esc")
		r.Stopped()
		d.wait(time.Second)
		d.sees("interrupted", "› draft")
	})
}

package tui

import (
	"slices"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// interruptedWithMessages is a conversation whose turn was interrupted while messages waited.
func interruptedWithMessages(e *enginetest.Engine, texts ...string) p.ConversationID {
	id := e.Begin()
	w := e.Watch(id, 0)
	e.Say(id, "go")
	e.Request()
	for _, text := range texts {
		e.Say(id, text, p.Queue)
	}
	e.Must(id, p.Interrupt{})
	w.Expect("turn_ended interrupted")
	return id
}

// returnedTexts are the texts of the messages that are returned.
func returnedTexts(t *testing.T, e *enginetest.Engine, id p.ConversationID) (texts []string) {
	t.Helper()
	snap, err := e.Resume(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range snap.Returned {
		texts = append(texts, p.PlainText(in.Content))
	}
	return texts
}

func (d *driver) holds(want string) {
	d.t.Helper()
	if got := d.m.comp.Text(); got != want {
		d.t.Errorf("the composer holds %q, want %q", got, want)
	}
}

// Returned messages are offered in each window, also after other turns; sent from one, they are gone from the other.
func TestTwoWindowsDoNotBothSendAReturnedMessage(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := interruptedWithMessages(e, "one", "two")
		w := e.Watch(id, 0)
		e.Say(id, "something else")
		e.Request().Answer("ok")
		w.Expect("turn_ended completed")
		first, second := drive(t, e, resuming(id)), drive(t, e, resuming(id))
		for _, d := range []*driver{first, second} {
			d.wait(time.Second)
			d.holds("one\n\ntwo")
		}
		second.say(" mine", "left")
		first.say(", please", "enter")
		r := e.Request()
		w.Expect("user_message one\n\ntwo, please", "returned_resolved sent")
		second.wait(time.Second)
		second.holds(" mine")
		if got := returnedTexts(t, e, id); len(got) > 0 {
			t.Errorf("returned: %q", got)
		}
		r.Answer("done")
		w.Expect("turn_ended completed")
		first.wait(time.Second)
		first.holds("")
	})
}

// A returned message that is edited is a draft of this window, and no longer offered.
func TestEditedReturnedMessageIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := interruptedWithMessages(e, "one", "two")
		kept := drafts{}
		d, other := drive(t, e, with(kept), resuming(id)), drive(t, e, resuming(id))
		d.wait(time.Second)
		other.wait(time.Second)
		d.press("up") // into its first line, or the history: nothing is edited
		if got := returnedTexts(t, e, id); len(got) != 2 {
			t.Errorf("before it is edited, returned are %q", got)
		}
		d.press("end", "backspace")
		d.wait(time.Second)
		if got := returnedTexts(t, e, id); len(got) > 0 {
			t.Errorf("edited, and still returned: %q", got)
		}
		other.wait(time.Second)
		other.holds("")
		edited := d.m.comp.Text()
		if edited == "one\n\ntwo" || kept[string(id)] != edited {
			t.Fatalf("the composer holds %q, kept is %q", edited, kept)
		}
		again := drive(t, e, with(kept), resuming(id))
		again.wait(time.Second)
		again.holds(edited)
		e.Watch(id, 0).Expect("returned_resolved taken")
	})
}

// Ctrl-C takes what is offered away, and ↑ brings it back.
func TestReturnedMessageIsCleared(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := interruptedWithMessages(e, "one")
		d := drive(t, e, resuming(id))
		d.wait(time.Second)
		d.press("ctrl+c")
		d.wait(time.Second)
		if got := returnedTexts(t, e, id); len(got) > 0 {
			t.Errorf("cleared, and still returned: %q", got)
		}
		d.press("up")
		d.holds("one")
	})
}

// What was dropped elsewhere a moment before is not sent, and not lost.
func TestReturnedMessageWasDroppedElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := interruptedWithMessages(e, "one")
		d := drive(t, e, resuming(id))
		d.wait(time.Second)
		snap, err := e.Resume(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		e.Must(id, p.ResolveReturned{Inputs: []p.InputID{snap.Returned[0].Input}, As: p.ResolvedDropped})
		d.press("enter") // before the window has seen it
		d.wait(time.Second)
		d.sees("sent, taken or dropped")
		d.holds("one")
		e.Idle()
	})
}

// A message that could not be sent is still one that was returned.
func TestReturnedMessageIsOfferedAgainWhenItIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := interruptedWithMessages(e, "one")
		d := drive(t, e, resuming(id))
		d.wait(time.Second)
		d.say(" @missing", "left")
		ids := d.m.offers.Send(d.m.comp.Text())
		if len(ids) != 1 {
			t.Fatalf("offered: %v", ids)
		}
		d.m.Reoffer(ids) // as after an answer that refuses it
		d.holds("one @missing")
		if got := d.m.offers.Send(d.m.comp.Text()); !slices.Equal(got, ids) {
			t.Errorf("offered again: %v, want %v", got, ids)
		}
	})
}

// What is offered stays with its conversation, and comes before what was written there.
func TestReturnedMessageStaysWithItsConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := interruptedWithMessages(e, "one")
		kept := drafts{string(id): "a thought"}
		d := drive(t, e, with(kept), resuming(id))
		d.wait(time.Second)
		d.holds("one\n\na thought")
		d.m.newConversation()
		d.holds("a thought")
		d.send(nil)
		d.wait(time.Second)
		if got := returnedTexts(t, e, id); !slices.Equal(got, []string{"one"}) {
			t.Errorf("returned: %q", got)
		}
	})
}

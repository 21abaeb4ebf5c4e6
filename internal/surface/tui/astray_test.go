package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/engine/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
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
		if d.m.conv.id != free || d.m.Busy() {
			t.Fatalf("it shows %s, busy %v", d.m.conv.id, d.m.Busy())
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
		if n := len(d.m.conv.notes); n != 1 {
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
		id := d.m.conv.id
		d.say("/new", "enter")
		d.send(client.Sent{Op: client.NewOp(p.KillBackground{}), Conversation: id})
		d.wait(time.Second)
		if d.m.conv.feed != nil {
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
		before := d.m.dialog
		d.run(d.m.loadEarlier())
		d.wait(5 * time.Second)
		if d.m.conv.from != 0 {
			t.Fatal("it was not loaded")
		}
		if d.m.dialog == nil || d.m.dialog != before {
			t.Error("the dialog is another one")
		}
		d.seesNot("elsewhere")
		d.press("enter")
		e.Request().Answer("well then")
		d.wait(time.Second)
		d.sees("well then")
	})
}

// What is asked for in one conversation never reaches another that has come on the screen, although its turn and call have the
// same numbers.
func TestAnswersStayInTheirConversation(t *testing.T) {
	call := p.CallID{Turn: 1, Response: 1}
	for _, tt := range []struct {
		name string
		ask  func(*driver) tea.Cmd
		want p.Op
	}{
		{"approval", func(d *driver) tea.Cmd { return d.m.approve(call, dialog.Answer{Decision: p.Approved}, nil) }, p.Approve{Call: call, Decision: p.Approved}},
		{"stop", func(d *driver) tea.Cmd { return d.m.interrupt(1) }, p.Interrupt{Turn: 1}},
		{"question", func(d *driver) tea.Cmd {
			return d.m.answerQuestion(&p.ElicitationRequested{Call: call, Number: 1}, p.ElicitationDecline, nil)
		}, p.AnswerElicitation{Call: call, Number: 1, Action: p.ElicitationDecline}},
		{"kill", func(d *driver) tea.Cmd { return d.m.send(client.NewOp(p.KillBackground{ID: 1})) }, p.KillBackground{ID: 1}},
		{"rename", func(d *driver) tea.Cmd { return d.m.send(client.NewOp(p.Rename{Title: "a"})) }, p.Rename{Title: "a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, e *enginetest.Engine) {
				from, to := conversationOf(e, 1), conversationOf(e, 1)
				seen := &submitted{Engine: e}
				d := drive(t, e, resuming(from), func(o *Options) { o.Engine = seen })
				d.wait(time.Second)
				d.m.out.Send(client.NewOp(p.Compact{})) // it keeps what goes through the outbox waiting
				cmd := tt.ask(d)
				d.m.begin(to, engine.Snapshot{}, 0)
				d.m.out.Done()
				d.run(cmd)
				d.run(d.m.flush())
				d.wait(time.Second)
				if want := []string{fmt.Sprintf("%s %+v", from, tt.want)}; !slices.Equal(seen.ops, want) {
					t.Errorf("submitted were %q, want %q", seen.ops, want)
				}
			})
		})
	}
}

// A submitted engine notes what is submitted to which conversation.
type submitted struct {
	engine.Engine
	ops []string
}

func (s *submitted) Submit(_ context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	s.ops = append(s.ops, fmt.Sprintf("%s %+v", id, op))
	return p.Receipt{}, nil
}

// An answer that is refused after another conversation came on the screen does not open that one's approval again.
func TestARefusedAnswerOfTheConversationBefore(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		from, to := conversationOf(e, 1), conversationOf(e, 1)
		d := drive(t, e, resuming(to))
		d.wait(time.Second)
		call := p.CallID{Turn: 1, Response: 1}
		d.m.conv.answered[call] = true
		d.send(approved{from, call, engine.ErrBusy})
		if !d.m.conv.answered[call] {
			t.Error("what was answered here is asked again")
		}
	})
}

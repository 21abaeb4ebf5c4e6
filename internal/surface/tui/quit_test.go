package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
)

func TestCtrlCWhenIdle(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.press("ctrl+c")
		d.sees("Ctrl-C again")
		d.wait(armTime + time.Second) // it is forgotten
		d.press("ctrl+c")
		d.press("x", "backspace") // another key too
		d.press("ctrl+c")
		d.send(tea.PasteMsg{Content: "x"}) // and a paste
		d.seesNot("Ctrl-C again")
		d.press("ctrl+c", "ctrl+c") // which clears it first
		if d.over {
			t.Fatal("it has quit")
		}
		d.press("ctrl+c")
		if !d.over {
			t.Fatal("it has not quit")
		}
	})
}

func TestWaysToQuit(t *testing.T) {
	for name, leave := range map[string]func(*driver){
		"ctrl-d": func(d *driver) { d.press("ctrl+d") },
		"/quit":  func(d *driver) { d.say("/quit", "enter") },
		"/exit":  func(d *driver) { d.say("/exit", "enter") },
	} {
		bubble(t, func(t *testing.T, e *enginetest.Engine) {
			d := drive(t, e)
			if leave(d); !d.over {
				t.Errorf("%s does not quit", name)
			}
		})
	}
}

// What is written and not sent is kept.
func TestQuitKeepsTheDraft(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		kept := drafts{}
		d := drive(t, e, func(o *Options) { o.Drafts = kept })
		d.say("not sent", "left")
		d.send(leave{})
		if !d.over || kept[""] != "not sent" {
			t.Errorf("over: %v, kept: %q", d.over, kept)
		}
	})
}

// Quitting while a turn runs stops it, says so, and loses nothing.
func TestQuitWhileATurnRuns(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("hello", "enter")
		r := e.Request()
		r.Delta("half")
		d.say("waits", "tab")
		d.press("ctrl+d")
		d.sees("Turn 1 is running", "s  stop it, and quit", "› n  stay")
		if d.press("enter"); d.over { // the default is to stay
			t.Fatal("it has quit")
		}
		d.press("ctrl+d", "s")
		d.sees("stopping the turn, then quitting")
		r.Stopped()
		d.wait(time.Second)
		if !d.over {
			t.Fatalf("it has not quit:\n%s", d.screen())
		}
		got := strings.Join(d.m.result().Lines, "\n")
		for _, part := range []string{"interrupted after", "reply kept", "to resume: fermata resume "} {
			if !strings.Contains(got, part) {
				t.Errorf("it prints\n%s\nwithout %q", got, part)
			}
		}
		id := d.m.result().Conversation

		again := enginetest.New(t, enginetest.Options{Store: e.Store})
		d = drive(t, again, resuming(id))
		d.wait(time.Second)
		d.sees("half", "interrupted after", "│ › waits")
	})
}

// A model that does not hear that it is stopped cannot keep us.
func TestQuitIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("hello", "enter")
		r := e.Request()
		r.Deaf()
		d.press("ctrl+c") // stop
		d.sees("stopping…")
		d.press("ctrl+c", "ctrl+c") // quit although it has not stopped
		d.wait(shutdownBound + time.Second)
		if !d.over {
			t.Errorf("it has not quit:\n%s", d.screen())
		}
		r.Fail(errors.New("at last"))
	})
}

// stuckDrafts are on a disk that does not answer.
type stuckDrafts struct {
	drafts
	free chan struct{}
}

func (s *stuckDrafts) Save(string, string) error {
	<-s.free
	return nil
}

func TestStuckDraftsCannotKeepUs(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		stuck := &stuckDrafts{free: make(chan struct{})}
		defer close(stuck.free)
		d := drive(t, e, func(o *Options) { o.Drafts = stuck })
		d.say("not sent", "left")
		d.send(leave{})
		d.sees("quitting…")
		d.wait(2*shutdownBound + time.Second)
		if !d.over {
			t.Errorf("it has not quit:\n%s", d.screen())
		}
	})
}

func TestSignalQuits(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("hello", "enter")
		r := e.Request()
		d.send(leave{because: errors.New("stopped by SIGTERM")})
		r.Stopped()
		d.wait(time.Second)
		if !d.over || !strings.Contains(d.m.result().Lines[0], "interrupted after") {
			t.Errorf("over: %v, %v", d.over, d.m.result())
		}
	})
}

// A message that is just on its way when the program ends is not lost: it is
// in the conversation, or in the history.
func TestQuitWithAMessageOnItsWay(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		kept := &memory{}
		d := drive(t, e, func(o *Options) { o.History = kept })
		d.wait(time.Second)
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.step(press("x"))
		d.step(press("enter"))
		d.step(press("ctrl+d"))
		d.wait(time.Second)
		if n := strings.Count(strings.Join(kept.added, "|"), "x"); !d.over || n == 0 {
			t.Errorf("over: %v, kept: %q", d.over, kept.added)
		}
	})
}

func TestApprovalIsKeptByQuitting(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		asked(d, "rm", "x")
		d.send(leave{})
		d.wait(time.Second)
		if lines := d.m.result().Lines; !d.over || !strings.Contains(lines[0], "is waiting for approval") {
			t.Errorf("over: %v, %q", d.over, lines)
		}
	})
}

// A conversation that has begun is reported also if we end before Update knows of it.
func TestQuitBeforeTheReceipt(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("", "x")
		d.step(press("enter"))
		for msg := range d.msgs { // let the commands run, and take no answer
			if list, ok := msg.(tea.BatchMsg); ok {
				for _, cmd := range list {
					d.run(cmd)
				}
			}
			if _, ok := msg.(client.Sent); ok {
				break
			}
		}
		if r := d.m.result(); d.m.conv.ID != "" || r.Conversation == "" || len(r.Lines) == 0 {
			t.Errorf("it prints %+v", r)
		}
	})
}

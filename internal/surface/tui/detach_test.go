package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A joinedEngine is one of another process, which does not end with us.
type joinedEngine struct{ engine.Engine }

func (joinedEngine) Shutdown(context.Context) error { return nil }

// What is asked when somebody quits while another process runs the turn: only a process that serves
// goes on without any terminal.
func TestQuitWhileAnotherProcessRuns(t *testing.T) {
	for name, c := range map[string]struct {
		owner app.Owner
		sees  []string
		key   string
	}{
		"serve":    {app.Owner{PID: 7, Serves: true}, []string{"leave it running", "fermata attach", "stop it", "stay"}, "l"},
		"terminal": {app.Owner{PID: 7}, []string{"Process 7 runs it", "quit only this terminal", "stop it", "stay"}, "q"},
	} {
		bubble(t, func(t *testing.T, e *enginetest.Engine) {
			d := drive(t, e, func(o *Options) {
				o.Engine, o.RunBy = joinedEngine{e}, func(p.ConversationID) app.Owner { return c.owner }
			})
			d.say("hello", "enter")
			e.Request()
			d.press("ctrl+d")
			d.sees(c.sees...)
			if text := d.screen(); name != "serve" && strings.Contains(text, "leave it running") {
				t.Errorf("%s: it promises too much\n%s", name, text)
			}
			d.press(c.key)
			d.wait(time.Second)
			if lines := d.m.result().Lines; !d.over || !strings.Contains(lines[0], "turn 1 continues in another process") {
				t.Errorf("%s: over %v, %q", name, d.over, lines)
			}
		})
	}
}

// A turn that ends while somebody is asked about it takes the question along.
func TestTurnEndsWhileQuitting(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("hello", "enter")
		r := e.Request()
		d.press("ctrl+d")
		d.sees("Turn 1 is running")
		r.Answer("done")
		d.wait(time.Second)
		d.sees("turn 1 has ended", "done")
		if text := d.screen(); strings.Contains(text, "stop it, and quit") {
			t.Errorf("it still asks:\n%s", text)
		}
	})
}

func TestOwnerIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "yes")
		d.send(moved{d.m.conv.ID, app.Move{From: 7, Died: true}})
		d.sees("process 7 ended unexpectedly; this terminal has taken over")
		d.send(moved{d.m.conv.ID, app.Move{From: 8, To: 9}})
		d.sees("process 8 has quit; process 9 has taken over")
		d.send(moved{"another", app.Move{From: 11, To: 12}})
		if strings.Contains(d.screen(), "process 11") {
			t.Error("it reports another conversation")
		}
	})
}

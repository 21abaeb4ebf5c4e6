package tui

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// questioned lets the server of a call ask something, and returns the answer.
func questioned(d *driver, run *enginetest.Run, schema string) <-chan p.ElicitationResolved {
	answer := make(chan p.ElicitationResolved, 1)
	go func() {
		resolved, _ := run.Call.Host.(tool.Elicitor).Elicit(run.Ctx, p.ElicitationRequested{Server: "docs", Message: "Who are you?", Schema: json.RawMessage(schema)})
		answer <- resolved
	}()
	d.wait(time.Second)
	return answer
}

const nameSchema = `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","default":7}},"required":["name"]}`

func TestAnswerAQuestionOfAServer(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		run := working(d)
		answer := questioned(d, run, nameSchema)
		d.sees("The MCP server docs asks", "Who are you?", "name (required)", "age (integer; unless given 7)")
		d.press("e")
		d.wait(time.Second)
		if got := d.m.comp.Text(); got != "/answer name= age=7" {
			t.Errorf("the composer holds %q", got)
		}
		d.m.comp.SetText("")
		d.say("/answer age=3", "enter")
		d.sees("name is required")
		d.m.comp.SetText("")
		d.say("/answer name=me", "enter")
		d.wait(time.Second)
		if got := <-answer; got.Action != p.ElicitationAccept || string(got.Content) != `{"name":"me"}` {
			t.Errorf("%+v", got)
		}
		run.Finish("thanks")
		e.Request().Answer("done")
		d.wait(time.Second)
		d.sees("ready")
	})
}

func TestShowServers(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("/mcp", "enter")
		d.sees("no MCP server is used")
		d.m.do.MCP = func() string { return "docs: failed\n  last error: no licence\x1b[2J\n" }
		d.say("/mcp", "enter")
		d.sees("docs: failed", "last error: no licence␛[2J")
	})
}

func TestDeclineAQuestionOfAServer(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		run := working(d)
		answer := questioned(d, run, `{"type":"object","properties":{}}`)
		d.sees("yes", "no")
		d.press("n")
		d.wait(time.Second)
		if got := <-answer; got.Action != p.ElicitationDecline {
			t.Errorf("%+v", got)
		}
		second := questioned(d, run, nameSchema)
		d.press("esc") // later
		d.wait(time.Second)
		if d.m.ask.Open != nil {
			t.Error("the dialog is still open")
		}
		run.Finish("never mind")
		if got := <-second; got.Action != p.ElicitationCancel {
			t.Errorf("%+v", got)
		}
		e.Request().Answer("done")
		d.wait(time.Second)
		d.say("/answer name=me", "enter")
		d.sees("no MCP server asks anything")
	})
}

// When the earlier part of the conversation is loaded, an open question is still the same one.
func TestQuestionWhileEarlierIsLoaded(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, resuming(conversationOf(e, client.TailEvents)))
		d.wait(time.Second)
		run := working(d)
		ctx, cancel := context.WithCancel(run.Ctx)
		run.Ctx = ctx
		questioned(d, run, nameSchema)
		d.press("esc") // later
		d.run(d.m.loadEarlier())
		d.wait(10 * time.Second) // until the hint has gone, too
		if d.m.conv.From != 0 || d.m.ask.Open != nil {
			t.Fatalf("from %d; the dialog is open: %v", d.m.conv.From, d.m.ask.Open != nil)
		}
		d.sees("waiting for your answer")
		cancel() // the server does not ask any more
		d.wait(time.Second)
		d.seesNot("waiting for your answer")
		if d.m.ask.Open != nil || d.m.conv.Question() != nil {
			t.Error("the question is still open")
		}
		run.Finish("never mind")
		e.Request().Answer("done")
		d.wait(time.Second)
	})
}

// A question that is over closes its dialog.
func TestAQuestionOfAServerIsOver(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		run := working(d)
		ctx, cancel := context.WithCancel(run.Ctx)
		run.Ctx = ctx
		questioned(d, run, nameSchema)
		if d.m.ask.Open == nil {
			t.Fatal("there is no dialog")
		}
		cancel()
		d.wait(time.Second)
		if d.m.ask.Open != nil {
			t.Error("the dialog is still open")
		}
		run.Finish("never mind")
		e.Request().Answer("done")
		d.wait(time.Second)
	})
}

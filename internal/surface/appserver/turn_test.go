package appserver

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	p "github.com/fermata-agent/fermata/protocol"
)

func TestHandshake(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.dial(Shared)
		if got := c.refused("thread/list", `{}`); got != "-32600 Not initialized" {
			t.Error(got)
		}
		r := c.result("initialize", `{"clientInfo":{"name":"lab","title":null,"version":"1"},"capabilities":{"experimentalApi":true,"optOutNotificationMethods":["thread/started"]}}`)
		if got := r["userAgent"].(string); !strings.HasPrefix(got, "lab/1.2.3 ") {
			t.Errorf("user agent %q", got)
		}
		if got := c.refused("initialize", `{"clientInfo":{"name":"lab","version":"1"}}`); got != "-32600 Already initialized" {
			t.Error(got)
		}
		c.send(`{"method":"initialized"}`)
		c.result("thread/start", `{}`)
		c.nothing() // it does not want to know that a thread has started
		c.send(`this is not JSON`)
		if got := c.short(c.next()); got != "answer <nil> error -32700 not JSON" {
			t.Error(got)
		}
		for method, want := range map[string]string{
			"no/such": `-32601 there is no method "no/such"`, "turn/steer": "-32602 threadId is missing", "thread/fork": "-32602 threadId is missing",
		} {
			if got := c.refused(method, `{}`); got != want {
				t.Errorf("%s: %s", method, got)
			}
		}
	})
}

// The members of later clients are ignored and named once; what Codex's clients send and has no effect is not named.
func TestUnknownMembers(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.result("thread/loaded/list", `{"later":1,"nothing":null}`)
		c.want(`warning thread/loaded/list: the member "later" is unknown here and has no effect`)
		c.result("thread/loaded/list", `{"later":2}`)
		c.result("thread/start", `{"historyMode":"paginated","dynamicTools":[],"threadSource":"user","config":{},"ephemeral":false,"approvalPolicy":null,"cwd":null}`)
		c.want("thread/started")
		c.nothing()
	})
}

func TestNormalTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.say("hi")
		r := x.e.Request()
		synctest.Wait()
		r.Delta("I ")
		synctest.Wait()
		r.Delta("look")
		r.Message("I look")
		r.Call("w1", "work", "{}")
		r.End()
		run := x.e.Run()
		run.Return(p.ToolOutput{Output: "found"})
		x.e.Request().Answer("done")
		c.want(
			"answer 3", "status active []", "turn/started U1 inProgress",
			"item/started userMessage u1.0.0 c-hi", "item/completed userMessage u1.0.0 c-hi",
			"item/started agentMessage 1.1.0", "delta 1.1.0 I ", "delta 1.1.0 look", "item/completed agentMessage 1.1.0 I look",
			"item/started dynamicToolCall 1.1.1 inProgress work", "item/completed dynamicToolCall 1.1.1 completed work",
			"item/started agentMessage 1.2.0", "item/completed agentMessage 1.2.0 done",
			"status idle", "turn/completed U1 completed",
		)
		if got := at(c.last, "params", "turn", "items"); len(got.([]any)) != 1 || at(got.([]any)[0], "text") != "done" {
			t.Errorf("the turn has the items %v", got)
		}
		if c.last["emittedAtMs"] == nil || c.last["jsonrpc"] != nil {
			t.Errorf("notification %v", c.last)
		}
		c.nothing()
	})
}

// An interrupt is valid from the answer to turn/start on, and is answered after the end of the turn. What was open has ended by then.
func TestInterrupt(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		if got := c.refused("turn/interrupt", `{"threadId":"T","turnId":"U1"}`); got != "-32600 no active turn to interrupt" {
			t.Error(got)
		}
		c.say("hi")
		c.ask("turn/interrupt", `{"threadId":"T","turnId":"U1"}`) // not waiting for anything
		c.want("answer 4")
		got := c.until("answer 5")
		same(t, []string{"status idle", "turn/completed U1 interrupted interrupted", "answer 5"}, got[len(got)-3:])

		c.say("again")
		r := x.e.Request()
		r.Delta("half a sen")
		c.until("delta 2.1.0")
		if got := c.refused("turn/interrupt", `{"threadId":"T","turnId":"U1"}`); got != "-32600 expected active turn id `U1` but found `U2`" {
			t.Error(got)
		}
		c.ask("turn/interrupt", `{"threadId":"T","turnId":"U2"}`)
		c.want("item/completed agentMessage 2.1.0 half a sen", "status idle", "turn/completed U2 interrupted interrupted", "answer 8")
		if got := c.refused("turn/interrupt", `{"threadId":"T","turnId":"U2"}`); got != "-32600 no active turn to interrupt" {
			t.Error(got)
		}
		c.nothing()
		r2 := c.result("thread/read", `{"threadId":"T","includeTurns":true}`)
		same(t, []string{"U1 interrupted interrupted; userMessage", "U2 interrupted interrupted; userMessage; agentMessage half a sen"}, c.turns(r2["thread"]))
	})
}

// The interrupt of a command gives its output so far, as failed and without an exit code; "" interrupts whatever runs.
func TestInterruptCommand(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.say("hi")
		x.command("work", "sleep")
		run := x.e.Run()
		run.Call.Host.Record(run.Ctx, &p.CommandStarted{Call: run.Call.ID, Command: []string{"/bin/bash", "-lc", "sleep 9"}, Cwd: "/w"})
		run.Print("one\n")
		c.until("delta 1.1.0 one")
		c.result("turn/interrupt", `{"threadId":"T","turnId":""}`)
		got := c.until("turn/completed")
		want := "item/completed commandExecution 1.1.0 /bin/bash -lc 'sleep 9' failed one\n"
		if !strings.Contains(strings.Join(got, "|"), want) {
			t.Errorf("%q lacks %q", got, want)
		}
		c.nothing()
	})
}

// command lets the model ask for one call.
func (x *site) command(tool, arguments string) {
	x.t.Helper()
	r := x.e.Request()
	r.Call("w", tool, arguments)
	r.End()
}

func TestSteer(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		steer := func(text, turn string) string {
			return fmt.Sprintf(`{"threadId":"T","expectedTurnId":%q,"clientUserMessageId":"s-%s","input":[{"type":"text","text":%q}]}`, turn, text, text)
		}
		if got := c.refused("turn/steer", steer("x", "U1")); got != "-32600 no active turn to steer" {
			t.Error(got)
		}
		c.say("hi")
		r := x.e.Request()
		c.until("item/completed userMessage")
		if got := c.refused("turn/steer", steer("x", "U2")); got != "-32600 expected active turn id `U2` but found `U1`" {
			t.Error(got)
		}
		if got := c.refused("turn/steer", `{"threadId":"T","expectedTurnId":"U1","input":[]}`); got != "-32600 input must not be empty" {
			t.Error(got)
		}
		if got := c.shorten(fmt.Sprint(c.result("turn/steer", steer("more", "U1")))); got != "map[turnId:U1]" {
			t.Error(got)
		}
		c.say("even more") // a turn/start while a turn runs steers
		c.want("answer 8")
		if got := c.shorten(fmt.Sprint(at(c.last, "result", "turn", "id"), at(c.last, "result", "state"))); got != "U1steered" {
			t.Error(got)
		}
		r.Answer("first")
		x.e.Request().Answer("second")
		got := strings.Join(c.until("turn/completed"), "|")
		for _, want := range []string{"userMessage u1.0.1 s-more", "userMessage u1.0.2 c-even more"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q lacks %q", got, want)
			}
		}
		// One that was acknowledged and not delivered is returned by name, and never reaches the model.
		c.say("go")
		x.e.Request()
		c.until("item/completed userMessage")
		c.result("turn/steer", steer("late", "U2"))
		c.ask("turn/interrupt", `{"threadId":"T","turnId":"U2"}`)
		c.until("turn/completed U2 interrupted")
		back, _ := at(c.last, "params", "turn", "returnedInput").([]any)
		if len(back) != 1 || at(back[0], "clientUserMessageId") != "s-late" {
			t.Errorf("returned: %v", back)
		}
		c.say("next")
		r = x.e.Request()
		if got := strings.Join(r.Inputs(), "|"); strings.Contains(got, "late") {
			t.Errorf("the model is sent %q", got)
		}
		r.Answer("third")
		c.until("turn/completed U3 completed")

		// It stays returned, and can be sent as it was, once.
		thread := func() any { return c.result("thread/read", `{"threadId":"T"}`)["thread"] }
		back, _ = at(thread(), "returnedInput").([]any)
		if len(back) != 1 || at(back[0], "clientUserMessageId") != "s-late" {
			t.Fatalf("a turn later, returned are %v", back)
		}
		send := fmt.Sprintf(`{"threadId":"T","input":[],"returnedInput":[%v]}`, at(back[0], "id"))
		c.result("turn/start", send)
		r = x.e.Request()
		if got := r.Inputs(); got[len(got)-1] != "user late" {
			t.Errorf("the model is sent %q", got)
		}
		if got := c.refused("turn/start", send); got != "-32600 message 5: that message is no longer returned: it was sent, taken or dropped" {
			t.Errorf("sent again: %s", got)
		}
		if got := at(thread(), "returnedInput"); got != nil {
			t.Errorf("sent, and still returned: %v", got)
		}
	})
}

// What whenBusy says is done: queue waits for the turn, replace interrupts it.
func TestWhenBusy(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.say("one")
		r := x.e.Request()
		c.until("item/completed userMessage")
		c.result("turn/start", `{"threadId":"T","input":[{"type":"text","text":"two"}],"whenBusy":"queue"}`)
		r.Answer("1")
		c.until("turn/completed U1 completed")
		x.e.Request()
		c.until("item/completed userMessage")
		c.result("turn/start", `{"threadId":"T","input":[{"type":"text","text":"three"}],"whenBusy":"replace"}`)
		c.until("turn/completed U2 interrupted replaced")
		x.e.Request().Answer("3")
		c.until("turn/completed U3 completed")
		if got := c.refused("turn/start", `{"threadId":"T","input":[{"type":"text","text":"x"}],"whenBusy":"later"}`); got != `-32602 whenBusy: "later" is none of steer, queue, replace` {
			t.Error(got)
		}
	})
}

func TestFailedTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.say("hi")
		x.e.Request().Fail(&p.Error{Kind: p.ErrorAuth, Message: "bad key"})
		got := c.until("turn/completed")
		same(t, []string{"error bad key false", "status systemError", "turn/completed U1 failed"}, got[len(got)-3:])
		if got := at(c.last, "params", "turn", "error", "codexErrorInfo"); got != "unauthorized" {
			t.Errorf("error info %v", got)
		}
	})
}

package acp

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A prompt is answered after everything that its turn shows.
func TestPrompt(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		id := c.say("hi")
		r := x.e.Request()
		r.Think("hm")
		synctest.Wait() // a record comes when it is durable, a delta at once
		r.Delta("one ")
		synctest.Wait()
		r.Delta("two")
		r.Message("one two")
		r.Call("w", "work", `{"n":1}`)
		r.End()
		c.want("agent_thought 1.1.0 hm", "agent_message 1.1.1 one ", "agent_message 1.1.1 two", "tool_call 1.1.2 work other pending", "tool_call_update 1.1.2 in_progress")
		run := x.e.Run()
		if err := run.Call.Host.Record(run.Ctx, &p.CommandStarted{Call: run.Call.ID, Command: []string{"bash", "-lc", "make all"}, Cwd: "/w"}); err != nil {
			t.Fatal(err)
		}
		c.want("tool_call_update 1.1.2 make all execute")
		run.Print("cc ")
		run.Print("a.c\n")
		c.want("tool_call_update 1.1.2 \"```\\ncc a.c\\n```\"")
		run.Return(p.ToolOutput{Command: &p.CommandResult{ExitCode: 2, Output: "cc a.c\nerror\n"}})
		c.want("tool_call_update 1.1.2 failed \"```\\ncc a.c\\nerror\\n```\" \"exit code 2\"")
		x.e.Request().Answer("done")
		c.want("agent_message 1.2.0 done")
		c.want("answer 3 end_turn")
		if id != 3 {
			t.Error(id)
		}
		c.nothing()
	})
}

// A cancel in any phase ends the turn, closes what was open, and the prompt is answered once, after that.
func TestCancelInEachPhase(t *testing.T) {
	phases := map[string]struct {
		begin func(x *site)
		shown []string
	}{
		"before anything":       {func(*site) {}, nil},
		"before the first byte": {func(x *site) { x.e.Request() }, nil},
		"in a message":          {func(x *site) { x.e.Request().Delta("half") }, []string{"agent_message 1.1.0 half"}},
		"in a call": {func(x *site) { x.command("sleep", "9").Print("zzz") }, []string{
			"tool_call 1.1.0 work other pending", "tool_call_update 1.1.0 in_progress", "tool_call_update 1.1.0 sleep 9 execute", "tool_call_update 1.1.0 failed \"```\\nzzz\\n```\"",
		}},
		"while the user is asked": {func(x *site) { x.command().Ask("rm", "x") }, []string{
			"tool_call 1.1.0 work other pending", "tool_call_update 1.1.0 in_progress", "tool_call_update 1.1.0 rm x execute pending",
			"permission 1.1.0 rm x: approved approved_for_session denied abort", "withdrawn 0", "tool_call_update 1.1.0 failed \"```\\naborted: the user stopped the turn before this ran, so it was not run\\n```\"",
		}},
		"between retries": {func(x *site) { x.e.Request().Fail(enginetest.Broken()); synctest.Wait() }, []string{"agent_thought r6 retry 1 of 10 in 0.2 s: stream broke\n"}},
	}
	for name, phase := range phases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, x *site) {
				c := x.connect()
				c.start()
				c.cancel() // nothing runs
				c.say("hi")
				phase.begin(x)
				if name != "before anything" {
					synctest.Wait()
				}
				c.cancel()
				c.cancel()
				c.want(append(phase.shown, "answer 3 cancelled")...)
				c.cancel()
				c.nothing()
				c.say("again")
				x.e.Request().Answer("yes")
				c.want("agent_message 2.1.0 yes", "answer 4 end_turn")
				c.nothing()
			})
		})
	}
}

// A prompt that comes while a turn runs joins it; both are answered at its end, and the client's own words are not sent back.
func TestPromptWhileATurnRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.say("hi")
		r := x.e.Request()
		r.Delta("one")
		c.want("agent_message 1.1.0 one")
		c.say("and this")
		synctest.Wait()
		r.Message("one")
		r.End()
		r = x.e.Request()
		same(t, []string{"user hi", "assistant one", "user and this"}, r.Inputs()[1:])
		r.Answer("both")
		c.want("agent_message 1.2.0 both")
		c.until("usage")
		got := []string{c.short(c.next()), c.short(c.next())}
		if got[0] > got[1] {
			got[0], got[1] = got[1], got[0]
		}
		same(t, []string{"answer 3 end_turn", "answer 4 end_turn"}, got)
		c.nothing()
	})
}

// A message that was to join a turn is returned when that is cancelled; its prompt is answered then, and says so.
func TestCancelReturnsWaitingPrompt(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.say("hi")
		x.e.Request().Delta("one")
		c.want("agent_message 1.1.0 one")
		second := c.say("and this")
		synctest.Wait()
		c.cancel()
		m := c.response(second)
		if at(m, "result", "stopReason") != "cancelled" || at(m, "result", "_meta", "fermata", "returned") != true {
			t.Errorf("answered %v", m)
		}
		c.want("answer 3 cancelled")
		snap, err := x.e.Resume(t.Context(), p.ConversationID(c.id))
		if err != nil || len(snap.Returned) != 1 {
			t.Errorf("returned %v, %v", snap.Returned, err)
		}
	})
}

// A request that fails is an error, and never the end of a turn.
func TestFailedTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.say("hi")
		x.e.Request().Fail(enginetest.Refused())
		c.want("answer 3 error -32603 refused")
		c.say("again")
		x.e.Request().Fail(&p.Error{Kind: p.ErrorAuth, Message: "bad key", Hint: "run fermata login"})
		c.want("answer 4 error -32000 bad key (run fermata login)")
		c.nothing()
	})
}

// $/cancel_request for a prompt is a cancel: the prompt is answered as cancelled.
func TestCancelRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.say("hi")
		x.e.Request().Delta("one")
		c.want("agent_message 1.1.0 one")
		c.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}`)
		c.want("answer 3 cancelled")
		c.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}`)
		c.nothing()
	})
}

// When the client leaves, what it started is interrupted and closed; a turn that waits for the user goes on waiting.
func TestEndOfTheConnection(t *testing.T) {
	for name, asks := range map[string]bool{"running": false, "waiting for the user": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, x *site) {
				c := x.connect()
				c.start()
				c.say("hi")
				run := x.command("sleep", "9")
				if asks {
					run.Ask("rm", "x")
				}
				synctest.Wait()
				c.in.Close()
				if err := <-c.ended; err != nil {
					t.Error(err)
				}
				snap, err := x.e.Resume(t.Context(), p.ConversationID(c.id))
				if err != nil || snap.Active != asks || snap.Waiting != asks {
					t.Errorf("snapshot %+v, %v", snap, err)
				}
				if asks {
					return
				}
				got := c.until("answer 3")
				if last := got[len(got)-2]; !strings.HasPrefix(last, "tool_call_update 1.1.0 failed") || got[len(got)-1] != "answer 3 cancelled" {
					t.Errorf("the client was sent %q", got)
				}
			})
		})
	}
}

// Two sessions of one connection do not disturb each other.
func TestTwoSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.say("first")
		first, r1 := c.id, x.e.Request()
		c.start()
		c.say("second")
		r2 := x.e.Request()
		c.id, first = first, c.id
		c.cancel() // the first
		r1.Stopped()
		c.want("answer 3 cancelled")
		c.id = first
		r2.Answer("yes")
		c.want("agent_message 1.1.0 yes", "answer 5 end_turn")
		c.nothing()
	})
}

// A slowEngine takes messages when it is let.
type slowEngine struct {
	engine.Engine
	let chan struct{}
}

func (e slowEngine) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	if _, ok := op.(p.UserTurn); ok {
		<-e.let
	}
	return e.Engine.Submit(ctx, id, op)
}

// A cancel that is read after a prompt finds the turn of that prompt, however long the message takes to be recorded.
func TestCancelDoesNotOvertakeItsPrompt(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		o := x.s.o
		slow := slowEngine{o.Engine, make(chan struct{})}
		o.Engine = slow
		x.s = New(o)
		c := x.connect()
		c.start()
		c.say("hi")
		synctest.Wait()
		c.cancel()
		synctest.Wait()
		close(slow.let)
		c.want("answer 3 cancelled")
	})
}

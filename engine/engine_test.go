package engine_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// bubble runs f where time stands still unless everybody waits: with an engine of
// this process, and with one that is used as another process uses it.
func bubble(t *testing.T, f func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch)) {
	t.Helper()
	for name, o := range map[string]enginetest.Options{"local": {}, "remote": {Remote: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := enginetest.New(t, o)
				id := e.Begin()
				w := e.Watch(id, 1)
				f(t, e, id, w)
			})
		})
	}
}

func TestPlainTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		r := e.Say(id, "hi")
		if r.Turn != 1 || r.State != p.TakenStarted {
			t.Errorf("receipt %+v", r)
		}
		e.Request().Answer("hello")
		w.ExpectExactly("turn_started", "user_message hi", "model_requested 1",
			"assistant_message hello", "model_ended", "turn_ended completed")
		w.Nothing()
	})
}

func TestToolTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "do it")
		r := e.Request()
		r.Think("hm")
		r.Message("I will")
		r.Call("a", "work", "{}")
		e.Idle() // a call runs when the response has ended, not before
		r.End()
		e.Run().Finish("done")
		r = e.Request()
		want := []string{"user <environment_context>", "user do it", "reasoning hm", "assistant I will", "call a", "output a done"}
		if d := cmp.Diff(want, r.Inputs()); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
		r.Answer("it is done")
		w.Expect("tool_call 1.1.2 work", "model_ended", "call_started 1.1.2", "tool_output 1.1.2 done",
			"model_requested 2", "assistant_message it is done", "turn_ended completed")
		w.Nothing()
	})
}

func TestCallsRunOneAtATimeAndReadersSideBySide(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("a", "look", "{}")
		r.Call("b", "look", "{}")
		r.Call("c", "work", "{}")
		r.Call("d", "look", "{}")
		r.End()
		one, two := e.Run(), e.Run()
		e.Idle()
		// The second to start ends first: the outputs are still sent in the order of the calls.
		if one.Call.WireID == "a" {
			one, two = two, one
		}
		one.Finish("B")
		two.Finish("A")
		c := e.Run()
		if c.Call.WireID != "c" {
			t.Fatalf("ran %s, want c", c.Call.WireID)
		}
		e.Idle()
		c.Finish("C")
		e.Run().Finish("D")
		got := e.Request().Inputs()[2:]
		want := []string{"call a", "call b", "call c", "call d", "output a A", "output b B", "output c C", "output d D"}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
	})
}

// The next tests interrupt in every phase of a turn.

func TestInterruptRightAfterAccepted(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		r := e.Say(id, "hi")
		if got := e.Must(id, p.Interrupt{}); got.Turn != r.Turn {
			t.Errorf("interrupt names turn %d, want %d", got.Turn, r.Turn)
		}
		w.ExpectExactly("turn_started", "user_message hi", "model_requested 1",
			"stop_requested interrupted", "model_ended", "turn_ended interrupted")
		w.Nothing()
		e.Idle()
	})
}

func TestInterruptDuringText(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "talk")
		r := e.Request()
		r.Delta("one ")
		r.Delta("two")
		e.Must(id, p.Interrupt{})
		r.Stopped()
		r.Delta(" three") // after the stop: not part of the conversation
		r.Message("one two three")
		w.Expect("stop_requested interrupted")
		w.ExpectExactly("assistant_message one two (cut)", "model_ended", "turn_ended interrupted")
		w.Nothing()

		e.Say(id, "go on")
		want := []string{"user <environment_context>", "user talk", "assistant one two", "user <turn_aborted>", "user go on"}
		r = e.Request()
		if d := cmp.Diff(want, r.Inputs()); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
		text := p.PlainText(r.Prompt.Items[3].Content)
		if !strings.HasPrefix(text, "<turn_aborted>") || !strings.HasSuffix(text, "</turn_aborted>") || !strings.Contains(text, "cut off") {
			t.Errorf("the model is told %q", text)
		}
	})
}

func TestInterruptDuringCallArguments(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("whole", "work", "{}") // this one arrived; a second is still on its way
		synctest.Wait()
		e.Must(id, p.Interrupt{})
		w.Expect("tool_call 1.1.0 work", "stop_requested interrupted")
		w.ExpectExactly("model_ended", "tool_output 1.1.0 aborted", "turn_ended interrupted")
		w.Nothing()
		e.Idle()
		e.Say(id, "and now")
		want := []string{"user <environment_context>", "user go", "call whole", "output whole aborted", "user <turn_aborted>", "user and now"}
		if d := cmp.Diff(want, e.Request().Inputs()); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
	})
}

func TestInterruptDuringCommand(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		e.Run().Print("half of it")
		e.Must(id, p.Interrupt{})
		w.Expect("call_started 1.1.0")
		w.ExpectExactly("stop_requested interrupted", "tool_output 1.1.0 aborted", "turn_ended interrupted")
		w.Nothing()
		out := w.All[len(w.All)-2].Body.(*p.ToolOutput)
		if !out.Aborted || !strings.HasPrefix(out.Output, "aborted") || !strings.HasSuffix(out.Output, "half of it") {
			t.Errorf("output %+v", out)
		}
		if end := w.Last().Body.(*p.TurnEnded); end.Killed != 1 {
			t.Errorf("killed %d, want 1", end.Killed)
		}
	})
}

// A tool that is being stopped can begin nothing any more, but what it has to say
// to people is recorded.
func TestNoticeWhileStopping(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "immortal")
		r.End()
		run := e.Run()
		e.Must(id, p.Interrupt{})
		if err := run.Call.Host.Record(t.Context(), &p.CommandStarted{Call: run.Call.ID}); err == nil {
			t.Error("a command begins after the stop")
		}
		if err := run.Call.Host.Record(t.Context(), &p.Notice{Text: "something is left", Warn: true}); err != nil {
			t.Errorf("not told: %v", err)
		}
		run.Return(p.ToolOutput{Aborted: true})
		w.Expect("stop_requested interrupted", "notice something is left", "turn_ended interrupted")
		verify(t, e, id)
	})
}

func TestInterruptWhileApprovalOpen(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		e.Run().Ask("rm", "x")
		w.Expect("approval_requested 1.1.0")
		e.Must(id, p.Interrupt{})
		w.ExpectExactly("stop_requested interrupted", "approval_resolved 1.1.0 cancelled", "tool_output 1.1.0 aborted", "turn_ended interrupted")
		w.Nothing()
		call := p.CallID{Turn: 1, Response: 1, Index: 0}
		if _, err := e.Submit(t.Context(), id, p.Approve{Call: call, Decision: p.Approved}); !errors.Is(err, engine.ErrNoApproval) {
			t.Errorf("late answer: %v", err)
		}
		e.Idle()
	})
}

func TestInterruptInBackoff(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		e.Request().Fail(enginetest.Broken())
		w.Expect("model_retry 1/10")
		e.Must(id, p.Interrupt{})
		w.ExpectExactly("stop_requested interrupted", "turn_ended interrupted")
		w.Nothing()
		e.Idle()
	})
}

func TestInterruptInCompaction(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "hi")
		e.Request().Answer("hello")
		w.Expect("turn_ended completed")
		e.Must(id, p.Compact{})
		e.Request()
		e.Must(id, p.Interrupt{})
		w.Expect("turn_ended interrupted")
		e.Say(id, "still there?")
		want := []string{"user <environment_context>", "user hi", "assistant hello", "user <turn_aborted>", "user still there?"}
		if d := cmp.Diff(want, e.Request().Inputs()); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
	})
}

func TestInterruptTwice(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "immortal")
		r.End()
		run := e.Run()
		for range 2 {
			if got := e.Must(id, p.Interrupt{}); got.Turn != 1 {
				t.Errorf("interrupt names turn %d", got.Turn)
			}
		}
		w.Expect("stop_requested interrupted")
		w.ExpectExactly("tool_output 1.1.0 aborted", "turn_ended interrupted") // by the bound: it will not die
		w.Nothing()
		e.Say(id, "next")
		run.Finish("at last") // of the old turn: dropped
		synctest.Wait()
		e.Request().Answer("fine")
		w.ExpectExactly("turn_started", "user_message next", "model_requested 1", "assistant_message fine", "model_ended", "turn_ended completed")
		w.Nothing()
	})
}

func TestInterruptWhenIdle(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		if r, err := e.Submit(t.Context(), id, p.Interrupt{}); !errors.Is(err, engine.ErrNothingToStop) || r.Turn != 0 {
			t.Errorf("interrupt when idle: %+v, %v", r, err)
		}
		w.Nothing()
	})
}

func TestLateInterruptDoesNotHitTheNextTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "one")
		e.Request().Answer("1")
		w.Expect("turn_ended completed")
		e.Say(id, "two")
		r := e.Request()
		if _, err := e.Submit(t.Context(), id, p.Interrupt{Turn: 1}); !errors.Is(err, engine.ErrNothingToStop) {
			t.Errorf("interrupt of an ended turn: %v", err)
		}
		r.Answer("2")
		w.Expect("turn_ended completed")
	})
}

func TestInterruptWithNobodyAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		e.Say(id, "go")
		r := e.Request()
		e.Must(id, p.Interrupt{})
		r.Stopped()
		w := e.Watch(id, 0)
		w.Expect("turn_ended interrupted")
	})
}

func TestSteerJoinsTheRunningTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		if got := e.Say(id, "left, please", p.Steer); got.State != p.TakenSteered || got.Turn != 1 {
			t.Errorf("receipt %+v", got)
		}
		r.Answer("going") // the answer came first: it is not lost, and neither is the message
		r = e.Request()
		want := []string{"user <environment_context>", "user go", "assistant going", "user left, please"}
		if d := cmp.Diff(want, r.Inputs()); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
		r.Answer("left")
		w.Expect("input_accepted steer left, please", "model_ended", "user_message left, please", "model_requested 2", "turn_ended completed")
		w.Nothing()
	})
}

func TestQueueStartsByItself(t *testing.T) {
	for _, fails := range []bool{false, true} {
		bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
			e.Say(id, "one")
			r := e.Request()
			if got := e.Say(id, "two", p.Queue); got.State != p.TakenQueued {
				t.Errorf("receipt %+v", got)
			}
			if fails {
				r.Fail(enginetest.Refused())
				w.Expect("turn_ended failed")
			} else {
				r.Answer("1")
				w.Expect("turn_ended completed")
			}
			e.Request().Answer("2")
			w.ExpectExactly("turn_started", "user_message two", "model_requested 1", "assistant_message 2", "model_ended", "turn_ended completed")
			w.Nothing()
		})
	}
}

func TestInterruptHandsWaitingMessagesBack(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "one")
		e.Request()
		e.Say(id, "two", p.Steer)
		e.Say(id, "three", p.Queue)
		e.Must(id, p.Interrupt{})
		w.Expect("stop_requested interrupted")
		w.ExpectExactly("model_ended", "input_returned two three", "turn_ended interrupted")
		w.Nothing()
		e.Idle()
	})
}

func TestMessageWhileStoppingStartsTheNextTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "one")
		r := e.Request()
		r.Call("c", "work", "immortal")
		r.End()
		run := e.Run()
		e.Must(id, p.Interrupt{})
		e.Say(id, "two")
		w.Expect("turn_ended interrupted", "turn_started", "user_message two")
		run.Finish("")
		e.Request().Answer("2")
		w.Expect("turn_ended completed")
	})
}

func TestReplace(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "one")
		r := e.Request()
		e.Say(id, "waiting", p.Queue)
		e.Say(id, "two", p.Replace)
		r.Stopped()
		w.Expect("stop_requested replaced")
		w.ExpectExactly("model_ended", "input_returned waiting", "turn_ended replaced", "turn_started", "user_message two", "model_requested 1")
		e.Request().Answer("2")
		w.Expect("turn_ended completed")
		w.Nothing()
	})
}

func TestMessageReplacesATurnThatOnlyWaits(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "one")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		e.Run().Ask("rm")
		w.Expect("approval_requested 1.1.0")
		e.Say(id, "never mind", p.Replace)
		w.Expect("stop_requested replaced", "approval_resolved 1.1.0 cancelled", "turn_ended replaced", "turn_started", "user_message never mind")
	})
}

func TestSteerIntoATurnThatOnlyWaits(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "one")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		e.Run().Ask("rm")
		w.Expect("approval_requested 1.1.0")
		e.Say(id, "carefully") // which is what a message does unless it says otherwise
		call := p.CallID{Turn: 1, Response: 1}
		e.Must(id, p.Approve{Call: call, Decision: p.Denied, Message: "not that one"})
		got := e.Request().Inputs()[2:]
		want := []string{"call c", "output c rejected by the user", "user carefully"}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
	})
}

func TestApprovalRunsTheCallOnce(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		e.Run().Ask("rm", "x")
		w.Expect("approval_requested 1.1.0")
		call := p.CallID{Turn: 1, Response: 1}
		e.Must(id, p.Approve{Call: call, Decision: p.Approved})
		if _, err := e.Submit(t.Context(), id, p.Approve{Call: call, Decision: p.Denied}); !errors.Is(err, engine.ErrNoApproval) {
			t.Errorf("second answer: %v", err)
		}
		run := e.Run()
		if run.Call.Grant != p.Approved {
			t.Errorf("grant %q", run.Call.Grant)
		}
		run.Finish("removed")
		e.Request().Answer("ok")
		w.ExpectExactly("approval_resolved 1.1.0 approved", "call_started 1.1.0 approved", "tool_output 1.1.0 removed",
			"model_requested 2", "assistant_message ok", "model_ended", "turn_ended completed")
	})
}

func TestApprovalAbortStopsTheTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		e.Run().Ask("rm", "x")
		w.Expect("approval_requested 1.1.0")
		e.Must(id, p.Approve{Call: p.CallID{Turn: 1, Response: 1}, Decision: p.Abort})
		w.ExpectExactly("approval_resolved 1.1.0 abort", "stop_requested interrupted", "tool_output 1.1.0 aborted", "turn_ended interrupted")
	})
}

func TestSameCallIDsInTwoTurns(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		for _, text := range []string{"one", "two"} {
			e.Say(id, text)
			r := e.Request()
			r.Call("call_1", "work", "{}")
			r.Call("call_2", "work", "{}")
			r.End()
			e.Run().Finish(text + " first")
			e.Run().Finish(text + " second")
			e.Request().Answer("ok")
			w.Expect("turn_ended completed")
		}
		e.Say(id, "three")
		want := []string{
			"user one", "call call_1", "call call_2", "output call_1 one first", "output call_2 one second", "assistant ok",
			"user two", "call call_1", "call call_2", "output call_1 two first", "output call_2 two second", "assistant ok",
			"user three",
		}
		if d := cmp.Diff(want, e.Request().Inputs()[1:]); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
	})
}

func TestRetryKeepsWhatWasFinishedAndRunsNothingTwice(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Message("first I look")
		r.Call("c", "work", "{}")
		r.Delta("then I")
		r.Fail(enginetest.Broken())
		r = e.Request()
		want := []string{"user go", "assistant first I look", "call c", "output c aborted"}
		if d := cmp.Diff(want, r.Inputs()[1:]); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
		e.Idle()
		r.Answer("done")
		w.Expect("model_ended stream broke", "model_retry 1/5", "model_requested 2", "turn_ended completed")
	})
}

func TestRetriesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		for range 11 {
			e.Request().Fail(enginetest.Broken())
		}
		w.Expect("model_retry 10/10", "stop_requested failed", "turn_ended failed")
		w.Nothing()
		e.Idle()
	})
}

// A request that was never answered and a response that broke off are
// different things, with a budget each.
func TestTwoRetryBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{Config: func(c *engine.Config) {
			c.Turns.Retries = func(p.Settings) (int, int) { return 1, 0 }
		}})
		id := e.Begin()
		w := e.Watch(id, 1)
		e.Say(id, "go")
		e.Request().Fail(enginetest.Broken())
		w.Expect("model_retry 1/1")
		r := e.Request()
		r.Delta("so f")
		r.Fail(enginetest.Broken())
		w.Expect("assistant_message so f (cut)", "stop_requested failed", "turn_ended failed")
	})
}

func TestRefusedHistoryIsRepairedOnce(t *testing.T) {
	refuse := func(id string) error {
		return &p.Error{Kind: p.ErrorHistory, Message: "no output", Call: &p.CallFault{WireID: id, Fault: p.CallWithoutOutput}}
	}
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		e.Request().Fail(refuse("call_x"))
		r := e.Request()
		if d := cmp.Diff([]string{"call_x"}, r.Prompt.UnknownCalls); d != "" {
			t.Errorf("lone outputs (-want +got):\n%s", d)
		}
		r.Fail(refuse("call_x")) // it does not help: no endless loop
		w.Expect("history_repaired", "turn_ended failed")
		e.Say(id, "again")
		if r := e.Request(); len(r.Prompt.UnknownCalls) > 0 {
			t.Errorf("the next turn still carries %q", r.Prompt.UnknownCalls)
		}
	})
}

func TestEmptyMessageIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		if _, err := e.Submit(t.Context(), id, p.UserTurn{}); !errors.Is(err, engine.ErrEmpty) {
			t.Errorf("empty message: %v", err)
		}
		w.Nothing()
	})
}

func TestUnknownConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		_, err := e.Submit(t.Context(), "00000000-0000-7000-8000-000000000000", p.Interrupt{})
		if !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("unknown conversation: %v", err)
		}
	})
}

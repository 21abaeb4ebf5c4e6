package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

type asked struct {
	resolved p.ElicitationResolved
	err      error
}

// elicit lets a call ask the person something.
func elicit(ctx context.Context, run *enginetest.Run, message string) <-chan asked {
	done := make(chan asked, 1)
	go func() {
		resolved, err := run.Call.Host.(tool.Elicitor).Elicit(ctx, p.ElicitationRequested{Server: "s", Message: message})
		done <- asked{resolved, err}
	}()
	synctest.Wait()
	return done
}

// working begins a turn with one call that runs.
func working(e *enginetest.Engine, id p.ConversationID) *enginetest.Run {
	e.Say(id, "go")
	r := e.Request()
	r.Call("c", "work", "{}")
	r.End()
	return e.Run()
}

func TestElicitationIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		run := working(e, id)
		first, second := elicit(run.Ctx, run, "who?"), elicit(run.Ctx, run, "why?")
		e.Must(id, p.AnswerElicitation{Call: run.Call.ID, Number: 2, Action: p.ElicitationDecline})
		if a := <-second; a.err != nil || a.resolved.Action != p.ElicitationDecline {
			t.Errorf("%+v", a)
		}
		e.Must(id, p.AnswerElicitation{Call: run.Call.ID, Number: 1, Action: p.ElicitationAccept, Content: json.RawMessage(`{"name":"me"}`)})
		if a := <-first; a.err != nil || string(a.resolved.Content) != `{"name":"me"}` {
			t.Errorf("%+v", a)
		}
		if _, err := e.Submit(t.Context(), id, p.AnswerElicitation{Call: run.Call.ID, Number: 1, Action: p.ElicitationDecline}); !errors.Is(err, turn.ErrNoElicitation) {
			t.Errorf("answered twice: %v", err)
		}
		run.Finish("thanks")
		e.Request().Answer("done")
		w.Expect("turn_ended completed")
		verify(t, e, id)
	})
}

// TestElicitationEndsWithItsTurn stops a turn while a call asks; a call that gives up
// waiting and the end of the call do the same.
func TestElicitationEndsWithItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		run := working(e, id)
		open := elicit(run.Ctx, run, "who?")
		e.Must(id, p.Interrupt{})
		if a := <-open; a.err == nil {
			t.Errorf("%+v", a)
		}
		w.Expect("turn_ended interrupted")

		run = working(e, id)
		ctx, cancel := context.WithCancel(run.Ctx)
		given := elicit(ctx, run, "who?")
		cancel()
		<-given
		left := elicit(run.Ctx, run, "why?")
		synctest.Wait()
		run.Finish("never mind")
		if a := <-left; a.err != nil || a.resolved.Action != p.ElicitationCancel {
			t.Errorf("%+v", a)
		}
		e.Request().Answer("done")
		w.Expect("turn_ended completed")
		var actions []p.ElicitationAction
		for _, ev := range recorded(t, e, id) {
			if b, ok := ev.Body.(*p.ElicitationResolved); ok {
				actions = append(actions, b.Action)
			}
		}
		if len(actions) != 3 {
			t.Errorf("resolved %v", actions)
		}
		verify(t, e, id)
	})
}

// TestStopWhileToolsAreAwaited stops a turn before, while and after its tools become known. It ends
// at once, and the next turn has them.
func TestStopWhileToolsAreAwaited(t *testing.T) {
	for _, when := range []string{"waiting", "ready", "failed"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				known, stopped := make(chan error, 1), 0
				e := enginetest.New(t, enginetest.Options{Config: func(c *engine.Config) {
					c.Turns.AwaitTools = func(p.Settings) func(context.Context) ([]string, error) {
						return func(ctx context.Context) ([]string, error) {
							select {
							case err := <-known:
								return []string{"one server is slow"}, err
							case <-ctx.Done():
								stopped++
								return nil, context.Cause(ctx)
							}
						}
					}
				}})
				id := e.Begin()
				e.Say(id, "go")
				synctest.Wait()
				switch when { // the answer and the stop race for the owner
				case "ready":
					known <- nil
				case "failed":
					known <- errors.New("a required server is broken")
				}
				_, err := e.Submit(t.Context(), id, p.Interrupt{})
				if err != nil && !(when == "failed" && errors.Is(err, turn.ErrNothingToStop)) { // it may have ended by itself
					t.Fatal(err)
				}
				synctest.Wait()
				last := lastEnd(t, e, id)
				if last.Reason != p.Interrupted && !(when == "failed" && last.Reason == p.Failed) {
					t.Errorf("the turn ended %s", last.Reason)
				}
				if when == "waiting" && stopped != 1 {
					t.Errorf("the wait was stopped %d times", stopped)
				}
				verify(t, e, id)
				known = make(chan error, 1)
				known <- nil
				e.Say(id, "again")
				e.Request().Answer("done")
				synctest.Wait()
				if last := lastEnd(t, e, id); last.Reason != p.Completed {
					t.Errorf("the next turn ended %s", last.Reason)
				}
				verify(t, e, id)
			})
		})
	}
}

func lastEnd(t *testing.T, e *enginetest.Engine, id p.ConversationID) p.TurnEnded {
	t.Helper()
	var last p.TurnEnded
	for _, ev := range recorded(t, e, id) {
		if b, ok := ev.Body.(*p.TurnEnded); ok {
			last = *b
		}
	}
	return last
}

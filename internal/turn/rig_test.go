package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

var (
	t0  = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) // when the events of a test happened
	now = t0.Add(2 * time.Second)                     // when Decide is asked
)

// env is the world of the tests: calls of tools whose names begin with "look" run beside others, those of
// "ask…" have to be approved, and those of "type…" have a lane for each name.
func env() Env {
	return Env{
		Now: now, Retries: func() Retries { return Retries{Request: 2, Stream: 2} },
		Lane: laneOf, MaxParallel: 4,
		Wait: func(attempt int, _ *p.Error) time.Duration { return time.Duration(attempt) * time.Second },
	}
}

func laneOf(c Call) Lane {
	switch {
	case strings.HasPrefix(c.Name, "look"):
		return Beside
	case strings.HasPrefix(c.Name, "ask"):
		return Asks
	case strings.HasPrefix(c.Name, "type"):
		return Lane(c.Name)
	}
	return Alone
}

// fold makes the state that the events lead to.
func fold(events ...p.Body) State {
	var s State
	for _, b := range events {
		s = s.Evolve(p.Event{Turn: turnOf(s, b), Time: t0, Body: b})
	}
	return s
}

// decide returns what Decide decides, without the turns, which it checks.
func (s State) decide(e Env, in Input) ([]p.Body, error) {
	events, err := s.Decide(e, in)
	for _, ev := range events {
		if want := turnOf(s, ev.Body); ev.Turn != want {
			panic(fmt.Sprintf("%T: %T is of turn %d, want %d", in, ev.Body, ev.Turn, want))
		}
		s = s.Evolve(ev)
	}
	return bodies(events), err
}

func bodies(events []p.Event) []p.Body {
	var list []p.Body
	for _, e := range events {
		list = append(list, e.Body)
	}
	return list
}

// turnOf is the turn that an event belongs to when it is recorded in state s.
func turnOf(s State, b p.Body) p.TurnID {
	if _, ok := b.(*p.TurnStarted); ok {
		return s.Turn + 1
	}
	switch b.(type) {
	case *p.BackgroundStarted, *p.BackgroundEnded, *p.ReturnedResolved:
		return 0
	}
	if !s.Active {
		return 0
	}
	return s.Turn
}

// decide asks for what follows and fails the test on an error.
func decide(t *testing.T, s State, in Input) []p.Body {
	t.Helper()
	events, err := s.decide(env(), in)
	if err != nil {
		t.Fatalf("%T is refused: %v", in, err)
	}
	return events
}

// steps takes several happenings one after the other, and returns the state
// and the events of the last.
func steps(t *testing.T, s State, happenings ...Input) (State, []p.Body) {
	t.Helper()
	var events []p.Body
	for _, in := range happenings {
		events = decide(t, s, in)
		for _, b := range events {
			s = s.Evolve(p.Event{Turn: turnOf(s, b), Time: t0, Body: b})
		}
	}
	return s, events
}

func same(t *testing.T, what string, want, got []p.Body) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// with returns a new list of the events of both.
func with(first []p.Body, more ...p.Body) []p.Body {
	return append(first[:len(first):len(first)], more...)
}

func id(turn, response, index int) p.ItemID {
	return p.ItemID{Turn: p.TurnID(turn), Response: response, Index: index}
}

// started is a turn whose model has been asked.
func started() []p.Body {
	return []p.Body{
		&p.TurnStarted{},
		&p.UserMessage{Item: id(1, 0, 0), Input: 1, Content: p.Text("go")},
		&p.ModelRequested{Response: 1},
	}
}

func called(index int, name string) *p.ToolCall {
	return &p.ToolCall{Call: id(1, 1, index), WireID: fmt.Sprint("w", index), Name: name, Arguments: "{}"}
}

// answered is a turn whose first response, now over, asked for the given tools.
func answered(tools ...string) []p.Body {
	events := started()
	for i, name := range tools {
		events = append(events, called(i, name))
	}
	return append(events, &p.ModelEnded{Response: 1})
}

// toolRuns is a turn whose only call runs.
func toolRuns() []p.Body { return with(answered("work"), &p.CallStarted{Call: id(1, 1, 0)}) }

// asked is a turn whose only call waits for a person.
func asked() []p.Body {
	return with(toolRuns(), &p.ApprovalRequested{Call: id(1, 1, 0), Kind: p.ApproveCommand})
}

// summing is a turn that asks for a summary first.
func summing() []p.Body {
	return append(started()[:2:2], &p.ModelRequested{Response: 1, Compact: true})
}

// tooLong is what a service says when the history does not fit.
func tooLong() *p.Error { return &p.Error{Kind: p.ErrorContextLength, Message: "too long"} }

// backingOff is a turn that waits to try again.
func backingOff() []p.Body {
	return with(started(),
		&p.ModelEnded{Response: 1, Error: broken()},
		&p.ModelRetry{Attempt: 1, Max: 2, Wait: time.Second, Reason: "broken"},
	)
}

// broken is an error that may pass.
func broken() *p.Error { return &p.Error{Kind: p.ErrorConnection, Message: "broken", Retry: true} }

func stopped(events []p.Body) []p.Body { return with(events, &p.StopRequested{Reason: p.Interrupted}) }

func accepted(input int, mode p.WhenBusy) *p.InputAccepted {
	return &p.InputAccepted{Input: p.InputID(input), Mode: mode, Content: p.Text(fmt.Sprint("m", input))}
}

func acceptedAfter(input int, mode p.WhenBusy) *p.InputAccepted {
	b := accepted(input, mode)
	b.After = true
	return b
}

func returned(input int, mode p.WhenBusy) p.ReturnedInput {
	return p.ReturnedInput{Input: p.InputID(input), Mode: mode, Content: p.Text(fmt.Sprint("m", input)), Stays: true}
}

// ended is the end of a turn of the tests, which always takes two seconds.
func ended(reason p.EndReason) *p.TurnEnded { return endedReturning(reason, 0) }

// endedReturning is the end of a turn after which so many messages are returned.
func endedReturning(reason p.EndReason, messages int) *p.TurnEnded {
	return &p.TurnEnded{Reason: reason, Elapsed: 2 * time.Second, Returned: messages}
}

// notRun is the output of a call that was not run because the user stopped the turn.
func notRun(call p.CallID) *p.ToolOutput {
	return &p.ToolOutput{
		Call: call, Failed: true, Aborted: true,
		Output: "aborted: the user stopped the turn before this ran, so it was not run",
	}
}

// cut is the output of a call that a stop cut.
func cut(call p.CallID, because string) *p.ToolOutput {
	return &p.ToolOutput{
		Call: call, Failed: true, Aborted: true, Elapsed: 2 * time.Second,
		Output: "aborted after 2.0 s: " + because + " while this ran. It may have had effects. It had printed nothing.",
	}
}

package turn

import (
	"testing"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

func compacting() []p.Body {
	return []p.Body{&p.TurnStarted{Compact: true}, &p.ModelRequested{Response: 1}}
}

func TestCompaction(t *testing.T) {
	s, events := steps(t, State{}, Compact{})
	same(t, "start", compacting(), events)
	if !s.Compacting() {
		t.Error("it does not say that it compacts")
	}
	s, _ = steps(t, s, ModelItem{Response: 1, Body: &p.AssistantMessage{Text: "first"}},
		ModelItem{Response: 1, Index: 1, Body: &p.AssistantMessage{Text: "the gist"}})
	s, events = steps(t, s, ModelDone{Response: 1})
	same(t, "end", []p.Body{&p.ModelEnded{Response: 1}, &p.Compacted{Summary: "the gist"}, ended(p.Completed)}, events)
	if s.Compacting() {
		t.Error("it still compacts")
	}
}

// A failed or stopped compaction leaves the history as it is.
func TestCompactionThatDoesNotWork(t *testing.T) {
	refusal := &p.Error{Kind: p.ErrorContextLength, Message: "too long"}
	said := with(compacting(), &p.AssistantMessage{Item: id(1, 1, 0), Text: "half"})
	for _, tt := range []struct {
		name  string
		given []p.Body
		in    Input
	}{
		{"fails", said, ModelDone{Response: 1, Error: refusal}},
		{"stopped", stopped(said), ModelDone{Response: 1}},
		{"crashed", said, Lost{Crash: true}},
	} {
		for _, b := range decide(t, fold(tt.given...), tt.in) {
			if _, ok := b.(*p.Compacted); ok {
				t.Errorf("%s: compacted all the same", tt.name)
			}
		}
	}
}

// A summary of nothing would make the model forget everything.
func TestCompactionWithoutASummary(t *testing.T) {
	for name, given := range map[string][]p.Body{
		"nothing said": compacting(),
		"blank":        with(compacting(), &p.AssistantMessage{Item: id(1, 1, 0), Text: " \n"}),
		"only thought": with(compacting(), &p.Reasoning{Item: id(1, 1, 0), Text: "hm"}),
	} {
		err := &p.Error{Kind: p.ErrorModel, Message: "the model gave no summary"}
		same(t, name, []p.Body{
			&p.ModelEnded{Response: 1},
			&p.StopRequested{Reason: p.Failed, Error: err},
			&p.TurnEnded{Reason: p.Failed, Error: err, Elapsed: 2 * time.Second},
		}, decide(t, fold(given...), ModelDone{Response: 1}))
	}
}

func TestCompactionIsRetried(t *testing.T) {
	s, events := steps(t, fold(with(compacting(), &p.AssistantMessage{Item: id(1, 1, 0), Text: "half"})...),
		ModelDone{Response: 1, Error: broken()}, RetryDue{})
	same(t, "again", []p.Body{&p.ModelRequested{Response: 2}}, events)
	_, events = steps(t, s, ModelItem{Response: 2, Body: &p.AssistantMessage{Text: "whole"}}, ModelDone{Response: 2})
	same(t, "end", []p.Body{&p.ModelEnded{Response: 2}, &p.Compacted{Summary: "whole"}, ended(p.Completed)}, events)
}

// A message cannot join a compaction: what it says would be summarised away,
// unanswered. That holds for one that waited before it began, too.
func TestMessagesDoNotJoinACompaction(t *testing.T) {
	s := fold(with(started(), accepted(2, p.Steer), &p.ModelEnded{Response: 1}, &p.StopRequested{Reason: p.Failed}, ended(p.Failed))...)
	s, _ = steps(t, s, Compact{}, say(p.Steer, "x"), say("", "y"))
	for _, in := range s.Pending[1:] {
		if in.Mode != p.Queue {
			t.Errorf("message %d is taken to %s", in.ID, in.Mode)
		}
	}
	s, events := steps(t, s, ModelDone{Response: 1, Error: broken()}, RetryDue{})
	same(t, "retry", []p.Body{&p.ModelRequested{Response: 2}}, events)
	s, events = steps(t, s, ModelItem{Response: 2, Body: &p.AssistantMessage{Text: "gist"}}, ModelDone{Response: 2})
	same(t, "end", []p.Body{&p.ModelEnded{Response: 2}, &p.Compacted{Summary: "gist"}, ended(p.Completed)}, events)
	_, events = steps(t, s, Next{})
	same(t, "next", []p.Body{
		&p.TurnStarted{}, &p.UserMessage{Item: id(3, 0, 0), Input: 2, Content: p.Text("m2")}, &p.ModelRequested{Response: 1},
	}, events)
}

func TestMessagesDuringAStoppedCompaction(t *testing.T) {
	s, events := steps(t, fold(stopped(compacting())...), say(p.Steer, "x"))
	same(t, "accepted", []p.Body{&p.InputAccepted{Input: 1, Mode: p.Queue, Content: p.Text("x"), After: true}}, events)
	s, _ = steps(t, s, ModelDone{Response: 1})
	_, events = steps(t, s, Next{})
	same(t, "next", []p.Body{
		&p.TurnStarted{}, &p.UserMessage{Item: id(2, 0, 0), Input: 1, Content: p.Text("x")}, &p.ModelRequested{Response: 1},
	}, events)
}

// full is a world in which the history is about to be too long.
func full() Env {
	e := env()
	e.Full = true
	return e
}

// take lets something happen in a world of its own, and returns the state after it.
func take(t *testing.T, e Env, s State, in Input) (State, []p.Body) {
	t.Helper()
	events, err := s.decide(e, in)
	if err != nil {
		t.Fatalf("%T is refused: %v", in, err)
	}
	for _, b := range events {
		s = s.Evolve(p.Event{Turn: turnOf(s, b), Time: t0, Body: b})
	}
	return s, events
}

// A history that is about to be too long is summed up before the next request,
// wherever the turn is; then it goes on, with what was steered in meanwhile.
func TestSummingUpInATurn(t *testing.T) {
	s, events := take(t, full(), State{}, User{Content: p.Text("go")})
	same(t, "at the start", summing(), events)
	if !s.Compacting() {
		t.Error("it does not say that it asks for a summary")
	}
	s, _ = steps(t, s, say(p.Steer, "x"), ModelItem{Response: 1, Body: &p.AssistantMessage{Text: "gist"}})
	s, events = take(t, full(), s, ModelDone{Response: 1})
	same(t, "then the turn goes on, once with room", []p.Body{
		&p.ModelEnded{Response: 1}, &p.Compacted{Summary: "gist"},
		&p.UserMessage{Item: id(1, 0, 1), Input: 2, Content: p.Text("x")}, &p.ModelRequested{Response: 2},
	}, events)
	if s.Compacting() {
		t.Error("it still asks for a summary")
	}
	s, _ = steps(t, s, ModelItem{Response: 2, Body: &p.ToolCall{WireID: "w", Name: "work"}}, ModelDone{Response: 2})
	_, events = take(t, full(), s, ToolDone{Output: p.ToolOutput{Call: id(1, 2, 0), Elapsed: 1}})
	same(t, "not twice in one turn", []p.Body{&p.ToolOutput{Call: id(1, 2, 0), Elapsed: 1}, &p.ModelRequested{Response: 3}}, events)
}

func TestSummingUpBetweenCalls(t *testing.T) {
	s := fold(with(toolRuns(), accepted(2, p.Steer))...)
	s, events := take(t, full(), s, ToolDone{Output: p.ToolOutput{Call: id(1, 1, 0), Elapsed: 1}})
	same(t, "what was steered in waits for the request after it", []p.Body{
		&p.ToolOutput{Call: id(1, 1, 0), Elapsed: 1}, &p.ModelRequested{Response: 2, Compact: true},
	}, events)
	s, events = steps(t, s, ModelDone{Response: 2, Error: broken()}, RetryDue{})
	same(t, "a retry asks for the summary again", []p.Body{&p.ModelRequested{Response: 3, Compact: true}}, events)
	_, events = steps(t, s, ModelItem{Response: 3, Body: &p.AssistantMessage{Text: "gist"}}, ModelDone{Response: 3})
	same(t, "and goes on", []p.Body{
		&p.ModelEnded{Response: 3}, &p.Compacted{Summary: "gist"},
		&p.UserMessage{Item: id(1, 0, 1), Input: 2, Content: p.Text("m2")}, &p.ModelRequested{Response: 4},
	}, events)
}

// The service may know better than we do how long is too long, but it does not
// help to say so again.
func TestTooLongForTheService(t *testing.T) {
	s, events := steps(t, fold(started()...), ModelDone{Response: 1, Error: tooLong()})
	same(t, "too long", []p.Body{
		&p.ModelEnded{Response: 1, Error: tooLong()},
		&p.Notice{Text: "the conversation is too long for the model; summarising it"},
		&p.ModelRequested{Response: 2, Compact: true},
	}, events)
	_, events = steps(t, s, ModelDone{Response: 2, Error: tooLong()})
	same(t, "too long to be summed up", []p.Body{
		&p.ModelEnded{Response: 2, Error: tooLong()},
		&p.StopRequested{Reason: p.Failed, Error: tooLong()},
		&p.TurnEnded{Reason: p.Failed, Error: tooLong(), Elapsed: 2 * time.Second},
	}, events)
	s, _ = steps(t, s, ModelItem{Response: 2, Body: &p.AssistantMessage{Text: "gist"}}, ModelDone{Response: 2})
	_, events = steps(t, s, ModelDone{Response: 3, Error: tooLong()})
	same(t, "too long although summed up", []p.Body{
		&p.ModelEnded{Response: 3, Error: tooLong()},
		&p.StopRequested{Reason: p.Failed, Error: tooLong()},
		&p.TurnEnded{Reason: p.Failed, Error: tooLong(), Elapsed: 2 * time.Second},
	}, events)
}

// No tool is offered with a request for a summary: a call all the same is not
// taken, and nothing runs.
func TestCallsInASummary(t *testing.T) {
	for name, given := range map[string][]p.Body{"summing up": summing(), "compacting": compacting()} {
		s, events := steps(t, fold(given...), ModelItem{Response: 1, Index: 1, Body: &p.ToolCall{Name: "work"}})
		same(t, name, nil, events)
		if got := s.OpenCalls(); len(got) != 0 {
			t.Errorf("%s: open calls: %v", name, got)
		}
	}
}

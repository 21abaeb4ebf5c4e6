package turn

import (
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

func compacting() []p.Body {
	return []p.Body{&p.TurnStarted{Compact: true}, &p.ModelRequested{Response: 1, Compact: true}}
}

// full is a world in which the history is about to be too long.
func full() Env {
	e := env()
	e.Room = Room{Size: func(...[]p.Content) int64 { return 8000 }, Window: 10_000, Overhead: 500, Keep: 7, Grown: true, LocalSummary: func() string { return "local" }}
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

func TestCompaction(t *testing.T) {
	s, events := steps(t, State{}, Compact{})
	same(t, "start", compacting(), events)
	if !s.Compacting() {
		t.Error("it does not say that it compacts")
	}
	s, events = steps(t, s, ModelItem{Response: 1, Body: &p.AssistantMessage{Text: "the gist"}})
	same(t, "the summary is no message", nil, events)
	s, events = take(t, full(), s, ModelDone{Response: 1, Summary: " the gist\n"})
	same(t, "end", []p.Body{&p.ModelEnded{Response: 1}, &p.Compacted{Summary: "the gist", Keep: 7}, ended(p.Completed)}, events)
	if s.Compacting() {
		t.Error("it still compacts")
	}
}

// A compaction that fails or is stopped leaves the history as it is, and nothing of
// what the model had written is a message.
func TestCompactionThatDoesNotWork(t *testing.T) {
	half := []Partial{{Item: id(1, 1, 0), Kind: p.DeltaMessage, Text: "half"}}
	for _, tt := range []struct {
		name  string
		given []p.Body
		in    Input
	}{
		{"no connection", compacting(), ModelDone{Response: 1, Error: &p.Error{Kind: p.ErrorConnection}, Open: half}},
		{"no key", summing(), ModelDone{Response: 1, Error: &p.Error{Kind: p.ErrorAuth}, Open: half}},
		{"stopped", stopped(compacting()), ModelDone{Response: 1, Summary: "half", Open: half}},
		{"stopped within a turn", stopped(summing()), ModelDone{Response: 1, Summary: "half", Open: half}},
		{"crashed", summing(), Lost{Crash: true, Open: half}},
	} {
		_, events := take(t, full(), fold(tt.given...), tt.in)
		for _, b := range events {
			switch b.(type) {
			case *p.Compacted, *p.AssistantMessage:
				t.Errorf("%s: %T", tt.name, b)
			}
		}
		if _, ok := events[len(events)-1].(*p.TurnEnded); !ok {
			t.Errorf("%s: the turn goes on", tt.name)
		}
	}
}

// If no summary can be had, one is made from the records, and the turn goes on.
func TestLocalSummary(t *testing.T) {
	local := &p.Compacted{Summary: "local", Local: true, Keep: 7}
	for name, err := range map[string]*p.Error{
		"nothing said": nil,
		"refused":      {Kind: p.ErrorRequest, Message: "no"},
		"broken":       {Kind: p.ErrorModel, Message: "no"},
	} {
		_, events := take(t, full(), fold(summing()...), ModelDone{Response: 1, Error: err, Summary: " \n"})
		if got, ok := events[2].(*p.Compacted); !ok || *got != *local {
			t.Errorf("%s: %+v", name, events[2])
		}
		same(t, name, []p.Body{&p.ModelRequested{Response: 2}}, events[3:])
		_, events = take(t, full(), fold(compacting()...), ModelDone{Response: 1, Error: err})
		same(t, name+", compacting only", []p.Body{local, ended(p.Completed)}, events[2:])
	}
}

func TestCompactionIsRetried(t *testing.T) {
	s, events := steps(t, fold(compacting()...), ModelDone{Response: 1, Error: broken()}, RetryDue{})
	same(t, "again", []p.Body{&p.ModelRequested{Response: 2, Compact: true}}, events)
	_, events = steps(t, s, ModelDone{Response: 2, Summary: "whole"})
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
	same(t, "retry", []p.Body{&p.ModelRequested{Response: 2, Compact: true}}, events)
	s, events = steps(t, s, ModelDone{Response: 2, Summary: "gist"})
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

// A history that is about to be too long is summed up before the next request,
// wherever the turn is and as often as needed; then it goes on, with what was steered in meanwhile.
func TestSummingUpInATurn(t *testing.T) {
	s, events := take(t, full(), State{}, User{Content: p.Text("go")})
	same(t, "at the start", summing(), events)
	if !s.Compacting() {
		t.Error("it does not say that it asks for a summary")
	}
	s, _ = steps(t, s, say(p.Steer, "x"))
	for n := 2; n < 20; n += 3 {
		s, events = take(t, full(), s, ModelDone{Response: n - 1, Summary: "gist"})
		same(t, "it goes on", []p.Body{&p.ModelEnded{Response: n - 1}, &p.Compacted{Summary: "gist", Keep: 7}}, events[:2])
		if r, ok := events[len(events)-1].(*p.ModelRequested); !ok || r.Compact || r.Response != n {
			t.Fatalf("%+v", events)
		}
		if s.Compacting() {
			t.Error("it still asks for a summary")
		}
		s, _ = steps(t, s, ModelItem{Response: n, Body: &p.ToolCall{WireID: "w", Name: "work"}}, ModelDone{Response: n})
		s, events = take(t, full(), s, ToolDone{Output: p.ToolOutput{Call: id(1, n, 0), Elapsed: 1}})
		same(t, "and again", []p.Body{&p.ToolOutput{Call: id(1, n, 0), Elapsed: 1}, &p.ModelRequested{Response: n + 1, Compact: true}}, events)
		s, _ = take(t, full(), s, ModelDone{Response: n + 1, Error: broken()})
		s, _ = take(t, full(), s, RetryDue{})
	}
}

func TestSummingUpBetweenCalls(t *testing.T) {
	s := fold(with(toolRuns(), accepted(2, p.Steer))...)
	s, events := take(t, full(), s, ToolDone{Output: p.ToolOutput{Call: id(1, 1, 0), Elapsed: 1}})
	same(t, "what was steered in waits for the request after it", []p.Body{
		&p.ToolOutput{Call: id(1, 1, 0), Elapsed: 1}, &p.ModelRequested{Response: 2, Compact: true},
	}, events)
	s, events = steps(t, s, ModelDone{Response: 2, Error: broken()}, RetryDue{})
	same(t, "a retry asks for the summary again", []p.Body{&p.ModelRequested{Response: 3, Compact: true}}, events)
	_, events = steps(t, s, ModelDone{Response: 3, Summary: "gist"})
	same(t, "and goes on", []p.Body{
		&p.ModelEnded{Response: 3}, &p.Compacted{Summary: "gist"},
		&p.UserMessage{Item: id(1, 0, 1), Input: 2, Content: p.Text("m2")}, &p.ModelRequested{Response: 4},
	}, events)
}

// With nothing new to summarise, what is too long is shortened in the request.
func TestNothingToSummarise(t *testing.T) {
	e := full()
	e.Room.Grown, e.Room.Size = false, func(...[]p.Content) int64 { return 20_000 }
	_, events := take(t, e, State{}, User{Content: p.Text("go")})
	if r := events[2].(*p.ModelRequested); r.Compact || r.Limit != threshold(10_000) {
		t.Errorf("%+v", r)
	}
}

// What the service refuses for its length is made shorter until it fits; the window
// that it names, or that follows from the refusal, is recorded.
func TestTooLongForTheService(t *testing.T) {
	e := full()
	s, events := take(t, e, fold(started()...), ModelDone{Response: 1, Error: tooLong()})
	if got := events[0].(*p.ModelEnded).Error.Window; got != 7200 { // nine tenths of what was sent
		t.Errorf("the window is %d", got)
	}
	same(t, "too long", []p.Body{
		&p.Notice{Text: "the conversation is too long for the model; summarising it"},
		&p.ModelRequested{Response: 2, Compact: true, Limit: 5580},
	}, events[1:])
	last := int64(5580)
	for n := 2; s.Compacting(); n++ {
		s, events = take(t, e, s, ModelDone{Response: n, Error: tooLong()})
		r := events[len(events)-1].(*p.ModelRequested)
		if r.Compact && r.Limit >= last || n > 20 {
			t.Fatalf("request %d is not shorter: %+v", n, r)
		}
		last = r.Limit
	}
	if c, ok := events[len(events)-2].(*p.Compacted); !ok || !c.Local {
		t.Errorf("no summary from the records: %+v", events)
	}
	named := tooLong()
	named.Window = 4000
	_, events = take(t, e, fold(started()...), ModelDone{Response: 1, Error: named})
	if got := events[0].(*p.ModelEnded).Error.Window; got != 4000 {
		t.Errorf("the window is %d, want what the service said", got)
	}
	if r := events[2].(*p.ModelRequested); r.Limit != threshold(4000) {
		t.Errorf("%+v", r)
	}
}

// When even a summary does not help, the request itself is shortened, and given up in the end.
func TestTooLongAlthoughSummedUp(t *testing.T) {
	e := full()
	s, _ := take(t, e, fold(summing()...), ModelDone{Response: 1, Summary: "gist"})
	limits := 0
	for n := 2; s.Active; n++ {
		var events []p.Body
		s, events = take(t, e, s, ModelDone{Response: n, Error: tooLong()})
		if r, ok := events[len(events)-1].(*p.ModelRequested); ok && !r.Compact && r.Limit > 0 {
			limits++
		}
		if n > 30 {
			t.Fatal("it never gives up")
		}
	}
	if limits < 2 || s.StopError == nil || s.StopError.Kind != p.ErrorContextLength {
		t.Errorf("%d shorter tries, then %v", limits, s.StopError)
	}
}

// No call is taken from a summary, and nothing runs.
func TestCallsInASummary(t *testing.T) {
	for name, given := range map[string][]p.Body{"summing up": summing(), "compacting": compacting()} {
		s, events := steps(t, fold(given...), ModelItem{Response: 1, Index: 1, Body: &p.ToolCall{Name: "work"}})
		same(t, name, nil, events)
		if got := s.OpenCalls(); len(got) != 0 {
			t.Errorf("%s: open calls: %v", name, got)
		}
	}
}

// A summary that is too short for what it replaces is asked for once more; then one is made from the records, with what the model wrote.
func TestShortSummary(t *testing.T) {
	e := full()
	e.Room.LeastSummary = 20
	s := fold(compacting()...)
	s, events := take(t, e, s, ModelDone{Response: 1, Summary: "too short"})
	same(t, "first", []p.Body{
		&p.ModelEnded{Response: 1}, &p.Notice{Text: "the model's summary is too short to continue from; asking for it once more"}, &p.ModelRequested{Response: 2, Compact: true},
	}, events)
	_, events = take(t, e, s, ModelDone{Response: 2, Summary: "this one is long enough"})
	same(t, "second", []p.Body{&p.ModelEnded{Response: 2}, &p.Compacted{Summary: "this one is long enough", Keep: 7}, ended(p.Completed)}, events)
	_, events = take(t, e, s, ModelDone{Response: 2, Summary: "short again"})
	same(t, "short again", []p.Body{
		&p.ModelEnded{Response: 2}, &p.Notice{Text: "the model's summary is too short to continue from; one was made from the records", Warn: true},
		&p.Compacted{Summary: "short again\n\nlocal", Keep: 7, Local: true}, ended(p.Completed),
	}, events)
	_, events = take(t, e, s, ModelDone{Response: 2, Summary: ""})
	if b, ok := events[2].(*p.Compacted); !ok || b.Summary != "local" {
		t.Errorf("nothing: %s", answer(events, nil))
	}
}

package turn

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

func say(mode p.WhenBusy, text string) User { return User{Content: p.Text(text), WhenBusy: mode} }

// inputs lists the messages that wait.
func inputs(s State) []PendingInput { return s.Pending }

func TestMessagesKeepWhatTheyCameWith(t *testing.T) {
	model := "m"
	over := &p.Overrides{Model: &model}
	image := []p.Content{{Type: p.ContentImage, ImageURL: "data:,"}}
	s, events := steps(t, fold(started()...), User{Content: image, WhenBusy: p.Queue, Overrides: over})
	same(t, "accepted", []p.Body{&p.InputAccepted{Input: 2, Mode: p.Queue, Content: image, Overrides: over}}, events)
	if diff := cmp.Diff([]PendingInput{{ID: 2, Mode: p.Queue, Content: image, Overrides: over}}, inputs(s)); diff != "" {
		t.Error(diff)
	}
	if got := s.LastInput; got != 2 {
		t.Errorf("the last message is %d", got)
	}
}

// Messages that were not delivered when a turn completes or fails start the
// turns after it, in their order.
func TestQueueStartsByItself(t *testing.T) {
	for _, tt := range []struct {
		reason p.EndReason
		in     ModelDone
	}{
		{p.Completed, ModelDone{Response: 1}},
		{p.Failed, ModelDone{Response: 1, Error: &p.Error{Kind: p.ErrorAuth}}},
	} {
		s, events := steps(t, fold(started()...), say(p.Queue, "a"), say(p.Queue, "b"), tt.in)
		if end, ok := events[len(events)-1].(*p.TurnEnded); !ok || end.Reason != tt.reason || s.Active {
			t.Fatalf("got %s", answer(events, nil))
		}
		s, events = steps(t, s, Next{})
		same(t, "next", []p.Body{
			&p.TurnStarted{},
			&p.UserMessage{Item: id(2, 0, 0), Input: 2, Content: p.Text("a")},
			&p.ModelRequested{Response: 1},
		}, events)
		s, _ = steps(t, s, ModelDone{Response: 1})
		s, events = steps(t, s, Next{})
		same(t, "the one after", []p.Body{
			&p.TurnStarted{},
			&p.UserMessage{Item: id(3, 0, 0), Input: 3, Content: p.Text("b")},
			&p.ModelRequested{Response: 1},
		}, events)
		if len(s.Pending) != 0 {
			t.Errorf("%v still waits", s.Pending)
		}
	}
}

// A message that was to join a turn that failed first starts the next one.
func TestSteeredIntoAFailure(t *testing.T) {
	s, _ := steps(t, fold(started()...), say(p.Steer, "a"), say(p.Steer, "b"),
		ModelDone{Response: 1, Error: &p.Error{Kind: p.ErrorAuth}}, Next{})
	_, events := steps(t, s, ModelDone{Response: 1})
	same(t, "the other one joins it", []p.Body{
		&p.ModelEnded{Response: 1},
		&p.UserMessage{Item: id(2, 0, 1), Input: 3, Content: p.Text("b")},
		&p.ModelRequested{Response: 2},
	}, events)
}

func TestReplace(t *testing.T) {
	s, _ := steps(t, fold(started()...), say(p.Steer, "a"), say(p.Queue, "b"))
	s, events := steps(t, s, say(p.Replace, "c"))
	same(t, "replace", []p.Body{
		&p.InputAccepted{Input: 4, Mode: p.Replace, Content: p.Text("c"), After: true},
		&p.StopRequested{Reason: p.Replaced},
	}, events)
	s, events = steps(t, s, ModelDone{Response: 1})
	same(t, "end", []p.Body{
		&p.ModelEnded{Response: 1},
		&p.InputReturned{Inputs: []p.ReturnedInput{
			{Input: 2, Mode: p.Steer, Content: p.Text("a"), Stays: true}, {Input: 3, Mode: p.Queue, Content: p.Text("b"), Stays: true},
		}, Left: 2},
		endedReturning(p.Replaced, 2),
	}, events)
	s, events = steps(t, s, Next{})
	same(t, "next", []p.Body{
		&p.TurnStarted{},
		&p.UserMessage{Item: id(2, 0, 0), Input: 4, Content: p.Text("c")},
		&p.ModelRequested{Response: 1},
	}, events)
	if len(s.Pending) != 0 || s.Stopping() {
		t.Errorf("the new turn begins with %v waiting, stopping: %t", s.Pending, s.Stopping())
	}
}

// What arrives after the stop is not handed back: it is for the next turn.
func TestMessagesAfterTheStop(t *testing.T) {
	s, _ := steps(t, fold(started()...), say(p.Queue, "a"), Stop{}, say("", "b"), say(p.Steer, "c"), say(p.Replace, "d"), say(p.Queue, "e"))
	s, events := steps(t, s, ModelDone{Response: 1})
	same(t, "end", []p.Body{
		&p.ModelEnded{Response: 1},
		&p.InputReturned{Inputs: []p.ReturnedInput{{Input: 2, Mode: p.Queue, Content: p.Text("a"), Stays: true}}, Left: 1},
		endedReturning(p.Interrupted, 1),
	}, events)
	s, _ = steps(t, s, Next{})
	want := []PendingInput{
		{ID: 4, Mode: p.Steer, Content: p.Text("c")},
		{ID: 5, Mode: p.Queue, Content: p.Text("d")},
		{ID: 6, Mode: p.Queue, Content: p.Text("e")},
	}
	if diff := cmp.Diff(want, inputs(s)); diff != "" {
		t.Errorf("waiting in the next turn (-want +got):\n%s", diff)
	}
	s, _ = steps(t, s, ModelDone{Response: 1}) // c joins
	_, events = steps(t, s, Stop{}, ModelDone{Response: 2})
	same(t, "they are no longer new when that is stopped", []p.Body{
		&p.ModelEnded{Response: 2},
		&p.InputReturned{Inputs: []p.ReturnedInput{
			{Input: 5, Mode: p.Queue, Content: p.Text("d"), Stays: true}, {Input: 6, Mode: p.Queue, Content: p.Text("e"), Stays: true},
		}, Left: 3},
		endedReturning(p.Interrupted, 3),
	}, events)
}

// After a crash, and when the disk is gone, nobody starts the next turn.
func TestEverythingIsHandedBack(t *testing.T) {
	all := &p.InputReturned{Inputs: []p.ReturnedInput{
		returned(2, p.Steer), returned(3, p.Queue), returned(4, p.Queue), returned(5, p.Steer),
	}, Left: 4}
	waiting := []p.Body{accepted(2, p.Steer), accepted(3, p.Queue)}
	after := []p.Body{acceptedAfter(4, p.Queue), acceptedAfter(5, p.Steer)}
	given := func(stop *p.StopRequested) []p.Body { return with(with(with(started(), waiting...), stop), after...) }
	gone := &p.Error{Kind: p.ErrorJournal, Message: "disk full"}

	for _, tt := range []struct {
		name string
		stop p.StopRequested
		in   Input
	}{
		{"interrupted, then crashed", p.StopRequested{Reason: p.Interrupted}, Lost{Crash: true}},
		{"replaced, then crashed", p.StopRequested{Reason: p.Replaced}, Lost{Crash: true}},
		{"failed, then crashed", p.StopRequested{Reason: p.Failed}, Lost{Crash: true}},
		{"disk full", p.StopRequested{Reason: p.Failed, Error: gone}, ModelDone{Response: 1}},
		{"disk full and workers lost", p.StopRequested{Reason: p.Failed, Error: gone}, Lost{}},
	} {
		s, events := steps(t, fold(given(&tt.stop)...), tt.in)
		same(t, tt.name, []p.Body{
			&p.ModelEnded{Response: 1}, all, &p.TurnEnded{Reason: tt.stop.Reason, Error: tt.stop.Error, Elapsed: now.Sub(t0), Returned: 4},
		}, events)
		if len(s.Pending) != 0 {
			t.Errorf("%s: %v still waits", tt.name, s.Pending)
		}
	}
	s := fold(with(given(&p.StopRequested{Reason: p.Interrupted}), &p.ModelEnded{Response: 1}, ended(p.Interrupted))...)
	same(t, "crashed between two turns", []p.Body{all}, decide(t, s, Lost{Crash: true}))
	same(t, "not crashed", nil, decide(t, s, Lost{}))
}

// Workers that do not stop in time are given up; what arrived after the stop
// still starts the next turn.
func TestLostWorkersKeepWhatArrivedAfter(t *testing.T) {
	s, events := steps(t, fold(stopped(with(toolRuns(), accepted(2, p.Queue)))...), say("", "b"), Lost{})
	same(t, "lost", []p.Body{
		cut(id(1, 1, 0), "the user stopped the turn"),
		&p.InputReturned{Inputs: []p.ReturnedInput{returned(2, p.Queue)}, Left: 1},
		endedReturning(p.Interrupted, 1),
	}, events)
	if len(s.Pending) != 1 || s.Pending[0].ID != 3 {
		t.Errorf("%v waits", s.Pending)
	}
}

func TestEditAndDelete(t *testing.T) {
	busy := with(started(), accepted(2, p.Queue), accepted(3, p.Steer))
	idle := with(busy[:4:4], &p.ModelEnded{Response: 1}, ended(p.Completed)) // 2 is about to start
	for name, given := range map[string][]p.Body{"busy": busy, "about to start": idle, "stopping": stopped(busy)} {
		s := fold(given...)
		edited, events := steps(t, s, Edit{Input: 2, Content: p.Text("other")})
		same(t, name+": edit", []p.Body{&p.InputEdited{Input: 2, Content: p.Text("other")}}, events)
		if got := p.PlainText(edited.Pending[0].Content); got != "other" || edited.Pending[0].Mode != p.Queue {
			t.Errorf("%s: edited to %v", name, edited.Pending[0])
		}
		if got := p.PlainText(s.Pending[0].Content); got != "m2" {
			t.Errorf("%s: the state before says %q now", name, got)
		}
		deleted, events := steps(t, s, Delete{Input: 2})
		back := returned(2, p.Queue)
		back.Deleted, back.Stays = true, false
		same(t, name+": delete", []p.Body{&p.InputReturned{Inputs: []p.ReturnedInput{back}}}, events)
		if len(deleted.Pending) != len(s.Pending)-1 || deleted.input(2) >= 0 {
			t.Errorf("%s: %v still waits", name, deleted.Pending)
		}
	}
}

func TestJoins(t *testing.T) {
	for in, want := range map[*PendingInput]bool{
		{Mode: p.Steer}: true, {Mode: p.Steer, After: true}: false, {Mode: p.Queue}: false, {Mode: p.Replace}: false, {}: false,
	} {
		if got := in.Joins(); got != want {
			t.Errorf("%+v joins: %t", *in, got)
		}
	}
}

// A message is refused alike when a turn runs and when none does.
func TestMessagesThatAreRefused(t *testing.T) {
	for _, s := range []State{{}, fold(started()...)} {
		for want, in := range map[error]User{
			ErrEmpty:         {},
			ErrWhenBusy:      {Content: p.Text("m"), WhenBusy: "later"},
			ErrSteerSettings: {Content: p.Text("m"), WhenBusy: p.Steer, Overrides: &p.Overrides{}},
		} {
			if events, err := s.Decide(env(), in); !errors.Is(err, want) || len(events) > 0 {
				t.Errorf("%+v: got %v and %d events, want %v", in, err, len(events), want)
			}
		}
	}
}

// A message with settings of its own cannot join a turn that has others: it waits for the next one.
func TestMessageWithSettingsQueues(t *testing.T) {
	_, events := steps(t, fold(started()...), User{Content: p.Text("m"), Overrides: &p.Overrides{}})
	same(t, "accepted", []p.Body{&p.InputAccepted{Input: 2, Mode: p.Queue, Content: p.Text("m"), Overrides: &p.Overrides{}}}, events)
}

// A client's own name for a message stays with it, wherever the message goes.
func TestMessagesKeepTheirRef(t *testing.T) {
	_, events := steps(t, State{}, User{Content: p.Text("a"), Ref: "one"})
	if got := events[1].(*p.UserMessage).Ref; got != "one" {
		t.Errorf("the message that starts a turn is called %q", got)
	}
	s, events := steps(t, fold(started()...), User{Content: p.Text("b"), Ref: "two"})
	if got := events[0].(*p.InputAccepted).Ref; got != "two" {
		t.Errorf("the accepted message is called %q", got)
	}
	_, events = steps(t, s, ModelDone{Response: 1})
	same(t, "delivered", []p.Body{
		&p.ModelEnded{Response: 1},
		&p.UserMessage{Item: id(1, 0, 1), Input: 2, Content: p.Text("b"), Ref: "two"},
		&p.ModelRequested{Response: 2},
	}, events)
	_, events = steps(t, s, Stop{}, ModelDone{Response: 1})
	back := &p.InputReturned{Inputs: []p.ReturnedInput{{Input: 2, Mode: p.Steer, Content: p.Text("b"), Ref: "two", Stays: true}}, Left: 1}
	same(t, "returned", []p.Body{back}, events[1:2])
}

// A message that names a turn to join never starts or joins another one.
func TestMessageInto(t *testing.T) {
	into := func(turn p.TurnID) User { return User{Content: p.Text("m"), Into: turn} }
	running := fold(started()...)
	stopping, _ := steps(t, running, Stop{})
	shell, _ := steps(t, State{}, Shell{Command: "ls"})
	compacting, _ := steps(t, State{}, Compact{})
	for name, tt := range map[string]struct {
		state State
		in    User
	}{
		"idle": {State{Turn: 1}, into(1)}, "another turn": {running, into(2)}, "stopping": {stopping, into(1)},
		"a command of the user's": {shell, into(1)}, "compacting": {compacting, into(1)},
	} {
		if events, err := tt.state.decide(env(), tt.in); !errors.Is(err, ErrNotSteerable) || len(events) > 0 {
			t.Errorf("%s: got %s", name, answer(events, err))
		}
	}
	_, events := steps(t, running, into(1))
	same(t, "the turn that runs", []p.Body{&p.InputAccepted{Input: 2, Mode: p.Steer, Content: p.Text("m")}}, events)
}

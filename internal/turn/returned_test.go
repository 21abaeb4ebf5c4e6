package turn

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

// returnedTwo is an idle conversation whose messages 2 and 3 were returned.
func returnedTwo() []p.Body {
	return with(stopped(started()),
		&p.ModelEnded{Response: 1},
		&p.InputReturned{Inputs: []p.ReturnedInput{returned(2, p.Steer), returned(3, p.Queue)}},
		ended(p.Interrupted),
	)
}

func inputsOf(list []p.ReturnedInput) (ids []p.InputID) {
	for _, in := range list {
		ids = append(ids, in.Input)
	}
	return ids
}

// A returned message stays returned, whatever turns follow.
func TestReturnedMessagesStay(t *testing.T) {
	s := fold(returnedTwo()...)
	s.LastInput = 3
	for range 3 {
		s, _ = steps(t, s, User{Content: p.Text("other")}, ModelDone{Response: 1})
		if got := inputsOf(s.Returned); !slices.Equal(got, []p.InputID{2, 3}) {
			t.Fatalf("after turn %d %v are returned", s.Turn, got)
		}
	}
	_, events := steps(t, s, User{Content: p.Text("other")}, ModelDone{Response: 1})
	same(t, "an end", []p.Body{&p.ModelEnded{Response: 1}, endedReturning(p.Completed, 2)}, events)
}

// In what earlier versions recorded, a returned message is done when the next turn starts.
func TestReturnedMessagesOfEarlierVersions(t *testing.T) {
	old, stays := returned(2, p.Queue), returned(3, p.Queue)
	old.Stays = false
	s := fold(with(stopped(started()), &p.ModelEnded{Response: 1}, &p.InputReturned{Inputs: []p.ReturnedInput{old, stays}}, ended(p.Interrupted))...)
	if got := inputsOf(s.Returned); !slices.Equal(got, []p.InputID{2, 3}) {
		t.Errorf("until then, %v are returned", got)
	}
	before := slices.Clone(s.Returned)
	after := s.Evolve(p.Event{Turn: 2, Body: &p.TurnStarted{}})
	if got := inputsOf(after.Returned); !slices.Equal(got, []p.InputID{3}) {
		t.Errorf("then %v are returned", got)
	}
	if diff := cmp.Diff(before, s.Returned); diff != "" {
		t.Errorf("the state before has changed: %s", diff)
	}
}

// What delivers returned messages says so in one batch with itself, in every state in which it is accepted.
func TestSendingReturnedMessages(t *testing.T) {
	busy, stopping := with(returnedTwo(), started()...), stopped(with(returnedTwo(), started()...))
	sent := func(message p.InputID, inputs ...p.InputID) p.Body {
		return &p.ReturnedResolved{Inputs: inputs, As: p.ResolvedSent, Message: message, Left: 2 - len(inputs)}
	}
	accept := func(mode p.WhenBusy, after bool, text ...string) p.Body {
		b := &p.InputAccepted{Input: 4, Mode: mode, After: after}
		for _, t := range text {
			b.Content = append(b.Content, p.Text(t)...)
		}
		return b
	}
	for name, c := range map[string]struct {
		state []p.Body
		in    User
		want  []p.Body
	}{
		"idle": {returnedTwo(), User{Content: p.Text("both"), Returned: []p.InputID{3, 2}}, []p.Body{
			&p.TurnStarted{}, &p.UserMessage{Item: id(2, 0, 0), Input: 4, Content: p.Text("both")}, sent(4, 3, 2), &p.ModelRequested{Response: 1},
		}},
		"idle, as it was": {returnedTwo(), User{Returned: []p.InputID{3}}, []p.Body{
			&p.TurnStarted{}, &p.UserMessage{Item: id(2, 0, 0), Input: 4, Content: p.Text("m3")}, sent(4, 3), &p.ModelRequested{Response: 1},
		}},
		"steer":    {busy, User{Content: p.Text("x"), Returned: []p.InputID{2}}, []p.Body{accept(p.Steer, false, "x"), sent(4, 2)}},
		"queue":    {busy, User{WhenBusy: p.Queue, Returned: []p.InputID{2, 3}}, []p.Body{accept(p.Queue, false, "m2", "m3"), sent(4, 2, 3)}},
		"replace":  {busy, User{WhenBusy: p.Replace, Returned: []p.InputID{2}}, []p.Body{accept(p.Replace, true, "m2"), sent(4, 2), &p.StopRequested{Reason: p.Replaced}}},
		"stopping": {stopping, User{Returned: []p.InputID{2}}, []p.Body{accept(p.Queue, true, "m2"), sent(4, 2)}},
	} {
		s := fold(c.state...)
		s.LastInput = 3
		after, events := steps(t, s, c.in)
		same(t, name, c.want, events)
		for _, gone := range c.in.Returned {
			if slices.Contains(inputsOf(after.Returned), gone) {
				t.Errorf("%s: message %d is still returned", name, gone)
			}
		}
		if _, err := after.decide(env(), c.in); !errors.Is(err, ErrNotReturned) {
			t.Errorf("%s: sent again: %v", name, err)
		}
	}
}

// Of what is not returned, or not any more, nothing is sent, taken or dropped; not even a part.
func TestResolvingReturnedMessages(t *testing.T) {
	for name, state := range map[string][]p.Body{"idle": returnedTwo(), "busy": with(returnedTwo(), started()...), "stopping": stopped(with(returnedTwo(), started()...))} {
		s := fold(state...)
		for _, as := range []p.Resolution{p.ResolvedTaken, p.ResolvedDropped} {
			after, events := steps(t, s, Resolve{Inputs: []p.InputID{3}, As: as})
			same(t, name, []p.Body{&p.ReturnedResolved{Inputs: []p.InputID{3}, As: as, Left: 1}}, events)
			if got := inputsOf(after.Returned); !slices.Equal(got, []p.InputID{2}) {
				t.Errorf("%s: %v are returned", name, got)
			}
			if _, err := after.decide(env(), Resolve{Inputs: []p.InputID{2, 3}, As: as}); !errors.Is(err, ErrNotReturned) {
				t.Errorf("%s: one that is gone: %v", name, err)
			}
		}
		for in, want := range map[string]struct {
			in   Input
			want error
		}{
			"never returned": {Resolve{Inputs: []p.InputID{9}, As: p.ResolvedTaken}, ErrNotReturned},
			"twice":          {Resolve{Inputs: []p.InputID{2, 2}, As: p.ResolvedTaken}, ErrNotReturned},
			"as sent":        {Resolve{Inputs: []p.InputID{2}, As: p.ResolvedSent}, ErrResolution},
			"none":           {Resolve{As: p.ResolvedDropped}, ErrEmptyResolve},
			"send twice":     {User{Content: p.Text("x"), Returned: []p.InputID{2, 2}}, ErrNotReturned},
			"send another":   {User{Content: p.Text("x"), Returned: []p.InputID{2, 1}}, ErrNotReturned},
		} {
			if events, err := s.decide(env(), want.in); !errors.Is(err, want.want) || len(events) > 0 {
				t.Errorf("%s, %s: %s, want %v", name, in, answer(events, err), want.want)
			}
		}
	}
}

// A message that a client deleted is with that client.
func TestDeletedMessagesAreNotReturned(t *testing.T) {
	s, _ := steps(t, fold(with(started(), accepted(2, p.Queue))...), Delete{Input: 2})
	if len(s.Returned) > 0 || len(s.Pending) > 0 {
		t.Errorf("returned %v, waiting %v", s.Returned, s.Pending)
	}
	if fmt.Sprint(s.LastInput) != "2" {
		t.Errorf("the last message is %d", s.LastInput)
	}
}

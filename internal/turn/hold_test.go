package turn

import (
	"errors"
	"testing"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

func limited(after time.Duration) *p.Error {
	return &p.Error{Kind: p.ErrorUsageLimit, Message: "used up", After: after}
}

func held(t *testing.T, on p.OnLimit, err *p.Error) (State, []p.Body) {
	t.Helper()
	e := env()
	e.OnLimit = on
	return take(t, e, fold(started()...), ModelDone{Response: 1, Error: err})
}

// A limit makes the turn wait, whatever else happens, until somebody or the clock ends it.
func TestHold(t *testing.T) {
	s, events := held(t, p.OnLimitHold, limited(time.Hour))
	same(t, "it waits", []p.Body{&p.ModelEnded{Response: 1, Error: limited(time.Hour)}, &p.Held{Error: *limited(time.Hour), Until: now.Add(time.Hour)}}, events)
	if !s.Waiting() || !s.Active {
		t.Errorf("waiting %v, active %v", s.Waiting(), s.Active)
	}
	for name, in := range map[string]Input{"a late item": ModelItem{Response: 1, Body: &p.AssistantMessage{}}, "the clock": HoldDue{}, "a retry": RetryDue{}, "a crash": Lost{Crash: true}, "next": Next{}} {
		if got, err := s.Decide(env(), in); len(got) > 0 || err != nil {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	s, events = steps(t, s, say("", "and this"))
	same(t, "a message waits with it", []p.Body{&p.InputAccepted{Input: 2, Mode: p.Steer, Content: p.Text("and this")}}, events)
	_, events = steps(t, s, TryNow{})
	same(t, "again", []p.Body{
		&p.HoldEnded{}, &p.UserMessage{Item: id(1, 0, 1), Input: 2, Content: p.Text("and this")}, &p.ModelRequested{Response: 2},
	}, events)
	other := &p.Settings{Model: "other"}
	_, events = steps(t, s, TryNow{Settings: other})
	same(t, "with another model", []p.Body{&p.HoldEnded{Settings: other}}, events[:1])
	_, events = steps(t, s, Stop{})
	if e, ok := events[len(events)-1].(*p.TurnEnded); !ok || e.Reason != p.Interrupted {
		t.Errorf("interrupted: %v", events)
	}
	_, events = steps(t, s, say(p.Replace, "no"))
	if e, ok := events[len(events)-1].(*p.TurnEnded); !ok || e.Reason != p.Replaced {
		t.Errorf("replaced: %v", events)
	}
}

func TestHoldThatResumesByItself(t *testing.T) {
	s, events := held(t, p.OnLimitResume, limited(time.Hour))
	if h := events[1].(*p.Held); !h.Resume {
		t.Errorf("%+v", h)
	}
	s, events = steps(t, s, HoldDue{})
	same(t, "due", []p.Body{&p.HoldEnded{}, &p.ModelRequested{Response: 2}}, events)
	e := env()
	e.OnLimit = p.OnLimitResume
	_, events = take(t, e, s, ModelDone{Response: 2, Error: limited(0)})
	if h := events[1].(*p.Held); !h.Until.IsZero() {
		t.Errorf("no time is known: %+v", h)
	}
}

func TestWhatIsALimit(t *testing.T) {
	for name, tt := range map[string]struct {
		err  *p.Error
		on   p.OnLimit
		want string
	}{
		"a plan":                {limited(0), p.OnLimitHold, "held"},
		"a plan, fail":          {limited(time.Hour), p.OnLimitFail, "ended"},
		"a rate":                {&p.Error{Kind: p.ErrorRateLimit, Retry: true, After: 20 * time.Second}, p.OnLimitHold, "retry"},
		"a long wait":           {&p.Error{Kind: p.ErrorRateLimit, Retry: true, After: time.Hour}, p.OnLimitHold, "held"},
		"a long wait, fail":     {&p.Error{Kind: p.ErrorRateLimit, Retry: true, After: time.Hour}, p.OnLimitFail, "ended"},
		"an unavailable server": {&p.Error{Kind: p.ErrorModel, Retry: true, After: 2 * time.Hour}, p.OnLimitHold, "held"},
	} {
		s, _ := held(t, tt.on, tt.err)
		got := "ended"
		switch {
		case s.Hold != nil:
			got = "held"
		case s.Backoff:
			got = "retry"
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	if _, err := fold(started()...).Decide(env(), TryNow{}); !errors.Is(err, ErrNoHold) {
		t.Errorf("no hold: %v", err)
	}
	if _, err := (State{}).Decide(env(), TryNow{}); !errors.Is(err, ErrNoHold) {
		t.Errorf("no turn: %v", err)
	}
}

// A request for a summary that is held asks for the summary again.
func TestHoldInACompaction(t *testing.T) {
	e := env()
	e.OnLimit = p.OnLimitHold
	s, _ := take(t, e, fold(summing()...), ModelDone{Response: 1, Error: limited(0)})
	_, events := steps(t, s, TryNow{})
	same(t, "again", []p.Body{&p.HoldEnded{}, &p.ModelRequested{Response: 2, Compact: true}}, events)
}

// What a service refuses is taken out of the history, one part after the other, once
// each in a turn.
func TestLadder(t *testing.T) {
	refused := func(part p.HistoryPart) *p.Error { return &p.Error{Kind: p.ErrorHistory, Part: part, Message: "no"} }
	for _, tt := range []struct {
		part p.HistoryPart
		want []p.HistoryPart
	}{
		{p.PartReasoning, []p.HistoryPart{p.PartReasoning, p.PartImages, p.PartOutputs}},
		{p.PartImages, []p.HistoryPart{p.PartImages, p.PartOutputs}},
		{p.PartOutputs, []p.HistoryPart{p.PartOutputs}},
	} {
		s := fold(started()...)
		var events []p.Body
		for i, want := range tt.want {
			s, events = steps(t, s, ModelDone{Response: i + 1, Error: refused(tt.part)})
			same(t, "taken out", []p.Body{&p.HistoryReduced{Part: want}, &p.Notice{Text: rungText[want], Warn: true}, &p.ModelRequested{Response: i + 2}}, events[1:])
		}
		s, _ = steps(t, s, ModelDone{Response: len(tt.want) + 1, Error: refused(tt.part)})
		if s.Active || s.StopReason != p.Failed {
			t.Errorf("%s: after the last rung the turn is %v %s", tt.part, s.Active, s.StopReason)
		}
	}
}

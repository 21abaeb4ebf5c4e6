package turn

import (
	"errors"
	"testing"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

func TestElicitation(t *testing.T) {
	call := id(1, 1, 0)
	s := fold(with(answered("work"), &p.CallStarted{Call: call})...)
	ask := func(n int) *p.ElicitationRequested {
		return &p.ElicitationRequested{Call: call, Number: n, Server: "s", Message: "who?"}
	}
	s, events := steps(t, s, Elicit{p.ElicitationRequested{Call: call, Server: "s", Message: "who?"}})
	same(t, "asked", []p.Body{ask(1)}, events)
	s, events = steps(t, s, Elicit{p.ElicitationRequested{Call: call, Server: "s", Message: "who?"}})
	same(t, "asked again", []p.Body{ask(2)}, events)

	answer := p.AnswerElicitation{Call: call, Number: 1, Action: p.ElicitationAccept, Content: []byte(`{"name":"me"}`)}
	s, events = steps(t, s, Elicited{answer})
	same(t, "answered", []p.Body{&p.ElicitationResolved{Call: call, Number: 1, Action: p.ElicitationAccept, Content: []byte(`{"name":"me"}`)}}, events)
	if _, err := s.decide(env(), Elicited{answer}); !errors.Is(err, ErrNoElicitation) {
		t.Errorf("answered twice: %v", err)
	}
	cancelled := &p.ElicitationResolved{Call: call, Number: 2, Action: p.ElicitationCancel}
	_, events = steps(t, s, ToolDone{Output: p.ToolOutput{Call: call, Output: "x"}})
	same(t, "the call ends", []p.Body{cancelled, &p.ToolOutput{Call: call, Output: "x", Elapsed: 2 * time.Second}, &p.ModelRequested{Response: 2}}, events)

	_, events = steps(t, s, Lost{Crash: true})
	same(t, "a crash", []p.Body{&p.StopRequested{Reason: p.Crashed}, cancelled, cut(call, "the program was killed"), ended(p.Crashed)}, events)

	stopping, _ := steps(t, s, Stop{})
	second := p.AnswerElicitation{Call: call, Number: 2, Action: p.ElicitationDecline}
	if _, err := stopping.decide(env(), Elicited{second}); !errors.Is(err, ErrNoElicitation) {
		t.Errorf("answered while stopping: %v", err)
	}
	if _, err := stopping.decide(env(), Elicit{*ask(0)}); !errors.Is(err, ErrStopping) {
		t.Errorf("asked while stopping: %v", err)
	}
	_, events = steps(t, stopping, ToolDone{Output: p.ToolOutput{Call: call, Aborted: true}})
	if len(events) != 3 || events[0].(*p.ElicitationResolved).Action != p.ElicitationCancel {
		t.Errorf("stopped: %v", events)
	}
}

func TestElicitationsThatMakeNoSense(t *testing.T) {
	call := id(1, 1, 0)
	runs := fold(with(answered("work"), &p.CallStarted{Call: call}, &p.ElicitationRequested{Call: call, Number: 1})...)
	for name, in := range map[string]Input{
		"another call":    Elicit{p.ElicitationRequested{Call: id(1, 1, 7)}},
		"another number":  Elicited{p.AnswerElicitation{Call: call, Number: 2, Action: p.ElicitationDecline}},
		"no action":       Elicited{p.AnswerElicitation{Call: call, Number: 1}},
		"no object":       Elicited{p.AnswerElicitation{Call: call, Number: 1, Action: p.ElicitationAccept, Content: []byte("[]")}},
		"null":            Elicited{p.AnswerElicitation{Call: call, Number: 1, Action: p.ElicitationAccept, Content: []byte("null")}},
		"content with no": Elicited{p.AnswerElicitation{Call: call, Number: 1, Action: p.ElicitationDecline, Content: []byte("{}")}},
	} {
		if events, err := runs.decide(env(), in); err == nil {
			t.Errorf("%s: %v", name, events)
		}
	}
	for _, in := range []Input{Elicit{}, Elicited{}} {
		if _, err := (State{}).decide(env(), in); !errors.Is(err, ErrNoElicitation) {
			t.Errorf("idle: %v", err)
		}
	}
}

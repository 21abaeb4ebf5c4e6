package fold_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/fold"
	p "github.com/fermata-agent/fermata/protocol"
)

func by(op string) p.Cause { return p.Cause{Client: "test", Op: op} }

// batches folds events, numbered from 1, and returns the state.
func batches(events ...p.Event) *fold.State {
	s := fold.New()
	for i, e := range events {
		e.Seq = p.Seq(i + 1)
		s.Evolve(e)
	}
	return s
}

// The state knows which ops were recorded, and what was answered to each.
func TestDoneOps(t *testing.T) {
	s := batches(
		p.Event{Body: &p.ConversationStarted{ID: "c"}},
		// a message that starts a turn, with settings of its own
		p.Event{Body: &p.Configured{Cause: by("start")}},
		p.Event{Turn: 1, Body: &p.TurnStarted{Cause: by("start")}},
		p.Event{Turn: 1, Body: &p.UserMessage{Input: 1, Content: p.Text("go"), Cause: by("start")}},
		p.Event{Turn: 1, Body: &p.ModelRequested{Response: 1}},
		// messages that wait
		p.Event{Turn: 1, Body: &p.InputAccepted{Input: 2, Mode: p.Steer, Content: p.Text("more"), Cause: by("steer")}},
		p.Event{Turn: 1, Body: &p.InputAccepted{Input: 3, Mode: p.Queue, Content: p.Text("then"), Cause: by("queue")}},
		p.Event{Turn: 1, Body: &p.InputAccepted{Input: 4, Mode: p.Replace, After: true, Content: p.Text("no"), Cause: by("replace")}},
		p.Event{Turn: 1, Body: &p.StopRequested{Reason: p.Replaced, Cause: by("replace")}},
		p.Event{Turn: 1, Body: &p.TurnEnded{Reason: p.Replaced}},
		p.Event{Body: &p.Renamed{Title: "t", Cause: by("rename")}},
		p.Event{Body: &p.Renamed{Title: "u", Cause: p.Cause{Client: "test"}}}, // of a client that gave it no name
	)
	want := map[string]p.Receipt{
		"start":   {Turn: 1, Seq: 1, Input: 1, State: p.TakenStarted},
		"steer":   {Turn: 1, Seq: 5, Input: 2, State: p.TakenSteered},
		"queue":   {Turn: 1, Seq: 6, Input: 3, State: p.TakenQueued},
		"replace": {Turn: 1, Seq: 7, Input: 4, State: p.TakenQueued},
		"rename":  {Turn: 1, Seq: 10},
	}
	data, err := s.Save()
	if err != nil {
		t.Fatal(err)
	}
	restored, err := fold.Restore(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*fold.State{"folded": s, "restored": restored} {
		got := map[string]p.Receipt{}
		for _, op := range s.Ops {
			if r, done := s.Done(op.Name); done {
				got[op.Name] = r
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: ops (-want +got):\n%s", name, d)
		}
		for _, name := range []string{"", "unknown", "star"} {
			if r, done := s.Done(name); done || r != (p.Receipt{}) {
				t.Errorf("op %q was never recorded, and is done: %+v", name, r)
			}
		}
	}
}

// The latest ops are remembered, not all that ever were.
func TestOldOpsAreForgotten(t *testing.T) {
	const remembered = 64
	s := fold.New()
	for i := range 3 * remembered {
		s.Evolve(p.Event{Seq: p.Seq(i + 1), Body: &p.Renamed{Title: "t", Cause: by(fmt.Sprint("op-", i))}})
	}
	for i := range 3 * remembered {
		if _, done := s.Done(fmt.Sprint("op-", i)); done != (i >= 2*remembered) {
			t.Errorf("op %d of %d is remembered: %v", i, 3*remembered, done)
		}
	}
}

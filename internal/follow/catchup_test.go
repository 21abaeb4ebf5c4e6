package follow_test

import (
	"context"
	"iter"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/follow"
	p "github.com/fermata-agent/fermata/protocol"
)

// recorded is an engine that has some events and nothing else.
type recorded struct {
	engine.Engine
	events []p.Event
}

func (r recorded) Subscribe(_ context.Context, _ p.ConversationID, _ p.Cursor) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		for _, e := range r.events {
			if !yield(e, nil) {
				return
			}
		}
		panic("it waits for what comes later")
	}
}

// Of the turn that is joined, the start and the calls without an answer are given, in order.
func TestCatchUp(t *testing.T) {
	call := func(n int) p.CallID { return p.CallID{Turn: 2, Response: 1, Index: n} }
	bodies := []struct {
		turn p.TurnID
		body p.Body
		want bool
	}{
		{1, &p.TurnStarted{}, false},
		{1, &p.ToolCall{Call: p.CallID{Turn: 1, Response: 1}}, false},
		{2, &p.TurnStarted{}, true},
		{2, &p.AssistantMessage{}, false},
		{2, &p.ToolCall{Call: call(1)}, false},
		{2, &p.ToolCall{Call: call(2)}, true},
		{2, &p.CommandStarted{Call: call(1)}, false},
		{2, &p.CommandStarted{Call: call(2)}, true},
		{2, &p.ToolOutput{Call: call(1)}, false},
		{2, &p.InputAccepted{}, false},
		{2, &p.CommandStarted{Call: call(3)}, false}, // after our message
	}
	var r recorded
	var want []p.Seq
	for i, b := range bodies {
		r.events = append(r.events, p.Event{Seq: p.Seq(i + 1), Turn: b.turn, Body: b.body})
		if b.want {
			want = append(want, p.Seq(i+1))
		}
	}
	got := follow.CatchUp(t.Context(), r, "", 2, p.Seq(len(bodies)-1))
	if len(got) != len(want) {
		t.Fatalf("got %d events, want %v", len(got), want)
	}
	for i, e := range got {
		if e.Seq != want[i] {
			t.Errorf("event %d is number %d, want %d", i, e.Seq, want[i])
		}
	}
}

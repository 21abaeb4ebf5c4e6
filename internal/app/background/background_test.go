package background

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// conversations has one, which a process on another machine has open.
type conversations struct {
	killed bool
	looks  int // after the kill
	ops    []p.Op
}

func (c *conversations) Owner(context.Context, p.ConversationID) (engine.Owner, bool, error) {
	return engine.Owner{PID: 7, Host: "far away", Node: "fermata.node.x"}, true, nil
}

func (c *conversations) Read(context.Context, p.ConversationID) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		yield(p.Event{Seq: 1, Turn: 1, Body: &p.BackgroundStarted{ID: 1, Command: []string{"serve"}}}, nil)
	}
}

func (c *conversations) Submit(_ context.Context, _ p.ConversationID, op p.Op) (p.Receipt, error) {
	c.ops = append(c.ops, op)
	if c.killed {
		return p.Receipt{}, engine.ErrNoBackground
	}
	c.killed = true
	return p.Receipt{}, nil
}

func (c *conversations) Resume(context.Context, p.ConversationID) (p.Snapshot, error) {
	if c.looks++; c.looks < 3 {
		return p.Snapshot{Background: []p.BackgroundStarted{{ID: 1}}}, nil
	}
	return p.Snapshot{}, nil
}

func (c *conversations) Shutdown(context.Context) error { return nil }

// A command on another machine counts as running while its owner lives, and its owner ends it.
func TestCommandOnAnotherMachine(t *testing.T) {
	c := &conversations{}
	list, err := List(t.Context(), c, "x")
	if err != nil || len(list) != 1 || !list[0].Running() {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := Kill(t.Context(), c, "x", list[0]); err != nil || c.looks < 3 || len(c.ops) != 1 || c.ops[0] != (p.KillBackground{ID: 1}) {
		t.Errorf("%v after %d looks: %v", c.ops, c.looks, err)
	}
	if err := Kill(t.Context(), c, "x", list[0]); !errors.Is(err, engine.ErrNoBackground) {
		t.Errorf("the second time: %v", err)
	}
}

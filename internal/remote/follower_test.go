package remote

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// A cancelledEngine has its conversation moved while it is read, and says only that it was cancelled.
type cancelledEngine struct {
	engine.Engine
	move func()
}

func (e cancelledEngine) Attach(ctx context.Context, _ p.ConversationID, _ p.Cursor, _ func()) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		e.move()
		yield(p.Event{}, ctx.Err())
	}
}

// A client whose conversation moves is moved, whatever error the engine that it was read from ends with.
func TestMoveWhileReading(t *testing.T) {
	c := NewRouter(nil, nil, Options{})
	f := &follower{router: c, id: "c", yield: func(p.Event, error) bool { return true }}
	err := f.read(t.Context(), cancelledEngine{move: func() { c.note("c", "there") }}, "")
	if !errors.Is(err, errMoved) {
		t.Errorf("error %v, want %v", err, errMoved)
	}
}

package enginetest

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Faulty engine has a defect: while Broken is set, it panics in the goroutine of whoever lists conversations, or
// opens, uses or follows the conversation ID.
type Faulty struct {
	engine.Engine
	Broken atomic.Bool
	ID     p.ConversationID
}

func (f *Faulty) fail(id p.ConversationID) {
	if f.Broken.Load() && (id == f.ID || id == "") {
		panic("a defect")
	}
}

// List panics.
func (f *Faulty) List(ctx context.Context, o engine.ListOptions) (engine.Page, error) {
	f.fail("")
	return f.Engine.List(ctx, o)
}

// Resume panics.
func (f *Faulty) Resume(ctx context.Context, id p.ConversationID) (engine.Snapshot, error) {
	f.fail(id)
	return f.Engine.Resume(ctx, id)
}

// Submit panics.
func (f *Faulty) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	f.fail(id)
	return f.Engine.Submit(ctx, id, op)
}

// Fork panics.
func (f *Faulty) Fork(ctx context.Context, id p.ConversationID, upTo p.Seq) (p.ConversationID, error) {
	f.fail(id)
	return f.Engine.Fork(ctx, id, upTo)
}

// Archive panics.
func (f *Faulty) Archive(ctx context.Context, id p.ConversationID) error {
	f.fail(id)
	return f.Engine.Archive(ctx, id)
}

// Attach panics.
func (f *Faulty) Attach(ctx context.Context, id p.ConversationID, after p.Cursor, live func()) iter.Seq2[p.Event, error] {
	return f.follow(id, f.Engine.Attach(ctx, id, after, live))
}

// Subscribe panics.
func (f *Faulty) Subscribe(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error] {
	return f.follow(id, f.Engine.Subscribe(ctx, id, after))
}

func (f *Faulty) follow(id p.ConversationID, events iter.Seq2[p.Event, error]) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		f.fail(id)
		events(func(e p.Event, err error) bool {
			f.fail(id)
			return yield(e, err)
		})
	}
}

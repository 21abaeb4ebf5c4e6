package remote

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// withNewID sets the id of a new conversation here, so that there is one also if it has to be asked for again.
func withNewID(ctx context.Context) context.Context {
	if engine.NewIDOf(ctx) != "" {
		return ctx
	}
	return engine.WithNewID(ctx, p.NewConversationID(time.Now()))
}

// Create implements engine.Engine.
func (r *Router) Create(ctx context.Context, s p.Settings) (id p.ConversationID, err error) {
	ctx = withNewID(ctx)
	err = r.use(ctx, "", func(e engine.Engine) (err error) {
		id, err = e.Create(ctx, s)
		return err
	})
	return id, err
}

// Fork implements engine.Engine.
func (r *Router) Fork(ctx context.Context, id p.ConversationID, upTo p.Seq) (fork p.ConversationID, err error) {
	ctx = withNewID(ctx)
	err = r.use(ctx, "", func(e engine.Engine) (err error) {
		fork, err = e.Fork(ctx, id, upTo)
		return err
	})
	return fork, err
}

// Archive implements engine.Engine. It does nothing to what is archived already.
func (r *Router) Archive(ctx context.Context, id p.ConversationID) error {
	return r.use(ctx, id, func(e engine.Engine) error { return e.Archive(ctx, id) })
}

// Delete implements engine.Engine. A conversation that is not there after an answer was lost has been deleted.
func (r *Router) Delete(ctx context.Context, id p.ConversationID) error {
	lost := false
	return r.use(ctx, id, func(e engine.Engine) error {
		err := e.Delete(ctx, id)
		if lost && errors.Is(err, engine.ErrNotFound) {
			return nil
		}
		lost = lost || errors.Is(err, ErrLost)
		return err
	})
}

// List implements engine.Engine. What other processes have open is in the same store.
func (r *Router) List(ctx context.Context, o engine.ListOptions) (engine.Page, error) {
	return r.Local.List(ctx, o)
}

// Unarchive implements engine.Engine. No process has an archived conversation open.
func (r *Router) Unarchive(ctx context.Context, id p.ConversationID) error {
	return r.Local.Unarchive(ctx, id)
}

// Release implements engine.Engine. It closes what is open here; another process keeps what it has open.
func (r *Router) Release(ctx context.Context, id p.ConversationID) error {
	return r.Local.Release(ctx, id)
}

// Owner returns the process that has a conversation open, if any.
func (r *Router) Owner(ctx context.Context, id p.ConversationID) (engine.Owner, bool, error) {
	return r.Local.Owner(ctx, id)
}

// Read returns the events of a conversation that are recorded, and does not open it.
func (r *Router) Read(ctx context.Context, id p.ConversationID) iter.Seq2[p.Event, error] {
	return r.Local.Read(ctx, id)
}

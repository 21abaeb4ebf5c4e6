package remote

import (
	"context"
	"errors"
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
func (c *Choosing) Create(ctx context.Context, s p.Settings) (id p.ConversationID, err error) {
	ctx = withNewID(ctx)
	err = c.use(ctx, "", func(e engine.Engine) (err error) {
		id, err = e.Create(ctx, s)
		return err
	})
	return id, err
}

// Fork implements engine.Engine.
func (c *Choosing) Fork(ctx context.Context, id p.ConversationID, upTo p.Seq) (fork p.ConversationID, err error) {
	ctx = withNewID(ctx)
	err = c.use(ctx, "", func(e engine.Engine) (err error) {
		fork, err = e.Fork(ctx, id, upTo)
		return err
	})
	return fork, err
}

// Archive implements engine.Engine. It does nothing to what is archived already.
func (c *Choosing) Archive(ctx context.Context, id p.ConversationID) error {
	return c.use(ctx, id, func(e engine.Engine) error { return e.Archive(ctx, id) })
}

// Delete implements engine.Engine. A conversation that is not there after an answer was lost has been deleted.
func (c *Choosing) Delete(ctx context.Context, id p.ConversationID) error {
	lost := false
	return c.use(ctx, id, func(e engine.Engine) error {
		err := e.Delete(ctx, id)
		if lost && errors.Is(err, engine.ErrNotFound) {
			return nil
		}
		lost = lost || errors.Is(err, ErrLost)
		return err
	})
}

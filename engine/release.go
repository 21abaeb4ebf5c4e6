package engine

import (
	"context"

	p "github.com/fermata-agent/fermata/protocol"
)

// A Releaser is an engine that can let go of one conversation.
type Releaser interface {
	// Release stops and closes a conversation if it is open, so that another process can
	// open it. A turn that only waits for an approval goes on waiting when it is resumed.
	Release(ctx context.Context, id p.ConversationID) error
}

var _ Releaser = (*Local)(nil)

// Release closes a conversation if it is open.
func (l *Local) Release(ctx context.Context, id p.ConversationID) error {
	l.mu.Lock()
	s := l.slots[id]
	l.mu.Unlock()
	if s == nil {
		return nil
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return l.release(ctx, id)
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

type newIDKey struct{}

// WithNewID sets the id of the conversation that is created or forked with the returned context. A caller whose
// answer was lost repeats the request with the same id, and there is one conversation. The id must be a new one, of
// protocol.NewConversationID.
func WithNewID(ctx context.Context, id p.ConversationID) context.Context {
	return context.WithValue(ctx, newIDKey{}, id)
}

// NewIDOf returns the id that WithNewID set, or "".
func NewIDOf(ctx context.Context) p.ConversationID {
	id, _ := ctx.Value(newIDKey{}).(p.ConversationID)
	return id
}

// newID returns the id of a conversation that is to be created: the caller's, or a new one.
func newID(ctx context.Context) (p.ConversationID, error) {
	if id := NewIDOf(ctx); id != "" {
		return p.ParseConversationID(string(id))
	}
	return p.NewConversationID(time.Now()), nil
}

// once creates a conversation, unless an earlier request with the same id has: a whole one has at least so many
// records. What that left unfinished is removed: no client knows of it.
func (l *Local) once(ctx context.Context, id p.ConversationID, records int, create func() error) error {
	err := create()
	if NewIDOf(ctx) == "" || !errors.Is(err, os.ErrExist) {
		return err
	}
	whole, err := l.has(ctx, id, records)
	if whole || err != nil {
		return err
	}
	if err := l.Delete(ctx, id); err != nil {
		return fmt.Errorf("remove what an earlier request left: %w", err)
	}
	return create()
}

// has reports whether a conversation has so many records.
func (l *Local) has(ctx context.Context, id p.ConversationID, records int) (bool, error) {
	v, err := l.view(ctx, id)
	if err != nil {
		return false, err
	}
	defer v.Close()
	recs, err := v.Read(ctx, uint64(records-1), 1)
	return len(recs) > 0, err
}

package nats

import (
	"context"
	"time"

	"github.com/fermata-agent/fermata/internal/journal/nats/provision"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// How often a process that has conversations open looks how full the stream is: with a limit, and without one, which it
// may be given.
const (
	roomAgain      = 2 * time.Second
	unlimitedAgain = time.Minute
)

// lookForRoom looks how full the stream is.
func (s *Store) lookForRoom(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, refusal.ErrNoAnswer)
	defer cancel()
	stream, err := l.js.Stream(ctx, s.o.Name)
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	l.room.Note(provision.LimitOf(info.Config), info.State.Bytes)
	return nil
}

// Room returns a *refusal.FullError if no turn should be begun because the stream is full.
func (s *Store) Room(ctx context.Context) error {
	l, err := s.connect(ctx)
	if err != nil {
		return s.explain(err)
	}
	return s.hasRoom(ctx, l)
}

func (s *Store) hasRoom(ctx context.Context, l *link) error {
	if l.room.Full() == nil {
		return nil
	}
	if err := s.lookForRoom(ctx, l); err != nil { // something may have been deleted
		return err
	}
	return l.room.Full()
}

// watchRoom reports that the stream is full until ctx ends.
func (s *Store) watchRoom(ctx context.Context, l *link) {
	for {
		wait := roomAgain
		if !l.room.IsLimited() {
			wait = unlimitedAgain
		}
		select {
		case <-time.After(wait):
		case <-l.room.Wake:
		case <-ctx.Done():
			return
		}
		if s.lookForRoom(ctx, l) != nil { // the next look may work
			continue
		}
		if err := l.room.Full(); err != nil && s.o.Full != nil {
			s.o.Full(err)
		}
	}
}

package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats/provision"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// Delete implements Store. A message that no other message can follow fences it first.
func (s *Store) Delete(ctx context.Context, id string) error {
	return s.deleteUnless(ctx, id, nil)
}

// ErrBegun says that a conversation was not deleted because of what is recorded in it.
var ErrBegun = errors.New("something is recorded in this conversation")

// DeleteUnless deletes a conversation, or returns ErrBegun if begun reports true of one of its records. What another
// process records meanwhile is looked at, too: nothing is deleted that begun has not seen.
func (s *Store) DeleteUnless(ctx context.Context, id string, begun func(journal.Record) bool) error {
	return s.deleteUnless(ctx, id, begun)
}

func (s *Store) deleteUnless(ctx context.Context, id string, begun func(journal.Record) bool) error {
	err := s.remove(ctx, id, begun)
	if err != nil {
		return fmt.Errorf("delete conversation %s: %w", id, s.explain(err))
	}
	return nil
}

func (s *Store) remove(ctx context.Context, id string, begun func(journal.Record) bool) error {
	l, err := s.connect(ctx)
	if err != nil {
		return err
	}
	for {
		m, err := s.free(ctx, l, id)
		if err == nil && begun != nil {
			err = s.refuseBegun(ctx, l, id, m, begun)
		}
		if err != nil {
			return err
		}
		next := m.after()
		next.Epoch, next.Node, next.Begin, next.Closed = m.Epoch+1, s.node, true, true
		fence := func() error { _, err := l.deliver(ctx, s.records(id), next, nil, m.seq); return err }
		if err = fence(); refusal.IsFull(err) {
			s.forget(ctx, l, id) // the account may be full
			err = provision.WithLoan(ctx, l.js, s.o.Name, fence)
		}
		if begun != nil && (refusal.IsConflict(err) || errors.As(err, new(*takenError))) {
			continue // another process was faster
		}
		if err != nil {
			return err
		}
		return s.removeFenced(ctx, l, id)
	}
}

// refuseBegun returns ErrBegun if begun reports true of a record up to a message.
func (s *Store) refuseBegun(ctx context.Context, l *link, id string, to *stored, begun func(journal.Record) bool) error {
	var a assembler
	found := false
	err := l.scan(ctx, s.records(id), 1, to.seq, func(m *stored) bool {
		for _, r := range a.records(m) {
			found = found || begun(r.Record)
		}
		return !found
	})
	if err == nil && found {
		return ErrBegun
	}
	return err
}

// removeFenced deletes what there is of a conversation that no process can open any more.
func (s *Store) removeFenced(ctx context.Context, l *link, id string) error {
	s.forget(ctx, l, id)
	s.forgetTree(ctx, l, id)
	for _, subject := range []string{s.aside(id), s.both(id)} {
		if err := l.purge(ctx, subject, 0); err != nil {
			return err
		}
	}
	return nil
}

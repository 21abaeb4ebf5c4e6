package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
	"github.com/fermata-agent/fermata/internal/journal/nats/wire"
)

// recover makes a journal of a conversation that was taken.
func (s *Store) recover(ctx context.Context, l *link, id string, o opened) (*natsJournal, error) {
	err := s.find(ctx, l, id, &o)
	if err != nil {
		// No other process can open it while the lease lasts: let go of it.
		s.letGo(l, id, o.meta, o.seq, nil)
		return nil, err
	}
	return s.enter(ctx, id, l, o)
}

// find reads what a journal begins with.
func (s *Store) find(ctx context.Context, l *link, id string, o *opened) error {
	var err error
	if o.index, err = l.loadIndex(ctx, id); err != nil {
		return err
	}
	if o.index.seq > o.seq { // of an earlier conversation of this name
		o.index = index{kinds: make(map[string]uint64)}
	}
	if o.index.seq < o.before {
		if err := o.index.catchUp(ctx, l.conn, s.records(id), o.before); err != nil {
			return err
		}
	}
	text, err := s.readText(ctx, l, id, o.seq)
	if err != nil {
		return err
	}
	o.chunks, o.textLeft, o.textSeq = text.chunks(), text.bytes, text.last
	o.places = make(map[string]journal.Place)
	for _, it := range text.items {
		o.places[it.name] = journal.Place{Offset: int64(it.place), Next: 1}
	}
	o.recovery.Checkpoint, o.recovery.CheckpointSeq, err = l.loadCheckpoint(ctx, s.checkpoint(id), o.Last)
	return err
}

// SetAside implements Store. A message that repeats the good part of a batch, if one
// has good and bad records, makes those behind void; then they are moved away.
func (s *Store) SetAside(ctx context.Context, id string, after uint64) error {
	if err := s.setAside(ctx, id, after); err != nil {
		return fmt.Errorf("set aside records of conversation %s: %w", id, s.explain(err))
	}
	return nil
}

func (s *Store) setAside(ctx context.Context, id string, after uint64) error {
	l, err := s.connect(ctx)
	if err != nil {
		return err
	}
	m, err := s.free(ctx, l, id)
	if err != nil || after >= m.Last {
		return err
	}
	bad, good, err := s.behind(ctx, l, id, after, m.seq)
	if err != nil {
		return err
	}
	next := m.after()
	next.Epoch, next.Node, next.Begin, next.Closed, next.Cut, next.Last = m.Epoch+1, s.node, true, true, true, after
	if _, err := l.deliver(ctx, s.records(id), next, wire.EncodeRecords(good), m.seq); err != nil {
		return err
	}
	s.forget(ctx, l, id)
	for _, b := range bad {
		if _, err := l.deliverAside(ctx, s.aside(id), b); err != nil {
			return err
		}
		if err := l.deleteMessage(ctx, b.seq); err != nil {
			return err
		}
	}
	return l.purge(ctx, s.texts(id), 0)
}

// behind returns the messages that hold records after the given number, and those
// records of them that are not.
func (s *Store) behind(ctx context.Context, l *link, id string, after, to uint64) (bad []*stored, good []journal.Pending, err error) {
	var a assembler
	var pieces []*stored
	err = l.scan(ctx, s.records(id), 1, to, func(m *stored) bool {
		recs := a.records(m)
		if pieces = append(pieces, m); m.Pieces > 0 && m.Piece < m.Pieces {
			return true
		}
		if n := len(recs); n > 0 && recs[n-1].Seq > after || m.err != nil {
			bad = append(bad, pieces...)
			for _, r := range recs {
				if r.Seq <= after {
					good = append(good, r)
				}
			}
		}
		pieces = nil
		return true
	})
	return bad, good, err
}

// deliverAside keeps a copy of a message.
func (l *link) deliverAside(ctx context.Context, subject string, m *stored) (uint64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, refusal.ErrNoAnswer)
	defer cancel()
	sent, err := l.send(message(subject, m.meta, m.data))
	if err != nil {
		return 0, err
	}
	return sent.wait(ctx)
}

func (l *link) deleteMessage(ctx context.Context, seq uint64) error {
	stream, err := l.js.Stream(ctx, l.stream)
	if err != nil {
		return err
	}
	return stream.DeleteMsg(ctx, seq)
}

// forget deletes what can be derived again.
func (s *Store) forget(ctx context.Context, l *link, id string) {
	_ = l.checkpoints.purge(ctx, s.checkpoint(id), 0)
	_ = l.index.Purge(ctx, id)
}

var errBadCheckpoint = errors.New("not a checkpoint")

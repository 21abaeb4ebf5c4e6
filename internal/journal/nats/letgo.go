package nats

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// letGoTime is how long a conversation that was given up while it was being opened is tried to be let go of. Afterwards
// it is free when the lease of this process ends.
const letGoTime = time.Minute

// letGo sees to it that a conversation is not open here whose caller has left while the message that begins it was under way:
// that message may be stored, or arrive later. then is called when it is not open; it may be nil. Close waits for it.
func (s *Store) letGo(l *link, id string, begin meta, prev uint64, then func(context.Context)) {
	s.leaving.Go(func() { // ends with the store, or after letGoTime
		ctx, cancel := context.WithTimeout(s.base, letGoTime)
		defer cancel()
		if s.closeBegun(ctx, l, id, begin, prev) && then != nil {
			then(ctx)
		}
	})
}

// closeBegun stores a message that closes the conversation, in place of the one that begins it or behind that. It reports whether
// it has: else another process has the conversation, or this one has opened it again, or the servers do not answer.
func (s *Store) closeBegun(ctx context.Context, l *link, id string, begin meta, prev uint64) bool {
	closed := begin
	closed.Begin, closed.Closed = true, true
	for ctx.Err() == nil {
		_, err := l.deliver(ctx, s.records(id), closed, nil, prev)
		if err == nil {
			return true
		}
		if !refusal.IsConflict(err) && !errors.As(err, new(*takenError)) {
			return false
		}
		m, err := s.lastRecords(ctx, l, id)
		if err != nil || m.Node != s.node || m.Epoch != begin.Epoch || m.Closed || m.seq == prev {
			return false
		}
		prev = m.seq
	}
	return false
}

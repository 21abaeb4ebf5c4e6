package nats

import (
	"context"
	"maps"
	"slices"
)

// beginAgain begins every open conversation once more, with the next epoch: whoever was about to take
// one over is refused from then on, and what was taken over before fails. It returns when
// nothing is open of which that is not known. What is just being opened is left to whoever does: see enter.
func (s *Store) beginAgain(ctx context.Context) error {
	s.mu.Lock()
	s.lapses++
	open := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	return begin(ctx, open)
}

// enter makes a journal of a conversation that was opened. If the lease has ended meanwhile, it is begun again as
// those that were open: another node may have it by now.
func (s *Store) enter(ctx context.Context, id string, l *link, o opened) (*natsJournal, error) {
	j, missed := s.start(id, l, o)
	if !missed {
		return j, nil
	}
	err := begin(ctx, []*natsJournal{j})
	if err == nil {
		err = j.Failure()
	}
	if err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// lapsed returns how often the lease has ended.
func (s *Store) lapsed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lapses
}

// begin begins conversations once more.
func begin(ctx context.Context, open []*natsJournal) error {
	begun := make([]chan struct{}, len(open))
	for i, j := range open {
		begun[i] = make(chan struct{})
		select {
		case j.again <- begun[i]:
		case <-j.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for i, j := range open {
		select {
		case <-begun[i]:
		case <-j.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// sendBegin sends the message that begins the conversation again, behind everything that is
// under way: text of the old epoch would not count behind it.
func (j *natsJournal) sendBegin() {
	w := &j.w
	if w.began || w.texting {
		return
	}
	next := w.meta
	next.Epoch++
	next.Begin, next.Cut = true, false
	b := j.link.newBatch(j.store.records(j.id), next, w.Last, nil, w.seq)
	b.begin()
	w.meta, w.began, w.sending, w.begins = next, true, true, w.again
	go func() { j.saved <- b.finish(j.ctx) }() // buffered: run may have ended
}

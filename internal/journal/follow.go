package journal

import (
	"context"
	"slices"
)

// readBatch bounds what one Next returns, so that a follower that is far behind
// does not have the whole conversation in memory.
const readBatch = 256

// A follower is a cursor: where it is in the records, and in each open item.
type follower struct {
	log   *Log
	after uint64
	seen  []seen // of items that are not gone
}

type seen struct {
	it  *Item
	off int64
}

// Next implements Follower.
func (f *follower) Next(ctx context.Context) ([]Record, []Chunk, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, nil, err
		}
		recs, chunks, wait, err := f.poll(ctx)
		if wait == nil {
			return recs, chunks, err
		}

		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
}

// poll returns what is there, or else a channel that is closed when it pays to
// look again.
func (f *follower) poll(ctx context.Context) ([]Record, []Chunk, <-chan struct{}, error) {
	l := f.log
	l.mu.Lock()
	if l.phase == Dead {
		l.mu.Unlock()
		return nil, nil, nil, ErrClosed
	}
	if f.after < l.visible {
		l.mu.Unlock()
		recs, err := l.read(ctx, f.after, readBatch)
		if len(recs) > 0 {
			f.after = recs[len(recs)-1].Seq
		}
		return recs, nil, nil, err
	}

	fresh := f.fresh()
	var wait chan struct{}
	if len(fresh) == 0 && l.phase != Closed {
		if l.wake == nil {
			l.wake = make(chan struct{})
		}
		wait = l.wake
	}
	l.mu.Unlock()

	var chunks []Chunk
	for _, n := range fresh {
		chunks = append(chunks, join(n.name, n.pieces)...)
	}
	if len(chunks) == 0 && wait == nil {
		return nil, nil, nil, ErrClosed
	}
	return nil, chunks, wait, nil
}

type freshPieces struct {
	name   string
	pieces []Piece
}

// fresh collects, with the log's mutex, what the follower has not seen of the
// first item of each scope. Copying is left for later: bytes do not change.
func (f *follower) fresh() []freshPieces {
	f.seen = slices.DeleteFunc(f.seen, func(s seen) bool { return s.it.gone })
	var all []freshPieces
	for i, it := range f.log.items {
		if slices.ContainsFunc(f.log.items[:i], func(o *Item) bool { return o.scope == it.scope }) {
			continue
		}
		s, end := f.position(it), f.log.shown(it)
		if s.off >= end {
			continue
		}
		if ps := it.pieces(s.off, end); len(ps) > 0 {
			all = append(all, freshPieces{it.name, ps})
		}
		s.off = end
	}
	return all
}

func (f *follower) position(it *Item) *seen {
	i := slices.IndexFunc(f.seen, func(s seen) bool { return s.it == it })
	if i < 0 {
		i = len(f.seen)
		f.seen = append(f.seen, seen{it: it})
	}
	return &f.seen[i]
}

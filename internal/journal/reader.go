package journal

import (
	"context"
	"slices"
)

// readBatch bounds what one Next returns, so that a reader that is far behind
// does not have the whole conversation in memory.
const readBatch = 256

// A reader is a cursor: where it is in the records, and in each open item.
type reader struct {
	log   *Log
	after uint64
	seen  []seen // of items that are not gone
}

type seen struct {
	it  *Item
	off int64
}

// Next implements Reader.
func (r *reader) Next(ctx context.Context) ([]Record, []Chunk, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		recs, chunks, wait, err := r.poll()
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
func (r *reader) poll() ([]Record, []Chunk, <-chan struct{}, error) {
	l := r.log
	l.mu.Lock()
	if l.phase == Dead {
		l.mu.Unlock()
		return nil, nil, nil, ErrClosed
	}
	if r.after < l.visible {
		l.mu.Unlock()
		recs, err := l.read(r.after, readBatch)
		if len(recs) > 0 {
			r.after = recs[len(recs)-1].Seq
		}
		return recs, nil, nil, err
	}

	fresh := r.fresh()
	var wait chan struct{}
	if len(fresh) == 0 && l.phase != Closed {
		if l.wake == nil {
			l.wake = make(chan struct{})
		}
		wait = l.wake
	}
	l.mu.Unlock()

	var chunks []Chunk
	for _, f := range fresh {
		chunks = append(chunks, join(f.name, f.pieces)...)
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

// fresh collects, with the log's mutex, what the reader has not seen of the
// first item of each scope. Copying is left for later: bytes do not change.
func (r *reader) fresh() []freshPieces {
	r.seen = slices.DeleteFunc(r.seen, func(s seen) bool { return s.it.gone })
	var all []freshPieces
	for i, it := range r.log.items {
		if slices.ContainsFunc(r.log.items[:i], func(o *Item) bool { return o.scope == it.scope }) {
			continue
		}
		s := r.position(it)
		if s.off >= it.end {
			continue
		}
		if ps := it.pieces(s.off, it.end); len(ps) > 0 {
			all = append(all, freshPieces{it.name, ps})
		}
		s.off = it.end
	}
	return all
}

func (r *reader) position(it *Item) *seen {
	i := slices.IndexFunc(r.seen, func(s seen) bool { return s.it == it })
	if i < 0 {
		i = len(r.seen)
		r.seen = append(r.seen, seen{it: it})
	}
	return &r.seen[i]
}

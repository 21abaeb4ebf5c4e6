package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/internal/journal"
)

// A view reads a conversation from the stream.
type view struct {
	store *Store
	link  *link
	id    string

	mu    sync.Mutex
	index index              // guarded by mu
	hints *nats.Subscription // nil until a client follows; guarded by mu
	wake  chan struct{}      // closed when there is news; guarded by mu
}

// View implements Store.
func (s *Store) View(ctx context.Context, id string) (journal.View, error) {
	l, err := s.connect(ctx)
	if err == nil {
		_, err = s.lastRecords(ctx, l, id)
	}
	if err != nil {
		return nil, fmt.Errorf("view conversation %s: %w", id, s.explain(err))
	}
	v := &view{store: s, link: l, id: id, wake: make(chan struct{}), index: index{kinds: make(map[string]uint64)}}
	s.mu.Lock()
	s.views[v] = struct{}{}
	s.mu.Unlock()
	return v, nil
}

// Close implements View.
func (v *view) Close() error {
	v.store.mu.Lock()
	delete(v.store.views, v)
	v.store.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.hints == nil {
		return nil
	}
	err := v.hints.Unsubscribe()
	v.hints = nil
	if errors.Is(err, nats.ErrConnectionClosed) {
		return nil
	}
	return err
}

// reconnected wakes all that follow: hints were missed.
func (s *Store) reconnected(*nats.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for v := range s.views {
		v.notify()
	}
}

func (v *view) notify() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.wake)
	v.wake = make(chan struct{})
}

// Read implements Reader.
func (v *view) Read(ctx context.Context, after uint64, limit int) ([]journal.Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	last, err := v.store.lastRecords(ctx, v.link, v.id)
	if err != nil {
		return nil, v.store.explain(err)
	}
	if last.Last <= after {
		return nil, nil
	}
	from, err := v.locate(ctx, last, after)
	if err != nil {
		return nil, v.store.explain(err)
	}
	recs, err := v.read(ctx, span{from, last.seq}, after, last.Last, limit)
	return recs, v.store.explain(err)
}

func (v *view) read(ctx context.Context, sp span, after, upTo uint64, limit int) ([]journal.Record, error) {
	var a assembler
	var recs []journal.Record
	err := v.link.scan(ctx, v.store.records(v.id), sp.from, sp.to, func(m *stored) bool {
		batch := a.records(m)
		v.mu.Lock()
		v.index.add(batch, a.first)
		v.mu.Unlock()
		for _, r := range batch {
			if r.Seq > after && r.Seq <= upTo && len(recs) < limit {
				recs = append(recs, r.Record)
				after = r.Seq
			}
		}
		return len(recs) < limit && after < upTo
	})
	return recs, err
}

// hops is how many messages locate looks at before it reads the index.
const hops = 8

// locate returns a sequence from which on the records after a number are found.
func (v *view) locate(ctx context.Context, last *stored, after uint64) (uint64, error) {
	v.mu.Lock()
	known := v.index.before(after + 1)
	v.mu.Unlock()
	if known > 1 || after == 0 {
		return known, nil
	}
	for m, n := last, 0; n < hops && m.Far != 0; n++ {
		far, err := v.link.at(ctx, m.Far)
		if errors.Is(err, errNoMessage) || err == nil && far.err != nil {
			break
		}
		if err != nil {
			return 0, err
		}
		if far.Last <= after {
			return far.seq, nil
		}
		m = far
	}
	ix, err := v.link.loadIndex(ctx, v.id)
	if err != nil || ix.seq > last.seq {
		return 1, err
	}
	return ix.before(after + 1), nil
}

// Tail implements View.
func (v *view) Tail(ctx context.Context, limit int) ([]journal.Record, error) {
	last, err := v.store.lastRecords(ctx, v.link, v.id)
	if err != nil || limit <= 0 || last.Last == 0 {
		return nil, v.store.explain(err)
	}
	after := last.Last - min(last.Last, uint64(limit))
	from, err := v.locate(ctx, last, after)
	if err != nil {
		return nil, v.store.explain(err)
	}
	recs, err := v.read(ctx, span{from, last.seq}, after, last.Last, limit)
	return recs, v.store.explain(err)
}

// Last implements View.
func (v *view) Last(ctx context.Context, kind string) (rec journal.Record, ok bool, err error) {
	last, err := v.store.lastRecords(ctx, v.link, v.id)
	if err != nil {
		return rec, false, v.store.explain(err)
	}
	ix, err := v.link.loadIndex(ctx, v.id)
	if err != nil {
		return rec, false, v.store.explain(err)
	}
	from := uint64(1)
	if ix.seq <= last.seq {
		from = ix.seq + 1
	}
	rec, ok, err = v.lastIn(ctx, kind, span{from, last.seq})
	if ok || err != nil || from == 1 {
		return rec, ok, v.store.explain(err)
	}
	at, known := ix.kinds[kind]
	if !known {
		return rec, false, nil
	}
	rec, ok, err = v.lastIn(ctx, kind, span{at, ix.seq})
	return rec, ok, v.store.explain(err)
}

// lastIn returns the last record of a kind in a span that begins with a whole batch.
func (v *view) lastIn(ctx context.Context, kind string, sp span) (rec journal.Record, ok bool, err error) {
	var a assembler
	err = v.link.scan(ctx, v.store.records(v.id), sp.from, sp.to, func(m *stored) bool {
		for _, r := range a.records(m) {
			if r.Kind == kind {
				rec, ok = r.Record, true
			}
		}
		return true
	})
	return rec, ok, err
}

// OpenItems implements Reader.
func (v *view) OpenItems(ctx context.Context) ([]journal.Chunk, error) {
	last, err := v.link.last(ctx, v.store.both(v.id))
	if errors.Is(err, errNoMessage) {
		err = journal.ErrNotFound
	}
	if err != nil {
		return nil, v.store.explain(err)
	}
	text, err := v.store.readText(ctx, v.link, v.id, last.seq)
	return journal.JoinChunks(text.chunks()), v.store.explain(err)
}

// Check implements View.
func (v *view) Check(ctx context.Context) ([]journal.Fault, error) {
	last, err := v.store.lastRecords(ctx, v.link, v.id)
	if err != nil {
		return nil, v.store.explain(err)
	}
	var faults []journal.Fault
	report := func(m *stored, format string, args ...any) {
		faults = append(faults, journal.Fault{Offset: int64(m.seq), Text: fmt.Sprintf("message %d: ", m.seq) + fmt.Sprintf(format, args...)})
	}
	var a assembler
	next, prev := uint64(1), uint64(0)
	err = v.link.scan(ctx, v.store.records(v.id), 1, last.seq, func(m *stored) bool {
		known := len(a.faults)
		recs := a.records(m)
		for _, f := range a.faults[known:] {
			report(m, "%s", f)
		}
		if m.err == nil && m.Prev != prev && !m.Cut {
			report(m, "the message before it is missing")
		}
		if m.Cut {
			next = min(next, m.Last+1)
			if len(recs) > 0 {
				next = min(next, recs[0].Seq)
			}
		}
		prev = m.seq
		for _, r := range recs {
			if r.Seq != next {
				report(m, "record %d where %d is due", r.Seq, next)
			}
			next = r.Seq + 1
		}
		return true
	})
	if err == nil && next != last.Last+1 {
		report(last, "it counts %d records, there are %d", last.Last, next-1)
	}
	return faults, v.store.explain(err)
}

// followPoll is how often a follower looks without a hint, which may be lost.
const followPoll = 5 * time.Second

// Follow implements Reader.
func (v *view) Follow(after uint64) journal.Follower {
	return &follower{view: v, after: after, given: make(map[string]int64)}
}

// A follower reads records and text in the order of the stream.
type follower struct {
	view  *view
	after uint64 // the last record returned
	pos   uint64 // the last message read; 0 before the first
	a     assembler
	text  openText
	given map[string]int64 // how much of each open item was returned
}

// Next implements Follower.
func (f *follower) Next(ctx context.Context) ([]journal.Record, []journal.Chunk, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, nil, err
		}
		wake, err := f.view.watch()
		if err != nil {
			return nil, nil, f.view.store.explain(err)
		}
		recs, err := f.read(ctx)
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if err != nil || len(recs) > 0 {
			return recs, nil, f.view.store.explain(err)
		}
		if chunks := f.fresh(); len(chunks) > 0 {
			return nil, chunks, nil
		}
		select {
		case <-wake:
		case <-time.After(followPoll):
		case <-ctx.Done():
		}
	}
}

// watch returns a channel that is closed at the next hint.
func (v *view) watch() (<-chan struct{}, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.hints == nil {
		var err error
		v.hints, err = v.link.nc.Subscribe(v.store.hints(v.id), func(*nats.Msg) { v.notify() })
		if err != nil {
			return nil, err
		}
	}
	return v.wake, nil
}

// read returns new records, at most about a batch of them.
func (f *follower) read(ctx context.Context) ([]journal.Record, error) {
	v := f.view
	last, err := v.link.last(ctx, v.store.both(v.id))
	if errors.Is(err, errNoMessage) {
		return nil, journal.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	if f.pos == 0 {
		if err := f.begin(ctx); err != nil {
			return nil, err
		}
	}
	var recs []journal.Record
	err = v.link.scan(ctx, v.store.both(v.id), f.pos+1, last.seq, func(m *stored) bool {
		f.pos = m.seq
		if m.isText() {
			f.text.add(m, f.a.texts(m))
			return true
		}
		batch := f.a.records(m)
		f.text.close(batch, m.seq)
		for _, r := range batch {
			if r.Seq > f.after {
				recs = append(recs, r.Record)
				f.after = r.Seq
			}
		}
		return len(recs) < 256
	})
	return recs, err
}

// begin finds the first message to read: before the records wanted, and before the
// text that is open.
func (f *follower) begin(ctx context.Context) error {
	v := f.view
	last, err := v.store.lastRecords(ctx, v.link, v.id)
	if err != nil {
		return err
	}
	from := last.seq
	if last.Last > f.after || last.Pieces > 0 {
		if from, err = v.locate(ctx, last, f.after); err != nil {
			return err
		}
	}
	first, err := v.link.first(ctx, 1, v.store.texts(v.id))
	if err == nil && first.err == nil {
		from = min(from, max(first.Prev, 1))
	} else if err != nil && !errors.Is(err, errNoMessage) {
		return err
	}
	f.pos = from - 1
	if f.pos == 0 { // 0 would begin again; the first message of a stream is never text
		m, err := v.link.first(ctx, 1, v.store.records(v.id))
		if err != nil {
			return err
		}
		f.pos = m.seq - 1
	}
	return nil
}

// fresh returns text that was not returned.
func (f *follower) fresh() []journal.Chunk {
	var all []journal.Chunk
	for _, it := range f.text.items {
		from := f.given[it.name]
		for _, c := range it.chunks {
			end := c.Offset + int64(len(c.Text))
			if end <= from {
				continue
			}
			if skip := from - c.Offset; skip > 0 {
				c.Offset, c.Text = from, c.Text[skip:]
			}
			all = append(all, c)
			from = end
		}
		f.given[it.name] = from
		it.chunks = nil // what was returned is not needed again
	}
	for name := range f.given {
		if !slices.ContainsFunc(f.text.items, func(it *itemText) bool { return it.name == name }) {
			delete(f.given, name)
		}
	}
	return join(all)
}

// join joins adjacent chunks of one tag.
func join(chunks []journal.Chunk) []journal.Chunk {
	var all []journal.Chunk
	for _, c := range chunks {
		if n := len(all); n > 0 && all[n-1].Item == c.Item && all[n-1].Tag == c.Tag && all[n-1].Offset+int64(len(all[n-1].Text)) == c.Offset {
			all[n-1].Text += c.Text
			continue
		}
		all = append(all, c)
	}
	return all
}

package engine

import (
	"context"
	"iter"

	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// An Attacher is an engine that tells a subscriber where the past ends.
type Attacher interface {
	// Attach is Subscribe that calls live once, between two events. What came before it
	// was there already: the events after the cursor, and of each item that is open the
	// text so far. What comes after it is new.
	Attach(ctx context.Context, id p.ConversationID, after p.Cursor, live func()) iter.Seq2[p.Event, error]
}

var _ Attacher = (*Local)(nil)

// Attach gives every event after the cursor, calls live, then gives live ones.
func (l *Local) Attach(ctx context.Context, id p.ConversationID, after p.Cursor, live func()) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		c, err := l.find(ctx, id)
		if err != nil {
			yield(p.Event{}, err)
			return
		}
		j := c.Journal()
		r := &attachedReader{reader: j.Follow(uint64(after)), journal: j, after: uint64(after), live: live}
		(&follower{reader: r, seen: map[p.ItemID]int64{}}).run(ctx, yield)
	}
}

// An attachedReader calls live when whoever reads has been given everything there is.
type attachedReader struct {
	reader  journal.Reader
	journal journal.Journal
	after   uint64
	open    bool   // the text of open items was given
	live    func() // nil when it was called
}

// Next implements journal.Reader. A reader gives the bytes of open items only when there
// are no records left to give, and then of all of them at once. It is asked again when what
// it gave has been passed on.
func (r *attachedReader) Next(ctx context.Context) ([]journal.Record, []journal.Chunk, error) {
	if r.live != nil && (r.open || r.nothingLeft()) {
		r.live()
		r.live = nil
	}
	recs, chunks, err := r.reader.Next(ctx)
	if len(recs) > 0 {
		r.after = recs[len(recs)-1].Seq
	}
	r.open = r.open || len(chunks) > 0
	return recs, chunks, err
}

// nothingLeft reports whether the reader would wait. If something is open, or gets
// visible meanwhile, it does not.
func (r *attachedReader) nothingLeft() bool {
	visible, _ := r.journal.Durable()
	return r.after >= visible && len(r.journal.OpenItems()) == 0
}

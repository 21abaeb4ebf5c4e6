package engine

import (
	"context"
	"iter"
	"slices"

	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// Attach gives every event after the cursor, calls live, then gives live ones.
func (l *Local) Attach(ctx context.Context, id p.ConversationID, after p.Cursor, live func()) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		c, err := l.find(ctx, id)
		if err != nil {
			yield(p.Event{}, err)
			return
		}
		snap, err := c.Snapshot(ctx)
		if err != nil {
			yield(p.Event{}, err)
			return
		}
		j := c.Reader()
		r := &attachedReader{
			follower: j.Follow(uint64(after)), journal: j, after: uint64(after), past: uint64(snap.Last), given: map[string]int64{}, live: live,
		}
		(&follower{source: r, seen: map[p.ItemID]int64{}}).run(ctx, yield)
	}
}

// An attachedReader calls live when whoever reads has been given everything there was.
type attachedReader struct {
	follower journal.Follower
	journal  journal.Reader
	after    uint64           // the last record given
	past     uint64           // the last one of the past
	given    map[string]int64 // how much of each item
	text     bool             // the last thing given was the text of open items
	live     func()           // nil when it was called
}

// Next implements journal.Follower. A reader gives the text of open items only when there
// are no records left to give, and then of all of them at once. It is asked again when what
// it gave has been passed on; whoever writes may be quicker than that every time, so the past
// ends there all the same.
func (r *attachedReader) Next(ctx context.Context) ([]journal.Record, []journal.Chunk, error) {
	if r.live != nil && r.after >= r.past && (r.text || !r.textLeft(ctx)) {
		r.live()
		r.live = nil
	}
	recs, chunks, err := r.follower.Next(ctx)
	if r.live == nil {
		return recs, chunks, err
	}
	if len(recs) > 0 {
		r.after = recs[len(recs)-1].Seq
	}
	for _, c := range chunks {
		r.given[c.Item] = c.Offset + int64(len(c.Text))
	}
	r.text = len(chunks) > 0
	return recs, chunks, err
}

// textLeft reports whether there is text of open items that was not given. Then the reader
// does not wait.
func (r *attachedReader) textLeft(ctx context.Context) bool {
	open, _ := r.journal.OpenItems(ctx) // an error ends the reader too
	return slices.ContainsFunc(open, func(c journal.Chunk) bool {
		return c.Offset+int64(len(c.Text)) > r.given[c.Item]
	})
}

package engine

import (
	"context"
	"errors"
	"iter"

	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// Subscribe gives every event after the cursor, then live ones.
func (l *Local) Subscribe(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		c, err := l.find(ctx, id)
		if err != nil {
			yield(p.Event{}, err)
			return
		}
		f := &follower{source: c.Reader().Follow(uint64(after)), seen: map[p.ItemID]int64{}}
		f.run(ctx, yield)
	}
}

// A follower turns what a journal gives into events.
type follower struct {
	source journal.Follower
	seen   map[p.ItemID]int64 // how much of each open item was given
}

func (f *follower) run(ctx context.Context, yield func(p.Event, error) bool) {
	for {
		recs, chunks, err := f.source.Next(ctx)
		if errors.Is(err, journal.ErrClosed) {
			err = ErrClosed
		}
		if err != nil {
			yield(p.Event{}, err)
			return
		}
		for _, r := range recs {
			e := event(r)
			if rest, ok := f.rest(e); ok && !yield(rest, nil) {
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		for _, c := range chunks {
			if e, ok := f.delta(c); ok && !yield(e, nil) {
				return
			}
		}
	}
}

func event(r journal.Record) p.Event {
	body, err := p.DecodeBody(r.Kind, r.Body)
	if err != nil { // a later version's form of it
		body = &p.Unknown{Kind: r.Kind, JSON: r.Body}
	}
	return p.Event{Seq: p.Seq(r.Seq), Time: r.Time, Turn: p.TurnID(r.Turn), Body: body, Unsaved: r.Unsaved}
}

func (f *follower) delta(c journal.Chunk) (p.Event, bool) {
	id, err := p.ParseItemID(c.Item)
	if err != nil {
		return p.Event{}, false
	}
	f.seen[id] = c.Offset + int64(len(c.Text))
	return p.Event{Turn: id.Turn, Body: &p.Delta{Item: id, Kind: p.DeltaKind(c.Tag), Offset: c.Offset, Text: c.Text}}, true
}

// rest gives what a reader that has seen the start of an item has not yet seen
// of it when it is finished, so that the deltas of an item always add up.
func (f *follower) rest(e p.Event) (p.Event, bool) {
	var id p.ItemID
	var kind p.DeltaKind
	var text string
	switch b := e.Body.(type) {
	case *p.AssistantMessage:
		id, kind, text = b.Item, p.DeltaMessage, b.Text
	case *p.Reasoning:
		id, kind, text = b.Item, p.DeltaReasoning, b.Text
	case *p.ToolOutput:
		if b.Command == nil || b.Command.Omitted > 0 {
			delete(f.seen, b.Call)
			return p.Event{}, false
		}
		id, kind, text = b.Call, p.DeltaStdout, b.Command.Output
	case *p.BackgroundEnded:
		if b.Result.Omitted > 0 {
			delete(f.seen, b.ID.Item())
			return p.Event{}, false
		}
		id, kind, text = b.ID.Item(), p.DeltaStdout, b.Result.Output
	default:
		return p.Event{}, false
	}
	seen, ok := f.seen[id]
	delete(f.seen, id)
	if !ok || seen >= int64(len(text)) {
		return p.Event{}, false
	}
	return p.Event{Turn: id.Turn, Body: &p.Delta{Item: id, Kind: kind, Offset: seen, Text: text[seen:]}}, true
}

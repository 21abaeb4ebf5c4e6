// Package replay turns the records of a conversation into events, and into what a list shows of it.
package replay

import (
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// Events turns records and the text of open items into events. Each byte of an
// item is passed on once, wherever it is read from. It is used by one goroutine.
type Events struct {
	seen  map[p.ItemID]int64 // how much of each open item was passed on
	yield func(p.Event, error) bool
}

// New returns Events that are passed to yield.
func New(yield func(p.Event, error) bool) Events {
	return Events{seen: map[p.ItemID]int64{}, yield: yield}
}

// Seen returns how much of an open item was passed on, in bytes.
func (g *Events) Seen(item p.ItemID) int64 { return g.seen[item] }

// Add passes events on, and reports false when no more are wanted.
func (g *Events) Add(recs []journal.Record, chunks []journal.Chunk) bool {
	for _, r := range recs {
		e := Event(r)
		for _, rest := range g.rest(e) {
			if !g.yield(rest, nil) {
				return false
			}
		}
		if !g.yield(e, nil) {
			return false
		}
	}
	for _, c := range chunks {
		if e, ok := g.delta(c); ok && !g.yield(e, nil) {
			return false
		}
	}
	return true
}

// Event returns a record as an event.
func Event(r journal.Record) p.Event {
	body, err := p.DecodeBody(r.Kind, r.Body)
	if err != nil { // a later version's form of it
		body = &p.Unknown{Kind: r.Kind, JSON: r.Body}
	}
	return p.Event{Seq: p.Seq(r.Seq), Time: r.Time, Turn: p.TurnID(r.Turn), Body: body, Unsaved: r.Unsaved}
}

// delta is what is new of a chunk, if anything is.
func (g *Events) delta(c journal.Chunk) (p.Event, bool) {
	id, err := p.ParseItemID(c.Item)
	if err != nil {
		return p.Event{}, false
	}
	if skip := g.seen[id] - c.Offset; skip >= int64(len(c.Text)) {
		return p.Event{}, false
	} else if skip > 0 {
		c.Offset, c.Text = c.Offset+skip, c.Text[skip:]
	}
	g.seen[id] = c.Offset + int64(len(c.Text))
	return p.Event{Turn: id.Turn, Body: &p.Delta{Item: id, Kind: p.DeltaKind(c.Tag), Offset: c.Offset, Text: c.Text}}, true
}

// rest is what a subscriber that has been given the beginning of an item has not
// yet been given of it when it is finished, so that the deltas of an item always add up.
func (g *Events) rest(e p.Event) []p.Event {
	var id p.ItemID
	var kind p.DeltaKind
	var text string
	var stderr [][2]int
	switch b := e.Body.(type) {
	case *p.AssistantMessage:
		id, kind, text = b.Item, p.DeltaMessage, b.Text
	case *p.Reasoning:
		id, kind, text = b.Item, p.DeltaReasoning, b.Text
	case *p.ToolOutput:
		id, kind = b.Call, p.DeltaStdout
		if b.Command != nil && b.Command.Omitted == 0 {
			text, stderr = b.Command.Output, b.Command.Stderr
		}
	case *p.BackgroundEnded:
		id, kind = b.ID.Item(), p.DeltaStdout
		if b.Result.Omitted == 0 {
			text, stderr = b.Result.Output, b.Result.Stderr
		}
	default:
		return nil
	}
	seen, ok := g.seen[id]
	delete(g.seen, id)
	if !ok {
		return nil
	}
	var list []p.Event
	at := int(seen)
	give := func(kind p.DeltaKind, end int) {
		if end = min(end, len(text)); at < end {
			list = append(list, p.Event{Turn: id.Turn, Body: &p.Delta{Item: id, Kind: kind, Offset: int64(at), Text: text[at:end]}})
			at = end
		}
	}
	for _, r := range stderr {
		give(kind, r[0])
		give(p.DeltaStderr, r[1])
	}
	give(kind, len(text))
	return list
}

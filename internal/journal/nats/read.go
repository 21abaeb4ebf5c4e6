package nats

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats/wire"
)

// An assembler puts batches together from the messages of a conversation, in the
// order of the stream.
type assembler struct {
	epoch  uint64 // of the last message of records; 0 if there was none
	node   string
	first  uint64 // sequence of the first message of the last batch
	part   stored // the pieces so far, joined; Piece is how many
	faults []string
}

// records takes a message of records and returns those of the batch that it completes.
func (a *assembler) records(m *stored) []journal.Pending {
	if m.err != nil {
		a.faults = append(a.faults, m.err.Error())
		return nil
	}
	a.epoch, a.node = m.Epoch, m.Node
	data, whole := a.body(m)
	if !whole {
		return nil
	}
	recs, err := wire.DecodeRecords(data)
	if err != nil {
		a.faults = append(a.faults, err.Error())
	}
	return recs
}

// body takes a message and returns the body that it completes.
func (a *assembler) body(m *stored) ([]byte, bool) {
	switch {
	case m.err != nil:
		return nil, false
	case m.Pieces == 0:
		a.first, a.part = m.seq, stored{}
		return m.data, true
	case m.Piece == 1:
		a.first, a.part = m.seq, *m
		a.part.data = slices.Clone(m.data)
		return nil, false
	case m.ID != a.part.ID || m.Node != a.part.Node || m.Piece != a.part.Piece+1:
		return nil, false // the rest of a batch that was begun before what is read
	}
	a.part.Piece = m.Piece
	a.part.data = append(a.part.data, m.data...)
	if m.Piece < m.Pieces {
		return nil, false
	}
	data := a.part.data
	a.part = stored{}
	return data, true
}

// texts returns the chunks of a message of text, none if its writer was no longer
// the owner.
func (a *assembler) texts(m *stored) []journal.Chunk {
	if m.err != nil || a.epoch != 0 && (m.Epoch != a.epoch || m.Node != a.node) {
		return nil
	}
	chunks, err := wire.DecodeTexts(m.data)
	if err != nil {
		a.faults = append(a.faults, err.Error())
	}
	return chunks
}

// A span is a range of sequences.
type span struct{ from, to uint64 }

// readRecords reads records after and up to the given numbers.
func readRecords(ctx context.Context, c *conn, subject string, sp span, after, upTo uint64, limit int) ([]journal.Record, error) {
	var a assembler
	var recs []journal.Record
	last := after
	err := c.scan(ctx, subject, sp.from, sp.to, func(m *stored) bool {
		for _, r := range a.records(m) {
			if r.Seq > last && r.Seq <= upTo && len(recs) < limit {
				recs = append(recs, r.Record)
				last = r.Seq
			}
		}
		return len(recs) < limit && last < upTo
	})
	return recs, err
}

// fill replaces records that are missing after and up to the given numbers, so
// that numbers have no gaps.
func fill(recs []journal.Record, after, upTo uint64) []journal.Record {
	if uint64(len(recs)) == upTo-after {
		return recs
	}
	var all []journal.Record
	for n := after + 1; n <= upTo; n++ {
		if len(recs) > 0 && recs[0].Seq == n {
			all = append(all, recs[0])
			recs = recs[1:]
			continue
		}
		if len(recs) == 0 {
			break
		}
		all = append(all, journal.Record{Seq: n, Time: recs[0].Time, Kind: "damaged", Body: json.RawMessage(`{}`)})
	}
	return all
}

// A closing says which items a message of records closed. Text of them whose writer did not know of that message
// is late. (Text that is written later may have the same name: that of a call's arguments, then of its output.)
type closing struct {
	items string
	seq   uint64
}

// maxClosed is of how many closed items late text is recognized: it comes soon, after a connection was lost.
const maxClosed = 64

// openText collects the text of open items from the messages of a conversation.
type openText struct {
	items  []*itemText // oldest first
	closed []closing   // by the latest records
	bytes  int         // of all messages
	last   uint64      // sequence of the last one
}

type itemText struct {
	name   string
	place  uint64 // sequence of the message with its first text
	end    int64
	chunks []journal.Chunk
}

func (o *openText) add(m *stored, chunks []journal.Chunk) {
	o.bytes += len(m.data)
	o.last = m.seq
	for _, c := range chunks {
		if slices.ContainsFunc(o.closed, func(cl closing) bool { return m.Prev < cl.seq && journal.Closes(cl.items, c.Item) }) {
			continue // it was sent before that record
		}
		i := slices.IndexFunc(o.items, func(it *itemText) bool { return it.name == c.Item })
		if i < 0 {
			i = len(o.items)
			o.items = append(o.items, &itemText{name: c.Item, place: m.seq})
		}
		it := o.items[i]
		if known := it.end - c.Offset; known > 0 { // it was sent twice
			if known >= int64(len(c.Text)) {
				continue
			}
			c.Offset, c.Text = it.end, c.Text[known:]
		}
		it.end = c.Offset + int64(len(c.Text))
		it.chunks = append(it.chunks, c)
	}
}

// close takes the records of a batch that ends with the message of a sequence.
func (o *openText) close(recs []journal.Pending, seq uint64) {
	for _, r := range recs {
		if r.Closes != "" {
			o.closed = append(o.closed[max(len(o.closed)-maxClosed, 0):], closing{r.Closes, seq})
			o.items = slices.DeleteFunc(o.items, func(it *itemText) bool { return journal.Closes(r.Closes, it.name) })
		}
	}
}

func (o *openText) chunks() []journal.Chunk {
	var all []journal.Chunk
	for _, it := range o.items {
		all = append(all, it.chunks...)
	}
	return all
}

// readText collects the text that is open after the message with the sequence to.
func (s *Store) readText(ctx context.Context, l *link, id string, to uint64) (openText, error) {
	var o openText
	first, err := l.first(ctx, 1, s.texts(id))
	if err == errNoMessage || err == nil && first.seq > to {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	from := first.seq
	if first.err == nil && first.Prev != 0 {
		from = first.Prev // the writer's last records: behind them it is known who is the owner
	}
	var a assembler
	err = l.scan(ctx, s.both(id), from, to, func(m *stored) bool {
		if m.isText() {
			o.add(m, a.texts(m))
		} else {
			o.close(a.records(m), m.seq)
		}
		return true
	})
	return o, err
}

// idOf returns the conversation that a subject belongs to.
func (s *Store) idOf(subject string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(subject, s.o.Name+".c."), ".")
	return id
}

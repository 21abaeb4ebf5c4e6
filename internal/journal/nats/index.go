package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal"
)

// How many records lie between marks, in memory and in the bucket, and about how many
// between a message and the one that its meta's Far names.
const (
	markEvery  = 32
	savedEvery = 256
	farRecords = 64
)

// A mark says which message begins with which record.
type mark struct {
	First uint64 `json:"n"`
	Seq   uint64 `json:"s"`
}

// An index says where records are. It may be lost: then the whole is read.
type index struct {
	seq   uint64            // it covers the messages up to this one; 0 if nothing
	kinds map[string]uint64 // sequence of the last message with a record of a kind
	marks []mark            // in order
}

// add notes a batch whose first message has that sequence.
func (ix *index) add(recs []journal.Pending, seq uint64) {
	if len(recs) == 0 {
		return
	}
	for i := range recs {
		ix.kinds[recs[i].Kind] = seq
	}
	if n := len(ix.marks); n == 0 || recs[0].Seq >= ix.marks[n-1].First+markEvery {
		ix.marks = append(ix.marks, mark{recs[0].Seq, seq})
	}
}

// before returns a sequence at or before which the record is.
func (ix *index) before(number uint64) uint64 {
	i, _ := slices.BinarySearchFunc(ix.marks, number+1, func(m mark, n uint64) int {
		if m.First < n {
			return -1
		}
		return 1
	})
	if i == 0 {
		return 1
	}
	return ix.marks[i-1].Seq
}

// far returns the sequence of a message that is some records before the last, or 0.
func (ix *index) far(last uint64) uint64 {
	if last <= farRecords || len(ix.marks) == 0 || ix.marks[0].First > last-farRecords {
		return 0
	}
	return ix.before(last - farRecords)
}

// upTo returns a copy that covers the messages up to a sequence.
func (ix *index) upTo(seq uint64) index {
	return index{seq, maps.Clone(ix.kinds), slices.Clone(ix.marks)}
}

type savedIndex struct {
	Seq   uint64            `json:"seq"`
	Kinds map[string]uint64 `json:"kinds"`
	Marks []mark            `json:"marks"`
}

// saveIndex keeps an index. It may fail: then the next reader reads more.
func (l *link) saveIndex(ctx context.Context, id string, ix index) {
	s := savedIndex{Seq: ix.seq, Kinds: ix.kinds}
	for _, m := range ix.marks {
		if n := len(s.Marks); n == 0 || m.First >= s.Marks[n-1].First+savedEvery {
			s.Marks = append(s.Marks, m)
		}
	}
	b, _ := json.Marshal(s)
	_, _ = l.index.Put(ctx, id, b)
}

// loadIndex returns the index of a conversation, an empty one if there is none.
func (l *link) loadIndex(ctx context.Context, id string) (index, error) {
	none := index{kinds: make(map[string]uint64)}
	var e jetstream.KeyValueEntry
	err := persist(ctx, func(ctx context.Context) (err error) {
		e, err = l.index.Get(ctx, id)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("read the index: %w", err)
	}
	var s savedIndex
	if json.Unmarshal(e.Value(), &s) != nil || s.Kinds == nil {
		return none, nil
	}
	return index{s.Seq, s.Kinds, s.Marks}, nil
}

// catchUp adds what messages of records up to a sequence hold.
func (ix *index) catchUp(ctx context.Context, c *conn, subject string, to uint64) error {
	var a assembler
	err := c.scan(ctx, subject, ix.seq+1, to, func(m *stored) bool {
		if recs := a.records(m); len(recs) > 0 {
			ix.add(recs, a.first)
		}
		return true
	})
	if err == nil {
		ix.seq = to
	}
	return err
}

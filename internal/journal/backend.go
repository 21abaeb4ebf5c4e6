package journal

import (
	"context"
	"fmt"
	"slices"
)

// A Backend is what distinguishes the versions of a journal: it keeps what a Log
// is given.
type Backend interface {
	// Appended is called, without the log's mutex, after records were added.
	Appended()

	// Wrote is called, with the log's mutex held, after text was added to an open
	// item: TakeText would have returned so many bytes before, and so many after.
	// It must not call the Log.
	Wrote(before, after int)

	// Old reads records after and up to the given numbers that have left the
	// window: at least one, at most limit.
	Old(ctx context.Context, after, upTo uint64, limit int) ([]Record, error)
}

// SetBackend must be called once, before the Log is used.
func (l *Log) SetBackend(b Backend) { l.back = b }

// A Phase is how far a journal's life has come.
type Phase int

// The phases, in order.
const (
	Running Phase = iota
	Closing       // nothing is accepted any more, the rest is being made durable
	Closed        // readers take what is left, then ErrClosed
	Dead          // as if the process had been killed: readers get ErrClosed now
)

// A Status is where a Log stands.
type Status struct {
	Phase   Phase
	Saved   uint64 // number of the last durable record
	Err     error  // why the journal failed, if it has
	Untaken int    // bytes that TakeText would return
}

// Status returns where the log stands.
func (l *Log) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Status{Phase: l.phase, Saved: l.saved, Err: l.err, Untaken: l.untaken}
}

// Pending returns the records after the given number, which must not be before
// the last durable one.
func (l *Log) Pending(after uint64) []Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recent.pending(after)
}

// An ItemText is what is new of an open item.
type ItemText struct {
	Item   *Item
	Pieces []Piece // at least one, adjacent, ending between runes
}

// Name returns the item's name.
func (it *Item) Name() string { return it.name }

// TakeText returns the text of open items that it has not returned before.
func (l *Log) TakeText() []ItemText {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.untaken = 0
	var all []ItemText
	for _, it := range l.items {
		if it.closedBy != 0 || it.taken == it.end || it.full {
			continue
		}
		end := it.end
		if l.itemLimit > 0 && end >= l.itemLimit {
			end, it.full = l.itemLimit, true
		}
		ps := it.pieces(it.taken, end)
		if end < it.end {
			ps = wholeRunes(ps)
		}
		if len(ps) > 0 {
			all = append(all, ItemText{it, ps})
			last := ps[len(ps)-1]
			it.taken = last.Offset + int64(len(last.Text))
		}
	}
	return all
}

// SaveText reports that the backend has texts that TakeText returned.
func (l *Log) SaveText(texts []ItemText) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range texts {
		last := t.Pieces[len(t.Pieces)-1]
		t.Item.saved = max(t.Item.saved, last.Offset+int64(len(last.Text)))
	}
	l.wakeReaders()
}

// StillOpen returns those of the texts whose items are not closed.
func (l *Log) StillOpen(texts []ItemText) []ItemText {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(texts), func(t ItemText) bool { return t.Item.closedBy != 0 })
}

// shown returns, with the mutex, how much of an item followers may see: all that
// the backend will never take, and all once nothing is saved any more.
func (l *Log) shown(it *Item) int64 {
	if !l.holdText || l.err != nil || it.full && it.saved >= it.taken {
		return it.end
	}
	return it.saved
}

// wrote is called, with the mutex, after n bytes were added to an item.
func (l *Log) wrote(it *Item, n int) {
	if l.onWrite != nil {
		l.onWrite(it)
	}
	if it.full {
		return
	}
	before := l.untaken
	l.untaken += n
	l.back.Wrote(before, l.untaken)
}

// A Place is where a backend keeps the first text of an open item. It is zero if
// there is none.
type Place struct {
	Offset int64  // in a file; in a stream its sequence
	Next   uint64 // number of the first record behind it
}

// SetPlace notes where the item's text begins, if that is not known yet.
func (l *Log) SetPlace(it *Item, p Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if it.place == (Place{}) {
		it.place = p
	}
}

// Places returns where the text of items begins whose closing record is not
// durable.
func (l *Log) Places() []Place {
	l.mu.Lock()
	defer l.mu.Unlock()
	var places []Place
	for _, it := range l.items {
		if it.place != (Place{}) {
			places = append(places, it.place)
		}
	}
	return places
}

// Restore puts back items that were open when the journal was last closed.
// Nothing says in which scope they were, so each gets one of its own and is shown.
func (l *Log) Restore(chunks []Chunk, places map[string]Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range chunks {
		if c.Text == "" {
			continue
		}
		it := l.byName[c.Item]
		if it == nil {
			it = l.addItem(c.Item, "\x00"+c.Item)
			it.place = places[c.Item]
		}
		it.skip(c.Offset)
		it.add(c.Tag, c.Text)
		it.taken, it.saved = it.end, it.end
	}
}

// JoinChunks joins adjacent chunks of one item and tag, oldest item first, and
// leaves out the middle of items that are too large, as an open journal does.
func JoinChunks(chunks []Chunk) []Chunk {
	l := NewLog(LogOptions{})
	l.Restore(chunks, nil)
	return l.openItems()
}

// Commit makes the records up to seq, which are durable, visible.
func (l *Log) Commit(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq <= l.saved || l.err != nil || l.phase == Dead {
		return
	}
	l.saved = seq
	l.show(seq)
}

// Fail ends durability: everything is visible from now on, as Unsaved.
func (l *Log) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || l.phase == Dead {
		return
	}
	l.err = err
	l.recent.unsave(l.saved)
	l.show(l.last)
}

// Failure returns what Close returns: the error that made the journal fail.
func (l *Log) Failure() error {
	_, err := l.Durable()
	return err
}

// Enter moves on to a later phase. It reports false if that was so already.
func (l *Log) Enter(p Phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase >= p {
		return false
	}
	l.phase = p
	l.notifyAll()
	return true
}

// Kill ends the journal as the death of its process would. It reports false if
// it is closed already.
func (l *Log) Kill() bool {
	l.mu.Lock()
	alive := l.phase < Closed
	l.mu.Unlock()
	return alive && l.Enter(Dead)
}

// MayCheckpoint says why there can be no checkpoint at seq.
func (l *Log) MayCheckpoint(seq uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase >= Closed {
		return fmt.Errorf("checkpoint at record %d: %w", seq, ErrClosed)
	}
	if seq == 0 || seq > l.saved {
		return fmt.Errorf("checkpoint at record %d: %d are durable", seq, l.saved)
	}
	return nil
}

// ValidID reports whether an id can name a conversation, also as part of a
// file's name.
func ValidID(id string) bool {
	if id == "" || len(id) > 100 {
		return false
	}
	for _, c := range id {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A log is what all versions of a journal have in common: numbers, what is
// visible, the recent records, the open items, and waking readers. A backend
// makes the records durable and says so by commit or fail.
type log struct {
	back   backend       // set before use
	notify chan struct{} // room for one; sent to by show, received by the owner

	mu      sync.Mutex
	phase   phase
	last    uint64 // last number given
	saved   uint64 // last number that is durable
	visible uint64 // saved, or last once the journal has failed
	err     error  // why it failed
	recent  window
	items   []*item          // not gone, oldest first
	byName  map[string]*item // the same
	scopes  []*scope         // not sealed
	wake    chan struct{}    // closed when there is news; nil if nobody waits
}

// A phase is how far a journal's life has come.
type phase int

const (
	running phase = iota
	closing       // nothing is taken any more, the rest is being made durable
	closed        // readers take what is left, then ErrClosed
	dead          // as if the process had been killed: readers get ErrClosed now
)

// A backend is what distinguishes the versions.
type backend interface {
	// appended is called, without the log's mutex, after records were added.
	appended()
	// wrote is called, with the mutex, after n bytes were added to an item.
	wrote(it *item, n int)
	// old reads records after and up to the given numbers that have left the
	// window, without the mutex: at least one, at most limit.
	old(after, upTo uint64, limit int) ([]Record, error)
}

// newLog returns a log that has all records up to last, none of them in memory,
// and keeps about the given number of bytes.
func newLog(last uint64, keep int) *log {
	return &log{
		notify:  make(chan struct{}, 1), // a second change before the owner looked adds nothing
		last:    last,
		saved:   last,
		visible: last,
		recent:  window{first: last + 1, keep: keep},
		byName:  make(map[string]*item),
	}
}

// Append implements Journal.
func (l *log) Append(entries ...Entry) uint64 {
	bodies := make([]json.RawMessage, len(entries))
	for i, e := range entries {
		bodies[i] = oneLine(e.Body)
	}
	l.mu.Lock()
	if l.phase != running || len(entries) == 0 {
		defer l.mu.Unlock()
		return l.last
	}

	// A file knows microseconds; so does memory, that a record reads the same.
	now := time.Now().UTC().Truncate(time.Microsecond)
	for i, e := range entries {
		l.last++
		l.recent.push(entry{
			Record: Record{Seq: l.last, Time: now, Turn: e.Turn, Kind: e.Kind, Body: bodies[i], Unsaved: l.err != nil},
			closes: e.Closes,
		})
		l.markClosed(e.Closes, l.last)
	}
	last, failed := l.last, l.err != nil
	if failed {
		l.show(last)
	}
	l.mu.Unlock()

	if !failed {
		l.back.appended()
	}
	return last
}

// oneLine makes sure that a body is a line's part: an indented one is compacted.
func oneLine(body json.RawMessage) json.RawMessage {
	if len(body) == 0 {
		return json.RawMessage("null")
	}
	if bytes.IndexByte(body, '\n') < 0 && bytes.IndexByte(body, 0) < 0 {
		return body
	}

	var b bytes.Buffer
	if json.Compact(&b, body) == nil {
		return b.Bytes()
	}
	return appendString(nil, string(body)) // not JSON; better quoted than lost
}

// markClosed ends writing to what the record closes. The bytes stay until the
// record is visible.
func (l *log) markClosed(pattern string, seq uint64) {
	if pattern == "" {
		return
	}
	for _, it := range l.items {
		if it.closedBy == 0 && closes(pattern, it.name) {
			it.closedBy = seq
		}
	}
	for _, s := range l.scopes {
		s.remember(pattern)
	}
}

// Durable implements Journal.
func (l *log) Durable() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == dead {
		return l.visible, ErrClosed
	}
	return l.visible, l.err
}

// Notify implements Journal.
func (l *log) Notify() <-chan struct{} { return l.notify }

// Open implements Journal.
func (l *log) Open(name string) Scope {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &scope{log: l, name: name}
	l.scopes = append(l.scopes, s)
	return s
}

// OpenItems implements Journal.
func (l *log) OpenItems() []Chunk {
	l.mu.Lock()
	defer l.mu.Unlock()
	var chunks []Chunk
	for _, it := range l.items {
		if it.closedBy == 0 {
			chunks = append(chunks, join(it.name, it.pieces(0, it.end))...)
		}
	}
	return chunks
}

// Read implements Journal.
func (l *log) Read(after uint64, limit int) ([]Record, error) {
	var all []Record
	for len(all) < limit {
		recs, err := l.read(after, limit-len(all))
		if err != nil || len(recs) == 0 {
			return all, err
		}
		all = append(all, recs...)
		after = recs[len(recs)-1].Seq
	}
	return all, nil
}

// read returns some visible records after the given number, none if there are none.
func (l *log) read(after uint64, limit int) ([]Record, error) {
	l.mu.Lock()
	if after >= l.visible || after+1 >= l.recent.first {
		defer l.mu.Unlock()
		return l.recent.after(after, l.visible, limit), nil
	}
	upTo := min(l.recent.first-1, l.visible)
	l.mu.Unlock()
	return l.back.old(after, upTo, limit)
}

// Follow implements Journal.
func (l *log) Follow(after uint64) Reader { return &reader{log: l, after: after} }

// commit makes the records up to seq, which are durable, visible.
func (l *log) commit(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq <= l.saved || l.err != nil || l.phase == dead {
		return
	}
	l.saved = seq
	l.show(seq)
}

// fail ends durability: everything is visible from now on, as Unsaved.
func (l *log) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || l.phase == dead {
		return
	}
	l.err = err
	l.recent.unsave(l.saved)
	l.show(l.last)
}

// show makes records visible and drops, in the same instant, what they close.
func (l *log) show(seq uint64) {
	l.visible = seq
	l.items = slices.DeleteFunc(l.items, func(it *item) bool {
		it.gone = it.closedBy != 0 && it.closedBy <= seq
		if it.gone {
			delete(l.byName, it.name)
		}
		return it.gone
	})
	l.recent.trim(l.saved)
	l.news()
}

// failure returns what Close returns.
func (l *log) failure() error {
	_, err := l.Durable()
	return err
}

// enter moves on to a later phase. It reports false if that was so already.
func (l *log) enter(p phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase >= p {
		return false
	}
	l.phase = p
	l.news()
	return true
}

// kill ends the journal without a word. It reports false if that is too late.
func (l *log) kill() bool {
	l.mu.Lock()
	alive := l.phase < closed
	l.mu.Unlock()
	return alive && l.enter(dead)
}

// news tells the owner and the readers.
func (l *log) news() {
	select {
	case l.notify <- struct{}{}:
	default:
	}
	l.wakeReaders()
}

func (l *log) wakeReaders() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

func (l *log) addItem(name, scope string) *item {
	it := &item{name: name, scope: scope}
	l.items = append(l.items, it)
	l.byName[name] = it
	return it
}

// restore puts back an item that was open when the journal was last closed.
// Nothing says in which scope it was, so it gets one of its own and is shown.
func (l *log) restore(chunks []Chunk) {
	for _, c := range chunks {
		if c.Text == "" {
			continue
		}
		it := l.byName[c.Item]
		if it == nil {
			it = l.addItem(c.Item, "\x00"+c.Item)
		}
		it.skip(c.Offset)
		it.add(c.Tag, c.Text)
		it.flushed = it.end
	}
}

// unsaved reports whether the record is still to be made durable.
func (l *log) unsaved(seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return seq > l.saved && l.err == nil && l.phase != dead
}

// mayCheckpoint says why there can be no checkpoint at seq.
func (l *log) mayCheckpoint(seq uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase >= closed {
		return fmt.Errorf("checkpoint at record %d: %w", seq, ErrClosed)
	}
	if seq == 0 || seq > l.saved {
		return fmt.Errorf("checkpoint at record %d: %d are durable", seq, l.saved)
	}
	return nil
}

// modified returns the time of the last record in memory, or else the given one.
func (l *log) modified(otherwise time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.recent.entries); n > 0 {
		return l.recent.entries[n-1].Time
	}
	return otherwise
}

// size is about how many bytes of records are in memory.
func (l *log) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(l.recent.bytes)
}

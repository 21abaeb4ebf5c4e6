package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// A Log is what all versions of a Journal have in common: numbers, what is
// visible, the recent records, the open items, and waking readers. A version
// embeds it and is its Backend, which makes the records durable and reports that
// by Commit or Fail.
type Log struct {
	back      Backend       // set before use
	notify    chan struct{} // room for one; sent to by show, received by the owner
	itemLimit int64
	holdText  bool
	onWrite   func(*Item) // called with mu; the memory version's

	mu      sync.Mutex
	phase   Phase
	last    uint64 // last number given
	saved   uint64 // last number that is durable
	visible uint64 // saved, or last once the journal has failed
	err     error  // why it failed
	recent  window
	items   []*Item          // not gone, oldest first
	byName  map[string]*Item // the same
	untaken int              // bytes of open items that TakeText would return
	scopes  []*scope         // not sealed
	wake    chan struct{}    // closed when there is news; nil if no caller waits
}

// LogOptions say where a Log begins and how much it keeps.
type LogOptions struct {
	Last      uint64 // number of the last record that the backend has
	Window    int    // about how many bytes of recent records to keep in memory; 0 keeps everything
	ItemLimit int64  // how many bytes of one open item TakeText returns at most; 0 is no limit
	// HoldText keeps what TakeText returns from followers until SaveText reports that
	// the backend has it: for one whose readers may outlive this process.
	HoldText bool
}

// NewLog returns a Log that has all records up to the last, none of them in memory.
func NewLog(o LogOptions) *Log {
	return &Log{
		notify:    make(chan struct{}, 1), // a second change before the owner looked adds nothing
		itemLimit: o.ItemLimit,
		holdText:  o.HoldText,
		last:      o.Last,
		saved:     o.Last,
		visible:   o.Last,
		recent:    window{first: o.Last + 1, keep: o.Window},
		byName:    make(map[string]*Item),
	}
}

// Append implements Journal.
func (l *Log) Append(entries ...Entry) uint64 {
	bodies := make([]json.RawMessage, len(entries))
	for i, e := range entries {
		bodies[i] = oneLine(e.Body)
	}
	l.mu.Lock()
	if l.phase != Running || len(entries) == 0 {
		defer l.mu.Unlock()
		return l.last
	}

	// A file knows microseconds; so does memory, that a record reads the same.
	now := time.Now().UTC().Truncate(time.Microsecond)
	for i, e := range entries {
		at := now
		if !e.Time.IsZero() {
			at = e.Time.UTC().Truncate(time.Microsecond)
		}
		l.last++
		l.recent.push(Pending{
			Record: Record{Seq: l.last, Time: at, Turn: e.Turn, Kind: e.Kind, Body: bodies[i], Unsaved: l.err != nil},
			Closes: e.Closes,
			More:   i+1 < len(entries),
		})
		l.markClosed(e.Closes, l.last)
	}
	last, failed := l.last, l.err != nil
	if failed {
		l.show(last)
	}
	l.mu.Unlock()

	if !failed {
		l.back.Appended()
	}
	return last
}

// oneLine makes sure that a body is a line's part: an indented one is compacted.
func oneLine(body json.RawMessage) json.RawMessage {
	if len(body) == 0 {
		return json.RawMessage("null")
	}
	if bytes.IndexByte(body, '\n') < 0 && bytes.IndexByte(body, 0) < 0 && body[0] != ' ' {
		return body
	}

	var b bytes.Buffer
	if json.Compact(&b, body) == nil {
		return b.Bytes()
	}
	quoted, _ := json.Marshal(string(body)) // not JSON; better quoted than lost
	return quoted
}

// markClosed ends writing to what the record closes. The bytes stay until the
// record is visible.
func (l *Log) markClosed(pattern string, seq uint64) {
	if pattern == "" {
		return
	}
	for _, it := range l.items {
		if it.closedBy == 0 && Closes(pattern, it.name) {
			it.closedBy = seq
		}
	}
	for _, s := range l.scopes {
		s.remember(pattern)
	}
}

// Durable implements Journal.
func (l *Log) Durable() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == Dead {
		return l.visible, ErrClosed
	}
	return l.visible, l.err
}

// Notify implements Journal.
func (l *Log) Notify() <-chan struct{} { return l.notify }

// Open implements Journal.
func (l *Log) Open(name string) Scope {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &scope{log: l, name: name}
	l.scopes = append(l.scopes, s)
	return s
}

// OpenItems implements Reader.
func (l *Log) OpenItems(context.Context) ([]Chunk, error) { return l.openItems(), nil }

func (l *Log) openItems() []Chunk {
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

// Read implements Reader.
func (l *Log) Read(ctx context.Context, after uint64, limit int) ([]Record, error) {
	var all []Record
	for len(all) < limit {
		recs, err := l.read(ctx, after, limit-len(all))
		if err != nil || len(recs) == 0 {
			return all, err
		}
		all = append(all, recs...)
		after = recs[len(recs)-1].Seq
	}
	return all, nil
}

// read returns some visible records after the given number, none if there are none.
func (l *Log) read(ctx context.Context, after uint64, limit int) ([]Record, error) {
	l.mu.Lock()
	if after >= l.visible || after+1 >= l.recent.first {
		defer l.mu.Unlock()
		return l.recent.after(after, l.visible, limit), nil
	}
	upTo := min(l.recent.first-1, l.visible)
	l.mu.Unlock()
	return l.back.Old(ctx, after, upTo, limit)
}

// Follow implements Reader.
func (l *Log) Follow(after uint64) Follower { return &follower{log: l, after: after} }

// show makes records visible and drops, in the same instant, what they close.
func (l *Log) show(seq uint64) {
	l.visible = seq
	l.items = slices.DeleteFunc(l.items, func(it *Item) bool {
		it.gone = it.closedBy != 0 && it.closedBy <= seq
		if it.gone {
			delete(l.byName, it.name)
		}
		return it.gone
	})
	l.recent.trim(l.saved)
	l.notifyAll()
}

// notifyAll wakes the owner and the readers.
func (l *Log) notifyAll() {
	select {
	case l.notify <- struct{}{}:
	default:
	}
	l.wakeReaders()
}

func (l *Log) wakeReaders() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

func (l *Log) addItem(name, scope string) *Item {
	it := &Item{name: name, scope: scope}
	l.items = append(l.items, it)
	l.byName[name] = it
	return it
}

// unsaved reports whether the record is still to be made durable.
func (l *Log) unsaved(seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return seq > l.saved && l.err == nil && l.phase != Dead
}

// modified returns the time of the last record in memory, or else the given one.
func (l *Log) modified(otherwise time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.recent.entries); n > 0 {
		return l.recent.entries[n-1].Time
	}
	return otherwise
}

// size is about how many bytes of records and open items are in memory.
func (l *Log) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(l.recent.bytes)
	for _, it := range l.items {
		n += it.end
	}
	return n
}

package journal

import (
	"math/rand/v2"
	"time"
)

// A CrashMode is a way in which a process can end without warning.
type CrashMode int

const (
	// CrashKill is kill -9: what was written to the operating system is kept, and
	// that includes the bytes of open items after 100 ms.
	CrashKill CrashMode = iota
	// CrashPower is loss of power: only what was synced is sure to be kept, and
	// that includes the bytes of open items after a second.
	CrashPower
)

// After how long written bytes of an open item survive a kill, and a power cut.
const (
	progressSafe   = 100 * time.Millisecond
	progressSynced = time.Second
)

// A writeMark says how much of an item was written when.
type writeMark struct {
	at  time.Time
	end int64
}

// mark notes, with the log's mutex, that the item was written to.
func mark(it *Item) {
	now := time.Now()
	// Only the last mark that is old enough matters, and those after it.
	for len(it.marks) > 1 && now.Sub(it.marks[1].at) >= progressSynced {
		it.marks = it.marks[1:]
	}
	if n := len(it.marks); n > 0 && now.Sub(it.marks[n-1].at) < time.Millisecond {
		it.marks[n-1].end = it.end
		return
	}
	it.marks = append(it.marks, writeMark{now, it.end})
}

// safe returns how many bytes of the item survive a crash for sure, because they
// were written so long ago.
func (it *Item) safe(now time.Time, ago time.Duration) int64 {
	var end int64
	for _, m := range it.marks {
		if now.Sub(m.at) >= ago {
			end = m.end
		}
	}
	return max(end, it.taken)
}

// Crash puts a conversation into a state in which a crash at this moment might
// leave it: every durable record is there, of those on their way a random
// number, of open items' bytes a random part beyond what is safe. Journals that
// had it open are dead: what is appended to them is ignored, readers get
// ErrClosed. It can be opened again.
func (s *MemoryStore) Crash(id string, mode CrashMode, r *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conversations[id]
	if c == nil || c.open == nil {
		return
	}

	j := c.open
	j.Enter(Dead)
	close(j.killed)
	j.mu.Lock()
	last := j.saved
	if j.err == nil {
		last += r.Uint64N(j.last - j.saved + 1)
	}
	for last > j.saved && j.recent.entries[last-j.recent.first].More {
		last-- // of a batch all is there or nothing
	}
	j.mu.Unlock()
	now := time.Now()
	c.log = j.rest(last, func(it *Item) int64 {
		ago := progressSafe
		if mode == CrashPower {
			ago = progressSynced
		}
		safe := it.safe(now, ago)
		return min(safe+r.Int64N(it.end-safe+1), headBytes)
	})
	c.open = nil
	if mode == CrashPower && r.IntN(2) == 0 {
		c.checkpoint, c.checkpointSeq = nil, 0
	}
}

// rest returns a closed log with the records up to last and the items that they
// leave open, each cut to the length that keep returns; nil keeps all.
func (l *Log) rest(last uint64, keep func(*Item) int64) *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := NewLog(LogOptions{Last: last})
	n.phase = Closed
	n.recent.first = 1
	for _, e := range l.recent.entries[:last] {
		e.Unsaved = false
		n.recent.push(e)
	}
	for _, it := range l.items {
		if it.closedBy != 0 && it.closedBy <= last {
			continue
		}
		ps := it.pieces(0, it.end)
		if keep != nil {
			ps = wholeRunes(it.pieces(0, keep(it)))
		}
		n.Restore(join(it.name, ps), nil)
	}
	return n
}

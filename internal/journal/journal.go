// Package journal keeps the numbered records of conversations: append-only,
// checksummed, one writer, any number of readers.
//
// What it guarantees:
//   - Append numbers records 1, 2, 3 … without gaps and never waits for the disk.
//     A writer of the journal's own makes them durable, in groups.
//   - A record becomes visible to readers when it is durable, not before: what a
//     reader has seen, no crash takes back. After a write error the journal is
//     failed: what is appended from then on is visible at once, marked Unsaved.
//   - The bytes of open items (text that streams, a command's output) are visible
//     at once, by offset. They reach the file soon, without a number and without
//     an fsync, and are superseded by the record that closes the item.
//   - Opening repairs: a torn tail, holes and damaged lines are set aside beside
//     the file and never keep a conversation from being opened.
//
// [Journal] is one conversation, [Store] is where they live. There is a file
// version and a memory version of both; package journaltest holds the suite that
// every version has to pass. Start reading at [Journal].
package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A Record is one numbered entry.
type Record struct {
	Seq     uint64
	Time    time.Time
	Turn    int
	Kind    string
	Body    json.RawMessage
	Unsaved bool // the journal has failed: only in memory
}

// An Entry is what is to be recorded.
type Entry struct {
	Turn int
	Kind string
	Body json.RawMessage
	// Closes names the open item that this record finishes. A name that ends in
	// "." closes every open item whose name begins with it. The item's bytes
	// are dropped in the same instant in which the record becomes visible.
	Closes string
}

// A Chunk is a piece of an open item. Texts are valid UTF-8 and cut between runes.
type Chunk struct {
	Item   string
	Tag    string // what the writer called it, such as "message" or "stderr"
	Offset int64  // in bytes from the item's start
	Text   string
}

// A Journal holds the records of one conversation. All methods may be called
// from any goroutine.
type Journal interface {
	// Append numbers the entries and queues them to be made durable together and
	// in order. It returns the last number given. It never waits for the disk.
	// The bodies must be JSON and must not be changed afterwards. A journal that
	// is closed, or being closed, ignores them.
	Append(entries ...Entry) uint64

	// Durable returns the number up to which records are visible to readers,
	// and the error that made the journal fail, if it has. After a failure every
	// appended record is visible, those that are not on disk as Unsaved.
	Durable() (uint64, error)

	// Notify returns a channel, the same at each call, with room for one, that
	// receives whenever Durable changed. It has one user: the owner.
	Notify() <-chan struct{}

	// Open starts a scope of open items. Items of one scope follow each other: a
	// reader is given the chunks of the second only when the first is closed.
	Open(scope string) Scope

	// OpenItems returns everything written to items that are not closed, oldest
	// item first, adjacent chunks of one tag joined. An item is closed from the
	// moment its record is appended, although readers are given its bytes until
	// the record is visible. After a crash these are the items that were open
	// then, as far as they reached the file; each is in a scope of its own.
	OpenItems() []Chunk

	// Read returns at most limit visible records after the given number.
	Read(after uint64, limit int) ([]Record, error)

	// Follow returns a reader that gives everything after the given number, old
	// and new, and the chunks of open items.
	Follow(after uint64) Reader

	// Checkpoint keeps state, which was derived from the records up to seq, so
	// that the next Open can begin there. It may be lost at any time and must
	// not be called with a seq that is not visible.
	Checkpoint(seq uint64, state []byte) error

	// Recovery tells what Open found.
	Recovery() Recovery

	// Close makes everything appended durable, then releases the conversation.
	// It returns the error that made the journal fail, if it has.
	Close() error
}

// A Scope is the right to write open items. Its methods may be called from any
// goroutine.
type Scope interface {
	// Write adds text to an item, which is opened if need be. It reports false,
	// and does nothing, if the scope is sealed, if the journal is closed, or if a
	// record that closes the item was appended since the scope was opened, be it
	// durable or not, and be the item written to before or not.
	Write(item, tag, text string) bool

	// Seal ends the scope: nothing can be written any more. What was written
	// stays until a record closes it.
	Seal()
}

// A Reader follows a journal. It is used by one goroutine; it never slows the
// writer down and has nothing to close.
type Reader interface {
	// Next waits for something new and returns it: records that follow the last
	// ones returned, or, when there are none, chunks that follow what was
	// returned of each open item. One of the two is empty. A chunk whose offset
	// is beyond the end of what was returned before means that a part of an item
	// too large to be kept was left out. Next returns the context's error when ctx ends,
	// and ErrClosed when the journal is closed and everything was returned.
	Next(ctx context.Context) ([]Record, []Chunk, error)
}

// Recovery is what was found, and done, when a journal was opened.
type Recovery struct {
	Checkpoint    []byte // as given to Journal.Checkpoint, or nil
	CheckpointSeq uint64
	Last          uint64   // number of the last record
	Torn          int64    // bytes of an unfinished last line that were set aside
	Damaged       []Damage // what else was set aside
}

// Damage is a stretch of the file that could not be read. Records that were
// lost with it are replaced by records of the kind "damaged".
type Damage struct {
	Offset  int64
	Bytes   int64
	Records int    // how many numbers were lost with it
	File    string // where the bytes are now; empty if nothing was moved
}

// ErrClosed is returned by readers of a closed journal.
var ErrClosed = fmt.Errorf("journal is closed")

// ErrNotFound is returned for a conversation that does not exist.
var ErrNotFound = fmt.Errorf("no such conversation")

// A LockedError says that another process writes to the conversation.
type LockedError struct {
	PID int // 0 if it is not known
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return "another process has this conversation open"
	}
	return fmt.Sprintf("process %d has this conversation open", e.PID)
}

// A Store is where conversations live.
type Store interface {
	// Create starts the journal of a new conversation. Nothing can fail later
	// that could have been found out now: the file exists and is writable.
	Create(id string, at time.Time) (Journal, error)

	// Open opens a conversation for writing, after repairing it. It waits up to
	// three seconds for another writer that is ending, then returns a *LockedError.
	Open(ctx context.Context, id string) (Journal, error)

	// Repair opens a conversation as Open does, but looks at all of it, also at
	// what a checkpoint would let Open pass over, and closes it.
	Repair(ctx context.Context, id string) (Recovery, error)

	// View opens a conversation for reading. It takes no lock and repairs nothing.
	View(id string) (View, error)

	// List returns the conversations, archived ones too, in no particular order.
	List() ([]Info, error)

	// Archive puts a conversation aside; Delete removes it and all its files.
	// Both refuse one that is open for writing, with a *LockedError.
	Archive(id string) error
	Delete(id string) error
}

// Info is what a store knows of a conversation without reading it.
type Info struct {
	ID       string
	Path     string // empty in memory
	Modified time.Time
	Size     int64
	Archived bool
}

// A View is a conversation as it stands, damage and all. It may be ahead of what
// readers of an open journal see: it cannot tell what is not yet durable.
type View interface {
	// Read is like Journal.Read. Damaged lines are left out.
	Read(after uint64, limit int) ([]Record, error)

	// Tail returns the last visible records, at most limit, oldest first,
	// without reading the whole.
	Tail(limit int) ([]Record, error)

	// Has reports whether there may be a record of a kind: no is certain, and
	// found out much faster than by reading.
	Has(kind string) (bool, error)

	// Check reads everything and returns what is wrong: damage, a torn tail,
	// gaps and repeats in the numbers.
	Check() ([]Fault, error)

	// OpenItems is like Journal.OpenItems.
	OpenItems() []Chunk

	Close() error
}

// A Fault is something wrong with a journal's file.
type Fault struct {
	Line   int // 1-based; 0 if it concerns the whole
	Offset int64
	Text   string // one line, for people
}

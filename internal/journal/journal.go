// Package journal keeps the numbered records of conversations: append-only,
// checksummed, one writer, any number of readers.
//
// What it guarantees:
//   - Append numbers records 1, 2, 3 … without gaps and never waits for the disk.
//     A writer of the journal's own makes them durable, in groups. What one call
//     appends is a batch: a crash leaves all of it or nothing.
//   - A record becomes visible to readers when it is durable, not before: what a
//     reader has seen, no crash takes back. After a write error the journal is
//     failed: what is appended from then on is visible at once, marked Unsaved.
//   - The bytes of open items (text that streams, a command's output) are visible
//     at once, by offset. They reach the file within 100 ms and are synced within
//     a second, without a number, and are superseded by the record that closes
//     the item.
//   - Opening repairs: a torn tail, holes and damaged lines are set aside beside
//     the file and never keep a conversation from being opened.
//
// [Store] is where conversations live, [Journal] the writer of one, [Reader] what
// everybody else gets. This package holds the memory version; package file is the
// one that lasts. A version embeds a [Log] and is its [Backend]; package journaltest
// holds the suite that every version has to pass. Start reading at [Journal].
package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/protocol"
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
	// Time is when it happened, for what was recorded elsewhere before; zero is now.
	Time time.Time
}

// A Chunk is a piece of an open item, byte for byte as it was written. Where it is
// UTF-8, it is cut between runes.
type Chunk struct {
	Item   string
	Tag    string // what the writer called it, such as "message" or "stderr"
	Offset int64  // in bytes from the item's start
	Text   string
}

// A Reader reads one conversation, whether this process writes to it or another
// does. All methods may be called from any goroutine.
type Reader interface {
	// Read returns at most limit visible records after the given number.
	Read(ctx context.Context, after uint64, limit int) ([]Record, error)

	// OpenItems returns everything written to items that are not closed, oldest
	// item first, adjacent chunks of one tag joined. An item is closed from the
	// moment its record is appended, although readers are given its bytes until
	// the record is visible. After a crash these are the items that were open
	// then, as far as they reached the store; each is in a scope of its own. A
	// Journal has them in memory: there it neither waits nor fails.
	OpenItems(ctx context.Context) ([]Chunk, error)

	// Follow returns a follower that gives everything after the given number, old
	// and new, and the chunks of open items.
	Follow(after uint64) Follower
}

// A Journal is the writer of one conversation. All methods may be called from
// any goroutine.
type Journal interface {
	Reader

	// Append numbers the entries and queues them to be made durable together and
	// in order: they are one batch, of which a crash leaves all or none. It
	// returns the last number given. It never waits for the disk.
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

	// Checkpoint keeps state, which was derived from the records up to seq, so
	// that the next Open can begin there. It may be lost at any time and must
	// not be called with a seq that is not visible.
	Checkpoint(ctx context.Context, seq uint64, state []byte) error

	// Recovery returns what Open found.
	Recovery() Recovery

	// Close makes everything appended durable, then releases the conversation.
	// It returns the error that made the journal fail, if it has.
	Close() error
}

// A Scope is the right to write open items. Its methods may be called from any
// goroutine.
type Scope interface {
	// Write adds text to an item, which is opened if necessary. It reports false,
	// and does nothing, if the scope is sealed, if the journal is closed, or if a
	// record that closes the item was appended since the scope was opened, be it
	// durable or not, and be the item written to before or not.
	Write(item, tag, text string) bool

	// Seal ends the scope: nothing can be written any more. What was written
	// stays until a record closes it.
	Seal()
}

// A Follower reads a conversation as it grows. It is used by one goroutine; it
// never slows the writer down and has nothing to close.
type Follower interface {
	// Next waits for something new and returns it: records that follow the last
	// ones returned, or, when there are none, chunks that follow what was
	// returned of each open item. One of the two is empty. A chunk whose offset
	// is beyond the end of what was returned before means that a part of an item
	// too large to be kept was left out. Next returns the context's error when ctx
	// ends, and ErrClosed when the journal is closed and everything was returned.
	Next(ctx context.Context) ([]Record, []Chunk, error)
}

// Recovery is what was found, and done, when a journal was opened.
type Recovery struct {
	Checkpoint    []byte // as given to Journal.Checkpoint, or nil
	CheckpointSeq uint64
	Last          uint64   // number of the last record
	Torn          int64    // bytes of an unfinished last line, or batch, that were set aside
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

// An Owner is the process that has a conversation open for writing.
type Owner = protocol.Owner

// A LockedError says who that is.
type LockedError = protocol.LockedError

// A Store is where conversations live. All methods may be called from any
// goroutine; those that take a context may wait for a disk or a network.
type Store interface {
	// Create starts the journal of a new conversation. Nothing can fail later
	// that could have been found out now: the file exists and is writable.
	Create(ctx context.Context, id string, at time.Time) (Journal, error)

	// Open opens a conversation for writing, after repairing it. It waits up to
	// three seconds for another writer that is ending, then returns a *LockedError.
	Open(ctx context.Context, id string) (Journal, error)

	// Repair opens a conversation as Open does, but looks at all of it, also at
	// what a checkpoint would let Open skip, and closes it.
	Repair(ctx context.Context, id string) (Recovery, error)

	// SetAside removes the records after the given number from a conversation, and
	// what was written to open items. Whatever a store can keep of them, it keeps
	// beside the conversation.
	SetAside(ctx context.Context, id string, after uint64) error

	// Owner returns who has a conversation open for writing, if a process has.
	Owner(ctx context.Context, id string) (Owner, bool, error)

	// View opens a conversation for reading. It takes no lock and repairs nothing.
	View(ctx context.Context, id string) (View, error)

	// Stat returns what is known of a conversation without reading it. It needs no
	// descriptor, so that many conversations can be watched.
	Stat(ctx context.Context, id string) (Info, error)

	// Watch reports when another process may have changed a conversation: changed receives a value then, and is closed
	// when its files were moved or removed: who still wants to know calls Watch again. It is nil if the store cannot report
	// it, and the caller has to look from time to time. stop ends it, and must be called.
	Watch(ctx context.Context, id string) (changed <-chan struct{}, stop func())

	// List returns the conversations, archived ones too, in no particular order. With an
	// *IncompleteError it returns those that it found.
	List(ctx context.Context) ([]Info, error)

	// Archive puts a conversation aside, Unarchive brings it back; Delete removes it and all its
	// files. They refuse one that is open for writing, with a *LockedError.
	Archive(ctx context.Context, id string) error
	Unarchive(ctx context.Context, id string) error
	Delete(ctx context.Context, id string) error
}

// An IncompleteError says that there may be conversations that were not found, because something could not be
// read.
type IncompleteError struct {
	Unread []Unread
}

// Unread is a directory that could not be read.
type Unread struct {
	Path     string
	Archived bool // it would hold archived conversations
	Err      error
}

func (u Unread) String() string {
	return fmt.Sprintf("cannot read the conversations in %s: %v", u.Path, u.Err)
}

func (e *IncompleteError) Error() string {
	texts := make([]string, len(e.Unread))
	for i, u := range e.Unread {
		texts[i] = u.String()
	}
	return strings.Join(texts, "; ")
}

// Info is what a store knows of a conversation without reading it.
type Info struct {
	ID       string
	Path     string // empty in memory
	Modified time.Time
	Size     int64
	Archived bool
}

// A View reads a conversation as it stands, damage and all, also while another
// process writes to it. It may be ahead of what readers of an open journal see: it
// cannot know what is not yet durable. Damaged lines are left out of what it
// returns. A follower of a View never returns ErrClosed: a process may always write
// more.
type View interface {
	Reader

	// Tail returns the last visible records, oldest first, without reading the
	// whole: at most limit, and fewer, but at least one, if they are large.
	Tail(ctx context.Context, limit int) ([]Record, error)

	// Last returns the last visible record of a kind, if there is one. It is fast
	// also if the conversation is large and there is none.
	Last(ctx context.Context, kind string) (Record, bool, error)

	// Check reads everything and returns what is wrong: damage, a torn tail,
	// gaps and repeats in the numbers.
	Check(ctx context.Context) ([]Fault, error)

	Close() error
}

// A Fault is something wrong with a journal's file.
type Fault struct {
	Line   int // 1-based; 0 if it concerns the whole
	Offset int64
	Text   string // one line, for people
	AtEnd  bool   // the last line or batch is unfinished: a writer may be about to finish it
}

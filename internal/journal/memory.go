package journal

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/protocol"
)

// MemoryOptions lets a memory store behave like a disk. The zero value is a
// disk that takes no time and never fails: records are visible when Append returns.
type MemoryOptions struct {
	// SyncDelay says how long the next sync takes. The functions are called
	// from goroutines of the journals, also at the same time.
	SyncDelay func() time.Duration
	// SyncError makes the next sync, and with it the journal, fail.
	SyncError func() error
}

// A MemoryStore keeps conversations for as long as the process lives.
type MemoryStore struct {
	options MemoryOptions

	mu            sync.Mutex
	conversations map[string]*memoryConversation
}

var _ Store = (*MemoryStore)(nil)

// A memoryConversation is guarded by the store's mutex.
type memoryConversation struct {
	log           *Log // of the journal while it is open, else of what it left behind
	open          *memoryJournal
	modified      time.Time
	archived      bool
	checkpoint    []byte
	checkpointSeq uint64
}

// NewMemoryStore returns an empty store.
func NewMemoryStore(o MemoryOptions) *MemoryStore {
	return &MemoryStore{options: o, conversations: make(map[string]*memoryConversation)}
}

// Create implements Store.
func (s *MemoryStore) Create(_ context.Context, id string, at time.Time) (Journal, error) {
	if !ValidID(id) {
		return nil, fmt.Errorf("create conversation: %q is not a conversation id", id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conversations[id] != nil {
		return nil, fmt.Errorf("create conversation %s: %w", id, os.ErrExist)
	}
	c := &memoryConversation{log: NewLog(LogOptions{}), modified: at}
	s.conversations[id] = c
	return s.start(c), nil
}

// Open implements Store.
func (s *MemoryStore) Open(ctx context.Context, id string) (Journal, error) {
	var j Journal
	err := WaitForLock(ctx, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		c, err := s.unlocked(id)
		if err != nil {
			return err
		}
		j = s.start(c)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open conversation %s: %w", id, err)
	}
	return j, nil
}

// Repair implements Store. Memory is never damaged.
func (s *MemoryStore) Repair(ctx context.Context, id string) (Recovery, error) {
	j, err := s.Open(ctx, id)
	if err != nil {
		return Recovery{}, err
	}
	return j.Recovery(), j.Close()
}

// SetAside implements Store. Nothing is kept.
func (s *MemoryStore) SetAside(_ context.Context, id string, after uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.unlocked(id)
	if err != nil {
		return fmt.Errorf("set aside records of conversation %s: %w", id, err)
	}
	if after < c.log.saved {
		c.log = c.log.rest(after, func(*Item) int64 { return 0 })
		c.checkpoint, c.checkpointSeq = nil, 0
	}
	return nil
}

// Owner implements Store.
func (s *MemoryStore) Owner(_ context.Context, id string) (Owner, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conversations[id]
	if c == nil {
		return Owner{}, false, fmt.Errorf("look at conversation %s: %w", id, ErrNotFound)
	}
	if c.open == nil {
		return Owner{}, false, nil
	}
	return protocol.Self(""), true, nil
}

// unlocked returns a conversation that no process writes to.
func (s *MemoryStore) unlocked(id string) (*memoryConversation, error) {
	c := s.conversations[id]
	if c == nil {
		return nil, ErrNotFound
	}
	if c.open != nil {
		return nil, &LockedError{Owner: protocol.Self("")}
	}
	return c, nil
}

// start opens a conversation that is not open, with the store's mutex.
func (s *MemoryStore) start(c *memoryConversation) *memoryJournal {
	l := c.log.rest(c.log.saved, nil)
	l.phase = Running
	j := &memoryJournal{
		Log:          l,
		store:        s,
		conversation: c,
		killed:       make(chan struct{}),
		recovery:     Recovery{Checkpoint: c.checkpoint, CheckpointSeq: c.checkpointSeq, Last: l.saved},
	}
	l.back, l.onWrite = j, mark
	c.log, c.open = l, j
	return j
}

// View implements Store.
func (s *MemoryStore) View(_ context.Context, id string) (View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conversations[id]
	if c == nil {
		return nil, fmt.Errorf("view conversation %s: %w", id, ErrNotFound)
	}
	return memoryView{s, c}, nil
}

// Watch implements Store. It cannot report.
func (s *MemoryStore) Watch(context.Context, string) (<-chan struct{}, func()) { return nil, func() {} }

// Stat implements Store.
func (s *MemoryStore) Stat(_ context.Context, id string) (Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conversations[id]
	if c == nil {
		return Info{}, fmt.Errorf("look at conversation %s: %w", id, ErrNotFound)
	}
	return c.info(id), nil
}

// List implements Store.
func (s *MemoryStore) List(context.Context) ([]Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var infos []Info
	for id, c := range s.conversations {
		infos = append(infos, c.info(id))
	}
	return infos, nil
}

// info is called with the store's mutex.
func (c *memoryConversation) info(id string) Info {
	return Info{ID: id, Modified: c.log.modified(c.modified), Size: c.log.size(), Archived: c.archived}
}

// Archive implements Store.
func (s *MemoryStore) Archive(_ context.Context, id string) error {
	if err := s.setArchived(id, true); err != nil {
		return fmt.Errorf("archive conversation %s: %w", id, err)
	}
	return nil
}

// Unarchive implements Store.
func (s *MemoryStore) Unarchive(_ context.Context, id string) error {
	if err := s.setArchived(id, false); err != nil {
		return fmt.Errorf("unarchive conversation %s: %w", id, err)
	}
	return nil
}

func (s *MemoryStore) setArchived(id string, archived bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.unlocked(id)
	if err == nil {
		c.archived = archived
	}
	return err
}

// Delete implements Store.
func (s *MemoryStore) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.unlocked(id); err != nil {
		return fmt.Errorf("delete conversation %s: %w", id, err)
	}
	delete(s.conversations, id)
	return nil
}

// A memoryJournal is a Log with a simulated disk.
type memoryJournal struct {
	*Log
	store        *MemoryStore
	conversation *memoryConversation
	recovery     Recovery
	killed       chan struct{} // closed by MemoryStore.Crash

	busy chan struct{} // guarded by log.mu; closed when the sync that runs is over, nil if none does
}

// Appended implements Backend.
func (j *memoryJournal) Appended() {
	l := j.Log
	l.mu.Lock()
	if j.store.options.SyncDelay == nil {
		to := l.last
		l.mu.Unlock()
		j.sync(to)
		return
	}

	defer l.mu.Unlock()
	if j.busy != nil {
		return
	}
	j.busy = make(chan struct{})
	go j.syncAll(j.busy) // ends when everything is durable, or killed; Close waits for it
}

// syncAll syncs, in groups, until nothing is left.
func (j *memoryJournal) syncAll(done chan<- struct{}) {
	defer close(done)
	l := j.Log
	for {
		l.mu.Lock()
		to := l.last
		if to == l.saved || l.err != nil || l.phase == Dead {
			j.busy = nil
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		select {
		case <-time.After(j.store.options.SyncDelay()):
		case <-j.killed:
		}
		j.sync(to)
	}
}

func (j *memoryJournal) sync(to uint64) {
	if f := j.store.options.SyncError; f != nil && j.unsaved(to) {
		if err := f(); err != nil {
			j.Fail(err)
			return
		}
	}
	j.Commit(to)
}

// Wrote implements Backend: nothing is to be written anywhere.
func (j *memoryJournal) Wrote(before, after int) {}

// Old implements Backend; a memory log never forgets.
func (j *memoryJournal) Old(_ context.Context, after, upTo uint64, limit int) ([]Record, error) {
	panic("journal: memory window was trimmed")
}

// Checkpoint implements Journal.
func (j *memoryJournal) Checkpoint(_ context.Context, seq uint64, state []byte) error {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	if err := j.MayCheckpoint(seq); err != nil {
		return err
	}
	if j.conversation.open != j {
		return fmt.Errorf("checkpoint at record %d: %w", seq, ErrClosed)
	}

	j.conversation.checkpoint = append([]byte{}, state...)
	j.conversation.checkpointSeq = seq
	return nil
}

// Recovery implements Journal.
func (j *memoryJournal) Recovery() Recovery { return j.recovery }

// Close implements Journal.
func (j *memoryJournal) Close() error {
	j.Enter(Closing)
	j.finish()
	j.Enter(Closed)

	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	if c := j.conversation; c.open == j {
		c.modified = j.modified(c.modified)
		c.log, c.open = j.rest(j.saved, nil), nil
	}
	return j.Failure()
}

// finish waits until everything is durable, or has failed.
func (j *memoryJournal) finish() {
	for {
		j.mu.Lock()
		busy, last := j.busy, j.last
		j.mu.Unlock()
		if busy == nil {
			j.sync(last)
			return
		}
		<-busy
	}
}

// A memoryView looks at a conversation, whichever log it has at the time.
type memoryView struct {
	store        *MemoryStore
	conversation *memoryConversation
}

func (v memoryView) log() *Log {
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	return v.conversation.log
}

// Read implements Reader.
func (v memoryView) Read(ctx context.Context, after uint64, limit int) ([]Record, error) {
	return v.log().Read(ctx, after, limit)
}

// OpenItems implements Reader.
func (v memoryView) OpenItems(ctx context.Context) ([]Chunk, error) { return v.log().OpenItems(ctx) }

// Follow implements Reader.
func (v memoryView) Follow(after uint64) Follower {
	return Poll(v, after)
}

// Tail implements View.
func (v memoryView) Tail(ctx context.Context, limit int) ([]Record, error) {
	l := v.log()
	visible, _ := l.Durable()
	return l.Read(ctx, visible-min(visible, uint64(max(limit, 0))), limit)
}

// Last implements View.
func (v memoryView) Last(ctx context.Context, kind string) (Record, bool, error) {
	l := v.log()
	visible, _ := l.Durable()
	recs, err := l.Read(ctx, 0, int(visible))
	for _, r := range slices.Backward(recs) {
		if r.Kind == kind {
			return r, true, err
		}
	}
	return Record{}, false, err
}

// Check implements View.
func (v memoryView) Check(context.Context) ([]Fault, error) { return nil, nil }

// Close implements View.
func (v memoryView) Close() error { return nil }

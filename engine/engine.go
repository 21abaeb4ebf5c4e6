// Package engine is fermata as a library: conversations by id. Every surface (the
// command line, the terminal UI, the servers) is a client of [Engine] and of nothing below it.
//
// Submit an op, Subscribe to events: that is all there is. [RunTurn] is the two
// together for one message: what a script, an MCP call or an editor's prompt wants.
package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// An Engine holds conversations. Its methods may be called from any goroutine.
type Engine interface {
	// Create begins a conversation. It is durable when Create returns.
	Create(ctx context.Context, s p.Settings) (p.ConversationID, error)

	// Resume opens a conversation if nobody has, which cleans up after a crash,
	// and tells where it stands.
	Resume(ctx context.Context, id p.ConversationID) (Snapshot, error)

	// Submit hands an op to a conversation, opening it if need be. It is accepted
	// and recorded, or refused, never half. An Interrupt is answered at once;
	// with no turn to stop, the answer is ErrNothingToStop.
	Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error)

	// Subscribe gives every event after the cursor, old and new, and the deltas
	// of open items, until ctx ends. An error is the last thing it gives.
	Subscribe(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error]

	// Fork copies a conversation up to the end of the last turn that ended at or
	// before the given event (0: all of it) into a new one.
	Fork(ctx context.Context, id p.ConversationID, upTo p.Seq) (p.ConversationID, error)

	// List returns conversations, those changed last first.
	List(ctx context.Context, o ListOptions) (Page, error)

	// Archive puts a conversation aside; Delete removes it. A turn that runs is
	// stopped first.
	Archive(ctx context.Context, id p.ConversationID) error
	Delete(ctx context.Context, id p.ConversationID) error

	// Shutdown stops every turn and closes every conversation. A turn that only waits
	// for an approval goes on waiting when its conversation is resumed.
	Shutdown(ctx context.Context) error
}

// A Snapshot is where a conversation stands.
type Snapshot = conversation.Snapshot

// What an engine answers to an op that does not fit.
var (
	ErrNotFound      = journal.ErrNotFound
	ErrClosed        = conversation.ErrClosed
	ErrNothingToStop = turn.ErrNothingToStop
	ErrNoApproval    = turn.ErrNoApproval
	ErrNoInput       = turn.ErrNoInput
	ErrBusy          = turn.ErrBusy
	ErrEmpty         = turn.ErrEmpty
	ErrDecision      = turn.ErrDecision
	ErrNoBackground  = turn.ErrNoBackground
	ErrRevert        = conversation.ErrRevert
)

// A LockedError says which process has a conversation open.
type LockedError = journal.LockedError

// Options are what a local engine is made of.
type Options struct {
	Store  journal.Store       // where conversations are kept
	Config conversation.Config // what they are run with; ID and Settings are filled in
}

// A Local engine runs conversations in this process.
type Local struct {
	base   context.Context
	store  journal.Store
	memory journal.Store // for ephemeral conversations
	cfg    conversation.Config

	mu    sync.Mutex
	slots map[p.ConversationID]*slot // guarded by mu
	ended bool                       // guarded by mu
}

// A slot is a conversation that is open, or being opened.
type slot struct {
	ready chan struct{} // closed when conv or err is set
	conv  *conversation.Conversation
	err   error
}

var _ Engine = (*Local)(nil)

// New makes a local engine. ctx gives values to what runs; its end stops nothing:
// call Shutdown.
func New(ctx context.Context, o Options) *Local {
	return &Local{
		base: context.WithoutCancel(ctx), store: o.Store, memory: journal.NewMemoryStore(journal.MemoryOptions{}),
		cfg: o.Config, slots: map[p.ConversationID]*slot{},
	}
}

// Create begins a conversation.
func (l *Local) Create(ctx context.Context, s p.Settings) (p.ConversationID, error) {
	now := time.Now()
	id := p.NewConversationID(now)
	store := l.store
	if s.Ephemeral {
		store = l.memory
	}
	_, err := l.slot(ctx, id, func() (*conversation.Conversation, error) {
		j, err := store.Create(string(id), now)
		if err != nil {
			return nil, fmt.Errorf("create conversation: %w", err)
		}
		cfg := l.cfg
		cfg.ID, cfg.Settings = id, s
		c, err := conversation.Start(l.base, cfg, j)
		if err != nil {
			_ = store.Delete(string(id)) // nobody was told of it
		}
		return c, err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// Resume opens a conversation and tells where it stands.
func (l *Local) Resume(ctx context.Context, id p.ConversationID) (Snapshot, error) {
	c, err := l.find(ctx, id)
	if err != nil {
		return Snapshot{}, err
	}
	return c.Snapshot(ctx)
}

// Submit hands an op to a conversation.
func (l *Local) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	c, err := l.find(ctx, id)
	if err != nil {
		return p.Receipt{}, err
	}
	return c.Submit(ctx, op)
}

func (l *Local) find(ctx context.Context, id p.ConversationID) (*conversation.Conversation, error) {
	return l.slot(ctx, id, func() (*conversation.Conversation, error) {
		j, err := l.store.Open(ctx, string(id))
		if err != nil {
			return nil, err // it says what could not be opened
		}
		cfg := l.cfg
		cfg.ID = id
		return conversation.Open(l.base, cfg, j)
	})
}

// slot returns the open conversation, or opens it; of several callers one does.
func (l *Local) slot(ctx context.Context, id p.ConversationID, open func() (*conversation.Conversation, error)) (*conversation.Conversation, error) {
	s, mine, err := l.reserve(id)
	if err != nil {
		return nil, err
	}
	if mine {
		s.conv, s.err = open()
		if s.err != nil {
			l.drop(id, s)
		}
		close(s.ready)
	}
	select {
	case <-s.ready:
		return s.conv, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *Local) reserve(id p.ConversationID) (s *slot, mine bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, false, ErrClosed
	}
	if s := l.slots[id]; s != nil && !s.gone() {
		return s, false, nil
	}
	s = &slot{ready: make(chan struct{})}
	l.slots[id] = s
	return s, true, nil
}

// gone reports whether the conversation has closed itself, because its journal
// failed. It can be opened again.
func (s *slot) gone() bool {
	select {
	case <-s.ready:
	default:
		return false
	}
	if s.conv == nil {
		return true
	}
	select {
	case <-s.conv.Done():
		return true
	default:
		return false
	}
}

func (l *Local) drop(id p.ConversationID, s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots[id] == s {
		delete(l.slots, id)
	}
}

// close stops and closes a conversation if it is open.
func (l *Local) close(ctx context.Context, id p.ConversationID) error {
	l.mu.Lock()
	s := l.slots[id]
	l.mu.Unlock()
	if s == nil {
		return nil
	}
	<-s.ready
	if s.conv == nil {
		return nil
	}
	if _, err := s.conv.Submit(ctx, p.Interrupt{}); err != nil && !errors.Is(err, ErrNothingToStop) && !errors.Is(err, ErrClosed) {
		return err
	}
	return l.release(ctx, id)
}

// release closes a conversation if it is open. A turn that only waits for a
// person goes on waiting.
func (l *Local) release(ctx context.Context, id p.ConversationID) error {
	l.mu.Lock()
	s := l.slots[id]
	l.mu.Unlock()
	if s == nil || s.conv == nil {
		return nil
	}
	err := s.conv.Close(ctx)
	l.drop(id, s)
	return err
}

// Archive puts a conversation aside.
func (l *Local) Archive(ctx context.Context, id p.ConversationID) error {
	if err := l.close(ctx, id); err != nil {
		return fmt.Errorf("archive conversation %s: %w", id, err)
	}
	return l.store.Archive(string(id))
}

// Delete removes a conversation.
func (l *Local) Delete(ctx context.Context, id p.ConversationID) error {
	_ = l.close(ctx, id) // a journal that failed does not keep it from being removed
	return l.store.Delete(string(id))
}

// Kill ends every conversation at once, as a crash would: nothing more is
// recorded, and nobody is waited for.
func (l *Local) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for _, s := range l.slots {
		<-s.ready
		if s.conv != nil {
			s.conv.Kill()
		}
	}
}

// Shutdown stops every turn and closes every conversation.
func (l *Local) Shutdown(ctx context.Context) error {
	l.mu.Lock()
	l.ended = true
	var open []*slot
	for _, s := range l.slots {
		open = append(open, s)
	}
	l.mu.Unlock()

	errs := make(chan error, len(open)) // room for all: nobody waits
	for _, s := range open {
		go func() { // bounded by ctx
			<-s.ready
			if s.conv == nil {
				errs <- nil
				return
			}
			errs <- s.conv.Close(ctx)
		}()
	}
	var all []error
	for range open {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

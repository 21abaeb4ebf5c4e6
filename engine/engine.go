package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// An Engine holds conversations. Its methods may be called from any goroutine. What
// goes in and comes out is plain values; errors are to be looked at with errors.Is and errors.As. A
// context that has ended already has nothing recorded.
type Engine interface {
	// Create begins a conversation. It is durable when Create returns. WithNewID sets its id.
	Create(ctx context.Context, s p.Settings) (p.ConversationID, error)

	// Resume opens a conversation if it is not open, which cleans up after a
	// crash, and reports its state.
	Resume(ctx context.Context, id p.ConversationID) (Snapshot, error)

	// Submit hands an op to a conversation, opening it if need be. It is accepted
	// and recorded, or refused, never half. An Interrupt is answered at once;
	// without a turn to interrupt, the answer is ErrNothingToStop.
	Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error)

	// Subscribe gives every event after the cursor, old and new, and the deltas
	// of open items, until ctx ends. An error is the last thing it gives.
	Subscribe(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error]

	// Attach is Subscribe that calls live once, between two events: when it has
	// given everything that was there when it was called. That is every event
	// recorded until then, on disk or not, and the text so far of each open item.
	Attach(ctx context.Context, id p.ConversationID, after p.Cursor, live func()) iter.Seq2[p.Event, error]

	// Fork copies a conversation up to the end of the last turn that ended at or
	// before the given event (0: all of it) into a new one. WithNewID sets its id.
	Fork(ctx context.Context, id p.ConversationID, upTo p.Seq) (p.ConversationID, error)

	// List returns conversations, those changed last first.
	List(ctx context.Context, o ListOptions) (Page, error)

	// Archive puts a conversation aside, Unarchive brings it back; Delete removes it. A turn that runs is
	// interrupted first.
	Archive(ctx context.Context, id p.ConversationID) error
	Unarchive(ctx context.Context, id p.ConversationID) error
	Delete(ctx context.Context, id p.ConversationID) error

	// Release interrupts a turn that runs and closes the conversation if it is
	// open, so that another process can open it. A turn that only waits for an
	// approval is left waiting. The next op opens the conversation again.
	Release(ctx context.Context, id p.ConversationID) error

	// Shutdown interrupts every turn and closes every conversation. A turn that
	// only waits for an approval is left waiting, and is there when its conversation
	// is resumed.
	Shutdown(ctx context.Context) error
}

// A Snapshot is the state of a conversation.
type Snapshot = p.Snapshot

// What an engine answers to an op that does not fit.
var (
	ErrNotFound      = journal.ErrNotFound
	ErrClosed        = conversation.ErrClosed
	ErrNothingToStop = turn.ErrNothingToStop
	ErrNoApproval    = turn.ErrNoApproval
	ErrNoElicitation = turn.ErrNoElicitation
	ErrNoInput       = turn.ErrNoInput
	ErrNotReturned   = turn.ErrNotReturned
	ErrBusy          = turn.ErrBusy
	ErrEmpty         = turn.ErrEmpty
	ErrWhenBusy      = turn.ErrWhenBusy
	ErrSteerSettings = turn.ErrSteerSettings
	ErrNotSteerable  = turn.ErrNotSteerable
	ErrDecision      = turn.ErrDecision
	ErrNoBackground  = turn.ErrNoBackground
	ErrRevert        = conversation.ErrRevert
)

// A LockedError says which process has a conversation open.
type LockedError = p.LockedError

// An Owner is that process.
type Owner = p.Owner

// A Local engine runs conversations in this process.
type Local struct {
	base   context.Context
	store  journal.Store
	memory journal.Store // for ephemeral conversations
	cfg    conversation.Config
	limit  int           // how many may be open while some are idle; 0 is no limit
	over   chan struct{} // closed when ended

	changed func()                                                   // Config.Changed, never nil
	ready   func(context.Context, Snapshot, p.Op) (Readiness, error) // Config.Ready

	mu        sync.Mutex
	slots     map[p.ConversationID]*slot // guarded by mu
	watches   watches                    // guarded by mu
	uses      uint64                     // counts how often slots were asked for; guarded by mu
	ephemeral map[p.ConversationID]bool  // those in memory; guarded by mu
	ended     bool                       // guarded by mu
	killed    bool                       // guarded by mu
}

var _ Engine = (*Local)(nil)

// Create begins a conversation.
func (l *Local) Create(ctx context.Context, s p.Settings) (p.ConversationID, error) {
	id, err := newID(ctx)
	if err != nil {
		return "", fmt.Errorf("create conversation: %w", err)
	}
	err = l.once(ctx, id, 1, func() error { return l.CreateAs(ctx, id, s) })
	if err != nil {
		return "", err // it says what could not be created
	}
	return id, nil
}

// CreateAs is Create with an id that the caller has made with p.NewConversationID. The error is fs.ErrExist if there is such a
// conversation.
func (l *Local) CreateAs(ctx context.Context, id p.ConversationID, s p.Settings) error {
	if err := ValidSettings(s); err != nil {
		return fmt.Errorf("create conversation: %w", err)
	}
	return l.create(ctx, id, id.Time(), s.Ephemeral, func(_ context.Context, j journal.Journal) (*conversation.Conversation, error) {
		cfg := l.cfg
		cfg.ID, cfg.Settings = id, s
		return conversation.Start(l.base, cfg, j)
	})
}

// create makes a conversation and keeps it open. If that fails, or the caller
// leaves before it is done, nothing of it remains.
func (l *Local) create(ctx context.Context, id p.ConversationID, at time.Time, ephemeral bool, start func(context.Context, journal.Journal) (*conversation.Conversation, error)) error {
	if ephemeral {
		l.mu.Lock()
		l.ephemeral[id] = true
		l.mu.Unlock()
	}
	store := l.storeOf(id)
	remove := func() { _ = store.Delete(l.base, string(id)) } // nobody knows of it
	_, err := l.acquire(ctx, id, opening{
		open: func(ctx context.Context) (*conversation.Conversation, error) {
			j, err := store.Create(ctx, string(id), at)
			if err != nil {
				return nil, err
			}
			c, err := start(ctx, j)
			if err != nil {
				remove()
			}
			return c, err
		},
		undo: remove,
	})
	return err
}

// storeOf returns where a conversation is kept.
func (l *Local) storeOf(id p.ConversationID) journal.Store {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ephemeral[id] {
		return l.memory
	}
	return l.store
}

// Resume opens a conversation and reports its state.
func (l *Local) Resume(ctx context.Context, id p.ConversationID) (Snapshot, error) {
	var snap Snapshot
	err := l.with(ctx, id, func(c *conversation.Conversation) error {
		r, err := l.makeReady(ctx, c, nil)
		if err != nil {
			return err
		}
		snap, err = c.Snapshot(ctx)
		snap.Recovered = append(slices.Clip(snap.Recovered), r.Notes...)
		return err
	})
	return snap, err
}

// Submit hands an op to a conversation.
func (l *Local) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	op, err := ValidOp(op)
	if err != nil {
		return p.Receipt{}, err
	}
	var receipt p.Receipt
	err = l.with(ctx, id, func(c *conversation.Conversation) error {
		op := op
		if conversation.Runs(op) {
			r, err := l.makeReady(ctx, c, op)
			if err != nil {
				return err
			}
			if r.Op != nil {
				op = r.Op
			}
		}
		var err error
		receipt, err = c.Submit(ctx, op)
		return err
	})
	return receipt, err
}

// makeReady prepares a conversation for running here.
func (l *Local) makeReady(ctx context.Context, c *conversation.Conversation, op p.Op) (Readiness, error) {
	if l.ready == nil {
		return Readiness{}, nil
	}
	snap, err := c.Snapshot(ctx)
	if err != nil {
		return Readiness{}, err
	}
	r, err := l.ready(ctx, snap, op)
	if err == nil && r.Settings != nil {
		_, err = c.Submit(WithClient(ctx, Client{}), p.Configure{Overrides: *r.Settings}) // nobody has asked for it by a name
	}
	return r, err
}

// Release closes a conversation if it is open.
func (l *Local) Release(ctx context.Context, id p.ConversationID) error {
	return l.close(ctx, id, (*conversation.Conversation).Close)
}

// stop interrupts the turn, also one that only waits for an approval, and closes
// the conversation.
func stop(c *conversation.Conversation, ctx context.Context) error {
	if _, err := c.Submit(ctx, p.Interrupt{}); err != nil && !errors.Is(err, ErrNothingToStop) && !errors.Is(err, ErrClosed) {
		return err
	}
	return c.Close(ctx)
}

// Archive puts a conversation aside.
func (l *Local) Archive(ctx context.Context, id p.ConversationID) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	leave, err := l.exclude(ctx, id)
	if err != nil {
		return fmt.Errorf("archive conversation %s: %w", id, err)
	}
	defer leave()
	return l.storeOf(id).Archive(ctx, string(id))
}

// Unarchive brings an archived conversation back.
func (l *Local) Unarchive(ctx context.Context, id p.ConversationID) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	leave, err := l.exclude(ctx, id)
	if err != nil {
		return fmt.Errorf("unarchive conversation %s: %w", id, err)
	}
	defer leave()
	return l.storeOf(id).Unarchive(ctx, string(id))
}

// Delete removes a conversation. That its journal has failed does not prevent it.
func (l *Local) Delete(ctx context.Context, id p.ConversationID) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	leave, err := l.exclude(ctx, id)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("delete conversation %s: %w", id, err)
	}
	defer leave()
	if err := l.storeOf(id).Delete(ctx, string(id)); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ephemeral, id)
	return nil
}

// StopAll ends the turns of all open conversations as failed, with an error that says why, and does not wait for
// their ends. It is for a process that must not go on running them. Turns that only wait for an approval keep waiting.
func (l *Local) StopAll(ctx context.Context, because p.Error) {
	l.mu.Lock()
	var open []*slot
	for _, s := range l.slots {
		open = append(open, s)
	}
	l.mu.Unlock()
	for _, s := range open {
		select {
		case <-s.ready:
		default:
			continue // nothing of it runs
		}
		if s.conv != nil {
			_ = s.conv.Stop(ctx, &because) // closed is fine
		}
	}
}

// Kill ends every conversation at once, as a crash would: nothing more is
// recorded.
func (l *Local) Kill() {
	for _, s := range l.end(true) {
		<-s.ready
		if s.conv != nil {
			s.conv.Kill()
		}
	}
}

// Shutdown stops every turn and closes every conversation.
func (l *Local) Shutdown(ctx context.Context) error {
	open := l.end(false)
	errs := make(chan error, len(open)) // room for all: nobody waits
	for _, s := range open {
		go func() { errs <- s.close(ctx, (*conversation.Conversation).Close) }() // bounded by ctx
	}
	var all []error
	for range open {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

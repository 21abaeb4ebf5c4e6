package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// After how long a conversation in which nothing goes on is released.
const (
	idleAfter    = time.Second
	idleFollowed = time.Minute
)

// idleTime is a time as a Config has it: zero is the default, negative is never.
func idleTime(given, otherwise time.Duration) time.Duration {
	switch {
	case given == 0:
		return otherwise
	case given < 0:
		return 0
	}
	return given
}

// openLimit is how many conversations may be open while some of them are idle, when the process may have so many
// descriptors: each takes two, and one that runs a turn needs more for its model and its commands. 0 is no limit.
func openLimit(descriptors uint64) int {
	if descriptors == 0 {
		return 0
	}
	return int(max(4, min(descriptors, 1<<20)/8))
}

// shortOfDescriptors reports whether an operation failed because too many files are open.
func shortOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// openWithRoom opens a conversation when there is room for it: idle ones are
// released at once if there are too many, or descriptors run short.
func (l *Local) openWithRoom(ctx context.Context, o opening) (*conversation.Conversation, error) {
	if l.limit > 0 {
		l.makeRoom(ctx, l.limit)
	}
	for {
		conv, err := o.open(ctx)
		if !shortOfDescriptors(err) || !l.makeRoom(ctx, 1) {
			return conv, err
		}
	}
}

// view opens a conversation for reading.
func (l *Local) view(ctx context.Context, id p.ConversationID) (journal.View, error) {
	for {
		v, err := l.storeOf(id).View(ctx, string(id))
		if !shortOfDescriptors(err) || !l.makeRoom(ctx, 1) {
			return v, err
		}
	}
}

// makeRoom releases idle conversations, those that were used last at the end,
// until at most limit are open. It reports whether it has released any.
func (l *Local) makeRoom(ctx context.Context, limit int) bool {
	l.mu.Lock()
	var open []*slot
	for _, s := range l.slots {
		if s.isReady() && !s.gone() {
			open = append(open, s)
		}
	}
	surplus := len(l.slots) - limit
	if surplus > 0 {
		slices.SortFunc(open, func(a, b *slot) int { return cmp.Compare(a.used, b.used) })
	}
	l.mu.Unlock()

	released := false
	for _, s := range open {
		if surplus <= 0 {
			break
		}
		if !s.conv.ReleaseIdle(ctx) {
			continue
		}
		select {
		case <-s.conv.Done():
			released = true
			surplus--
		case <-ctx.Done():
			return released
		}
	}
	return released
}

// ReleaseWaiting closes a conversation that is open here unless something runs in it: its turn may wait, for an approval or a limit, and
// whoever opens the conversation next waits in its place.
func (l *Local) ReleaseWaiting(ctx context.Context, id p.ConversationID) error {
	return l.close(ctx, id, (*conversation.Conversation).ReleaseWaiting)
}

// watches are how followers of released conversations wait until they are opened. They are guarded by Local.mu.
type watches map[p.ConversationID]*watch

// A watch is of all who follow one released conversation.
type watch struct {
	followers int
	woken     chan struct{} // closed when the conversation is opened or removed
	removed   bool          // set before woken is closed
}

// wake ends the watch of a conversation that is being opened or removed.
func (w watches) wake(id p.ConversationID, removed bool) {
	if one := w[id]; one != nil {
		one.removed = removed
		close(one.woken)
		delete(w, id)
	}
}

// watch returns the slot of a conversation, or, if there is none, a watch that
// ends when there is. Whoever got a watch calls unwatch.
func (l *Local) watch(id p.ConversationID) (*slot, *watch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, nil, ErrClosed
	}
	s := l.slots[id]
	if s != nil && s.removed {
		return nil, nil, ErrClosed
	}
	if s != nil && !s.gone() {
		return s, nil, nil
	}
	w := l.watches[id]
	if w == nil {
		w = &watch{woken: make(chan struct{})}
		l.watches[id] = w
	}
	w.followers++
	return nil, w, nil
}

// unwatch leaves a watch.
func (l *Local) unwatch(id p.ConversationID, w *watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.followers--; w.followers == 0 && l.watches[id] == w {
		delete(l.watches, id)
	}
}

// isRemoved reports whether a conversation was closed to be archived or deleted.
func (l *Local) isRemoved(s *slot) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.removed
}

// OpenCount is how many conversations are open or being opened.
func (l *Local) OpenCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.slots)
}

// Live returns the state of every conversation that is open here.
func (l *Local) Live(ctx context.Context) []p.Snapshot {
	l.mu.Lock()
	var open []*slot
	for _, s := range l.slots {
		if s.isReady() && s.conv != nil {
			open = append(open, s)
		}
	}
	l.mu.Unlock()
	list := []p.Snapshot{}
	for _, s := range open {
		if snap, err := s.conv.Look(ctx); err == nil { // else it has just been closed
			list = append(list, snap)
		}
	}
	slices.SortFunc(list, func(a, b p.Snapshot) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

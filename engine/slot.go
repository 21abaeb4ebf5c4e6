package engine

import (
	"context"
	"errors"

	"github.com/fermata-agent/fermata/internal/conversation"
	p "github.com/fermata-agent/fermata/protocol"
)

// A slot is a conversation that is open or being opened, or one that must not be
// opened at the moment.
type slot struct {
	ready   chan struct{}              // closed when conv or err is set
	conv    *conversation.Conversation // nil if it could not be opened
	err     error
	callers int                     // those that wait for ready; guarded by Local.mu
	removed bool                    // the conversation is archived or deleted: followers end; guarded by Local.mu
	used    uint64                  // when it was last asked for; guarded by Local.mu
	cancel  context.CancelCauseFunc // gives up opening
}

// An opening is how a conversation is opened.
type opening struct {
	open func(ctx context.Context) (*conversation.Conversation, error)
	undo func() // removes what open has made if nobody waits for it any more; may be nil
}

// errAgain is the answer to callers that found a slot in which nothing is opened
// any more. They look for another one.
var errAgain = errors.New("look again")

// with calls f with an open conversation. If that closes before it has taken
// what f asks, it is opened again.
func (l *Local) with(ctx context.Context, id p.ConversationID, f func(*conversation.Conversation) error) error {
	_, err := l.withSlot(ctx, id, f)
	return err
}

// withSlot is with, and returns the slot of the conversation.
func (l *Local) withSlot(ctx context.Context, id p.ConversationID, f func(*conversation.Conversation) error) (*slot, error) {
	for {
		s, err := l.find(ctx, id)
		if err != nil {
			return nil, err
		}
		if err = f(s.conv); !errors.Is(err, ErrClosed) {
			return s, err
		}
		select {
		case <-s.conv.Done():
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// find returns the slot of a conversation, and opens it if it is not open.
func (l *Local) find(ctx context.Context, id p.ConversationID) (*slot, error) {
	return l.acquire(ctx, id, opening{open: func(ctx context.Context) (*conversation.Conversation, error) {
		j, err := l.storeOf(id).Open(ctx, string(id))
		if err != nil {
			return nil, err // it says what could not be opened
		}
		cfg := l.cfg
		cfg.ID = id
		return conversation.Open(l.base, cfg, j) // recovering is not given up half way
	}})
}

// acquire returns the slot of an open conversation, or opens it; of several callers one
// does. Opening goes on until it is done or no caller waits for it any more.
func (l *Local) acquire(ctx context.Context, id p.ConversationID, o opening) (*slot, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s, err := l.join(id, o)
		if err != nil {
			return nil, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
		}
		switch opened := l.leave(s); {
		case !opened:
			return nil, context.Cause(ctx)
		case !errors.Is(s.err, errAgain):
			return s, s.err
		}
	}
}

// join returns the slot of a conversation, which is opened if there is none.
func (l *Local) join(id p.ConversationID, o opening) (*slot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, ErrClosed
	}
	s := l.slots[id]
	if s == nil || s.gone() {
		ctx, cancel := context.WithCancelCause(l.base)
		s = &slot{ready: make(chan struct{}), cancel: cancel}
		l.slots[id] = s
		l.watches.wake(id, false)
		l.changed()
		go l.open(ctx, id, s, o) // ends when the conversation is closed, or could not be opened; Shutdown sees to it
	}
	s.callers++
	l.uses++
	s.used = l.uses
	return s, nil
}

// leave says that a caller does not wait any more, and reports whether the slot
// is ready. When the last one leaves, opening is given up.
func (l *Local) leave(s *slot) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.callers--
	if s.isReady() {
		return true
	}
	if s.callers == 0 {
		s.cancel(errAgain)
	}
	return false
}

// open opens a conversation and makes its slot ready, which it removes when the
// conversation is closed.
func (l *Local) open(ctx context.Context, id p.ConversationID, s *slot, o opening) {
	conv, err := l.openWithRoom(ctx, o)
	l.mu.Lock()
	if conv == nil || !l.ended && (o.undo == nil || ctx.Err() == nil) {
		s.publish(ctx, conv, err)
		l.mu.Unlock()
		if conv != nil {
			<-conv.Done()
		}
		l.drop(id, s)
		return
	}
	killed := l.killed
	l.mu.Unlock()

	// Nobody wants it any more.
	if killed {
		conv.Kill()
	} else {
		_ = conv.Close(l.base) // nobody has used it
		if o.undo != nil {
			o.undo()
		}
	}
	l.mu.Lock()
	s.publish(ctx, nil, ErrClosed)
	l.mu.Unlock()
	l.drop(id, s)
}

// drop removes a slot in which nothing is open.
func (l *Local) drop(id p.ConversationID, s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots[id] == s {
		delete(l.slots, id)
		l.changed()
	}
}

// publish makes the slot ready, with Local.mu.
func (s *slot) publish(ctx context.Context, conv *conversation.Conversation, err error) {
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	s.conv, s.err = conv, err
	s.cancel(nil)
	close(s.ready)
}

func (s *slot) isReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// gone reports whether the conversation was closed, or has closed itself because
// its journal failed. It can be opened again.
func (s *slot) gone() bool {
	if !s.isReady() {
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

// close waits until the conversation is open, and closes it with the given
// function.
func (s *slot) close(ctx context.Context, how func(*conversation.Conversation, context.Context) error) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.conv == nil {
		return nil
	}
	return how(s.conv, ctx)
}

// close closes a conversation with the given function, if it is open. Its slot
// stays until that is done, also if the caller does not wait for it.
func (l *Local) close(ctx context.Context, id p.ConversationID, how func(*conversation.Conversation, context.Context) error) error {
	l.mu.Lock()
	s := l.slots[id]
	l.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.close(ctx, how)
}

// exclude stops and closes a conversation that is to be removed, and keeps it
// closed until the returned function is called. That one must be called also after an
// error. Those who follow the conversation follow it no longer.
func (l *Local) exclude(ctx context.Context, id p.ConversationID) (leave func(), err error) {
	for {
		l.mu.Lock()
		if s := l.slots[id]; s != nil {
			s.removed = true
		}
		l.mu.Unlock()
		err := l.close(ctx, id, stop)
		if ctx.Err() != nil {
			return func() {}, err
		}
		l.mu.Lock()
		if s := l.slots[id]; s == nil || s.gone() {
			_, cancel := context.WithCancelCause(l.base)
			s = &slot{ready: make(chan struct{}), err: errAgain, cancel: cancel, removed: true}
			l.slots[id] = s
			l.watches.wake(id, true)
			l.mu.Unlock()
			return func() { l.reopen(id, s) }, err
		}
		l.mu.Unlock()
	}
}

// reopen lets a conversation be opened again.
func (l *Local) reopen(id p.ConversationID, s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.cancel(nil)
	close(s.ready)
	delete(l.slots, id)
}

// end refuses everything from now on, gives up what waits to be opened, and
// returns what there is.
func (l *Local) end(kill bool) []*slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		close(l.over)
	}
	l.ended, l.killed = true, l.killed || kill
	var all []*slot
	for _, s := range l.slots {
		s.cancel(ErrClosed)
		all = append(all, s)
	}
	return all
}

package remote

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// A follower gives one client the events of a conversation, wherever it is open.
type follower struct {
	router *Router
	id     p.ConversationID
	after  p.Cursor           // the last event that was given
	live   func()             // nil when it was called
	seen   map[p.ItemID]int64 // how much of each open item was given
	gone   *Move              // of the owner before, until there is another; nil if that is not gone
	yield  func(p.Event, error) bool
}

// errStopped says that the client wants nothing more.
var errStopped = errors.New("the client has left")

// run gives events until the client has left, then nil.
func (f *follower) run(ctx context.Context) error {
	began, wait := time.Now(), f.router.wait // when the owner was last there, and how long it may be away
	for {
		e, address, err := f.router.first(ctx)
		if err != nil {
			return err
		}
		err = f.read(ctx, e, address)
		read := f.router.joinable(err) == nil
		if locked := f.router.joinable(err); locked != nil {
			wait = f.router.wait + locked.Lease
			joined, dialed := f.router.join(ctx, locked.Owner)
			if final(dialed) {
				return dialed
			}
			if read = dialed == nil; read {
				address = addressOf(locked.Owner)
				err = f.read(ctx, joined, address)
			}
		}
		if read {
			began = time.Now()
		}
		switch {
		case errors.Is(err, errMoved), read && f.isTakenOver(ctx, err, address):
			continue
		case read && (address == "" || !errors.Is(err, ErrLost) && !errors.Is(err, ErrLeaving) && f.router.joinable(err) == nil):
			return withoutStop(err)
		case time.Since(began) > wait:
			return err
		}
		if address == serveAddress && errors.Is(err, ErrLeaving) {
			if err := f.awaitServe(ctx); err != nil {
				return err
			}
			began = time.Now()
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// isTakenOver reports whether a conversation was closed where it was followed because another process has it open now.
func (f *follower) isTakenOver(ctx context.Context, err error, address string) bool {
	if address == "" || !errors.Is(err, engine.ErrClosed) || errors.Is(err, ErrLeaving) {
		return false
	}
	owner, open, err := f.router.Owner(ctx, f.id)
	return err == nil && open && addressOf(owner) != address && owner.Joinable()
}

// serveLookAgain is how often a follower looks whether there is a process again that serves.
const serveLookAgain = 500 * time.Millisecond

// awaitServe returns when a process serves again, or another one has the conversation open.
func (f *follower) awaitServe(ctx context.Context) error {
	for !f.router.o.Serving() {
		if _, open, err := f.router.Owner(ctx, f.id); err != nil || open {
			return err
		}
		select {
		case <-time.After(serveLookAgain):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func withoutStop(err error) error {
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// read gives what one engine knows, and returns why it ends.
func (f *follower) read(ctx context.Context, e engine.Engine, address string) error {
	ctx, move := context.WithCancelCause(ctx)
	defer move(nil)
	here := &place{address, move}
	f.router.enter(f.id, here)
	defer f.router.exit(f.id, here)
	live := func() {
		f.arrive(e)
		if f.live != nil {
			f.live()
			f.live = nil
		}
	}
	for ev, err := range e.Attach(ctx, f.id, f.after, live) {
		if err != nil {
			f.leave(e, err)
			if errors.Is(context.Cause(ctx), errMoved) {
				return errMoved // the journal only says that it was cancelled
			}
			return err
		}
		f.arrive(e)
		if ev, ok := f.fresh(ev); ok && !f.yield(ev, nil) {
			return errStopped
		}
	}
	return errStopped
}

// leave notes that the process of an engine is gone.
func (f *follower) leave(e engine.Engine, err error) {
	if from, ok := e.(*Engine); ok && f.gone == nil {
		left := errors.Is(err, ErrLeaving) || from.left.Load()
		if left || from.lost() {
			f.gone = &Move{From: from.PID(), Died: !left}
		}
	}
}

// arrive reports the next one.
func (f *follower) arrive(e engine.Engine) {
	if f.gone == nil {
		return
	}
	move := *f.gone
	f.gone = nil
	if to, ok := e.(*Engine); ok {
		move.To = to.PID()
	}
	f.router.reportMove(f.id, move)
}

// fresh returns what was not yet given of an event: another owner gives the text of
// open items from their beginning.
func (f *follower) fresh(ev p.Event) (p.Event, bool) {
	if ev.Seq > 0 {
		f.after = ev.Seq
	}
	switch b := ev.Body.(type) {
	case *p.Delta:
		end := b.Offset + int64(len(b.Text))
		skip := f.seen[b.Item] - b.Offset
		if skip >= int64(len(b.Text)) {
			return ev, len(b.Text) == 0
		}
		f.seen[b.Item] = end
		if skip > 0 {
			rest := *b
			rest.Offset, rest.Text = b.Offset+skip, b.Text[skip:]
			ev.Body = &rest
		}
	case *p.TurnEnded:
		for item := range f.seen {
			if item.Turn == ev.Turn {
				delete(f.seen, item)
			}
		}
	case *p.BackgroundEnded:
		delete(f.seen, b.ID.Item())
	}
	return ev, true
}

package remote

import (
	"context"
	"errors"
	"iter"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// Watch gives every event of a conversation, then live ones, to a client that only reads: from the process that has it
// open, or from the store if none has, or none that can be reached. It never opens the conversation.
func (r *Router) Watch(ctx context.Context, id p.ConversationID) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		f := &follower{router: r, id: id, seen: map[p.ItemID]int64{}, yield: yield}
		if err := f.watch(ctx); err != nil {
			yield(p.Event{}, err)
		}
	}
}

// watch gives events until the client has left, then nil.
func (f *follower) watch(ctx context.Context) error {
	unreached := "" // the address of an owner that cannot be reached
	for {
		owner, open, err := f.router.Owner(ctx, f.id)
		if err != nil {
			return err
		}
		if open && owner.Joinable() && addressOf(owner) != unreached && !f.router.o.Alone {
			e, err := f.router.join(ctx, owner)
			if err == nil {
				err = f.read(ctx, e, addressOf(owner))
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if !f.router.elsewhere(err) && !errors.Is(err, errMoved) {
				if errors.Is(err, errStopped) {
					return nil
				}
				unreached = addressOf(owner) // the journal is read instead
			}
			if err := pause(ctx); err != nil {
				return err
			}
			continue
		}
		if err := f.watchStore(ctx, unreached); !errors.Is(err, errMoved) {
			return withoutStop(err)
		}
	}
}

// ownerLook is how often one who reads the journal looks whether a process has opened the conversation.
const ownerLook = 500 * time.Millisecond

// watchStore gives what is recorded, until an owner can be joined: then errMoved.
func (f *follower) watchStore(ctx context.Context, unreached string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // ends with ctx
		for ctx.Err() == nil {
			select {
			case <-time.After(ownerLook):
			case <-ctx.Done():
				return
			}
			owner, open, err := f.router.Owner(ctx, f.id)
			if err == nil && open && owner.Joinable() && addressOf(owner) != unreached && !f.router.o.Alone {
				cancel(errMoved)
			}
		}
	}()
	err := f.give(f.router.Local.Tail(ctx, f.id, f.after))
	if !errors.Is(err, errStopped) && errors.Is(context.Cause(ctx), errMoved) {
		return errMoved // the journal only says that it was cancelled
	}
	return err
}

// give passes on what is new of events.
func (f *follower) give(events iter.Seq2[p.Event, error]) error {
	for ev, err := range events {
		if err != nil {
			return err
		}
		if ev, ok := f.fresh(ev); ok && !f.yield(ev, nil) {
			return errStopped
		}
	}
	return errStopped
}

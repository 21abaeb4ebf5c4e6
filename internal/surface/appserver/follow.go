package appserver

import (
	"context"
	"errors"
	"sync"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/panics"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// A subscription follows a thread for a client. Its fold belongs to the goroutine that takes the events.
type subscription struct {
	c      *conn
	t      *thread
	fold   *items.Fold
	ctx    context.Context
	cancel context.CancelFunc
	begun  chan error // gets one value: nil when the past has been taken
	isLive bool       // the past has been taken; of the goroutine that takes the events

	mu    sync.Mutex
	asked map[string]*project.Permission // by the ids of what the client was asked and has not been resolved: what it can allow for good, nil if nothing; guarded by mu
}

// subscribe follows a thread from its beginning. When everything that there is has been taken, it calls answer, which
// is to reply, then sends what a client that has got that answer lacks, and continues with what happens. The subscription
// that the client may have had before ends there. It returns when answer was called.
func (c *conn) subscribe(ctx context.Context, t *thread, answer func(*items.Fold)) error {
	sub := &subscription{c: c, t: t, fold: items.New(t.id), begun: make(chan error, 1), asked: map[string]*project.Permission{}}
	sub.ctx, sub.cancel = context.WithCancel(c.life)
	joined, err := t.group.Join(ctx, follow.Options{Live: func() { sub.live(answer) }})
	if err != nil {
		sub.cancel()
		return err
	}
	c.s.enter(t.id)
	c.rpc.Go(func() {
		defer c.s.exit(t.id)
		defer sub.cancel()
		defer joined.Leave()
		if err := c.s.o.Panicked.Run(func() { sub.run(joined) }); err != nil {
			sub.broke(err)
		}
	})
	if c.kind == Only {
		c.rpc.Go(sub.finishAtEnd)
	} else {
		context.AfterFunc(c.rpc.Ending(), sub.cancel)
	}
	select {
	case err := <-sub.begun:
		return err
	case <-ctx.Done():
		sub.cancel()
		return context.Cause(ctx)
	}
}

// live ends the past.
func (sub *subscription) live(answer func(*items.Fold)) {
	leave, err := sub.t.enter(sub.ctx)
	if err != nil {
		return
	}
	defer leave()
	if before := sub.t.following.Swap(sub); before != nil {
		before.cancel()
	}
	answer(sub.fold)
	notes := sub.fold.Resend()
	sub.fold.Live()
	sub.send(notes)
	sub.isLive = true
	sub.begun <- nil
}

// run takes events until the subscription ends. A conversation that was closed because it could not be recorded is
// followed again when the client uses it.
func (sub *subscription) run(joined *follow.Follower) {
	defer sub.t.following.CompareAndSwap(sub, nil)
	for {
		used := *sub.t.used.Load()
		err := sub.take(joined)
		if defect := (*panics.Error)(nil); !sub.isLive || errors.As(err, &defect) {
			sub.broke(err)
			return
		}
		if sub.ctx.Err() != nil || errors.Is(err, engine.ErrNotFound) {
			return
		}
		for joined = nil; joined == nil; {
			select {
			case <-used:
			case <-sub.ctx.Done():
				return
			}
			used = *sub.t.used.Load()
			joined, _ = sub.t.group.Join(sub.ctx, follow.Options{After: sub.fold.Seq, Live: func() {}}) // else it is tried when it is used again
		}
	}
}

func (sub *subscription) take(joined *follow.Follower) error {
	for e, err := range joined.Events(sub.ctx) {
		if err != nil {
			return err
		}
		notes := sub.fold.Apply(e)
		if len(notes) == 0 {
			continue
		}
		if err := sub.pass(notes); err != nil {
			return err
		}
	}
	return errors.New("the events have ended")
}

// pass sends what there is to say about an event.
func (sub *subscription) pass(notes []items.Note) error {
	leave, err := sub.t.enter(sub.ctx)
	if err != nil {
		return err
	}
	defer leave()
	if sub.t.following.Load() == sub { // another one may have taken over
		sub.send(notes)
	}
	return nil
}

// broke ends a subscription that cannot go on: the request that began it fails, or the client is warned.
func (sub *subscription) broke(err error) {
	if !sub.isLive {
		sub.begun <- err
		return
	}
	sub.c.remark(sub.t.id, []string{"this thread is no longer followed; resume it to follow it again: " + err.Error()})
}

// send sends what there is to say. If it fails the client has gone.
func (sub *subscription) send(notes []items.Note) {
	for _, n := range notes {
		switch about := n.Params.(type) {
		case wire.RequestResolved:
			sub.resolved(about.RequestID)
		case wire.StatusChanged:
			sub.c.s.statusChanged(sub.t.id, sub.fold.Seq, about)
		}
		if n.Ask != "" {
			sub.ask(n)
			continue
		}
		_ = sub.c.notify(sub.ctx, n.Method, n.Params)
	}
}

// ask asks the client something, and what it can allow for good with its answer.
func (sub *subscription) ask(n items.Note) {
	var offer *project.Permission
	if sub.c.s.o.Allow != nil {
		n, offer = n.WithOffer(sub.fold.Settings.Cwd)
	}
	sub.mu.Lock()
	sub.asked[n.Ask] = offer
	sub.mu.Unlock()
	_ = sub.c.rpc.Send(sub.ctx, n.Ask, n.Method, n.Params)
}

func (sub *subscription) resolved(name string) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	delete(sub.asked, name)
}

// isOpen reports whether the client was asked something that has not been resolved, and what it was offered to allow for good.
func (sub *subscription) isOpen(name string) (offer *project.Permission, open bool) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	offer, open = sub.asked[name]
	return offer, open
}

// finishAtEnd waits for the end of the connection, then interrupts what runs, and ends the subscription when the client was sent
// that. A turn that waits for a person goes on waiting.
func (sub *subscription) finishAtEnd() {
	defer sub.cancel()
	select {
	case <-sub.c.rpc.Ending().Done():
	case <-sub.ctx.Done():
		return
	}
	life, e, id := sub.ctx, sub.c.s.o.Engine, sub.t.id
	snap, err := e.Resume(life, id)
	if err != nil || !snap.Active || snap.Waiting {
		return
	}
	sub.c.stop(life, sub.t, p.Interrupt{Turn: snap.Turn})
}

// stop interrupts a turn and waits until this client was sent its end.
func (c *conn) stop(ctx context.Context, t *thread, op p.Interrupt) error {
	receipt, err := c.s.o.Engine.Submit(ctx, t.id, op)
	if err != nil {
		return err
	}
	return c.awaitEnd(ctx, t, receipt)
}

// awaitEnd waits until a turn has ended and this client was sent its end.
func (c *conn) awaitEnd(ctx context.Context, t *thread, receipt p.Receipt) error {
	if _, err := engine.FollowTurn(ctx, c.s.o.Engine, t.id, receipt.Turn, receipt.Seq, nil); err != nil {
		return err
	}
	t.group.Ended(ctx, receipt.Turn)
	return nil
}

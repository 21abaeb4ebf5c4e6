package acp

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/panics"
	"github.com/fermata-agent/fermata/internal/surface/acp/updates"
	p "github.com/fermata-agent/fermata/protocol"
)

// A follower sends a client what happens in a conversation. Its fold and its questions belong to the goroutine of run.
type follower struct {
	s      *session
	skip   bool                // the past is not sent
	answer func(*updates.Fold) // called once, between the past and what happens next
	begun  chan error          // gets one value: nil when answer was called
	again  chan struct{}       // has room for one: the client uses a conversation that could not be followed any more
	ctx    context.Context
	cancel context.CancelFunc
	gone   chan struct{} // closed when it sends nothing more

	fold      *updates.Fold
	isLive    bool
	questions map[updates.Resolved]*jsonrpc.Question // what the user was asked and has not answered
}

func (s *session) newFollower(skip bool, answer func(*updates.Fold)) *follower {
	f := &follower{
		s: s, skip: skip, answer: answer, begun: make(chan error, 1), again: make(chan struct{}, 1), gone: make(chan struct{}),
		fold: updates.New(s.foldOptions()), questions: map[updates.Resolved]*jsonrpc.Question{},
	}
	f.ctx, f.cancel = context.WithCancel(s.c.life)
	return f
}

// stop ends a follower and waits until it sends nothing more.
func (f *follower) stop() {
	f.cancel()
	<-f.gone
}

// use says that the client uses the conversation: if it could not be followed any more, that is tried again.
func (f *follower) use() {
	select {
	case f.again <- struct{}{}:
	default: // it knows
	}
}

// run sends what happens until the follower is stopped, the conversation is gone or the client is.
func (f *follower) run() {
	defer close(f.gone)
	defer f.cancel()
	defer f.withdraw()
	err := f.s.c.s.o.Panicked.Run(func() {
		for f.retry(f.follow()) {
		}
	})
	if err != nil {
		f.broke(err)
	}
}

// retry waits until a conversation that could not be followed any more, because it could not be recorded, is used again. It is false if
// there is nothing to follow.
func (f *follower) retry(err error) bool {
	f.broke(err)
	if !f.isLive || errors.Is(err, engine.ErrNotFound) || errors.As(err, new(*panics.Error)) {
		return false
	}
	select {
	case <-f.again:
		return true
	case <-f.ctx.Done():
		return false
	}
}

// broke fails the request that began the follower, or those that wait for it.
func (f *follower) broke(err error) {
	switch {
	case !f.isLive:
		f.begun <- err
	case f.ctx.Err() == nil: // else it was stopped, and another one may follow
		f.s.fail(err)
	}
}

// A delivery is an event, an error, or the word that the past ends here.
type delivery struct {
	event p.Event
	err   error
	live  bool
}

// outputEvery is how often the growing output of a command is sent.
const outputEvery = 200 * time.Millisecond

// follow takes events until they end.
func (f *follower) follow() error {
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	events := make(chan delivery)
	f.s.c.rpc.Go(f.reader(ctx, events))
	var flush <-chan time.Time
	for {
		select {
		case d := <-events:
			switch {
			case d.err != nil:
				return d.err
			case d.live:
				f.live()
			default:
				f.take(d.event)
			}
		case <-flush:
			flush = nil
			f.send(f.fold.Flush())
		case <-f.ctx.Done():
			return context.Cause(f.ctx)
		}
		if flush == nil && f.isLive && f.fold.Waits() {
			flush = time.After(outputEvery)
		}
	}
}

// reader returns what passes on what happens after the last event that was taken, until ctx ends.
func (f *follower) reader(ctx context.Context, events chan<- delivery) func() {
	put := func(d delivery) bool {
		select {
		case events <- d:
			return true
		case <-ctx.Done():
			return false
		}
	}
	e, id, after := f.s.c.s.o.Engine, f.s.id, f.fold.Seq
	return func() {
		for event, err := range e.Attach(ctx, id, after, func() { put(delivery{live: true}) }) {
			if !put(delivery{event: event, err: err}) {
				return
			}
		}
		put(delivery{err: errors.New("the events have ended")})
	}
}

func (f *follower) take(e p.Event) {
	list := f.fold.Apply(e)
	if !f.isLive && f.skip {
		list = updates.Controls(list)
	}
	f.send(list)
}

// live ends the past.
func (f *follower) live() {
	if f.isLive {
		return // it follows again after an error
	}
	rest := f.fold.Live()
	if !f.skip {
		f.send(rest)
	}
	f.isLive = true
	f.s.cwd, f.s.configured = f.fold.Settings.Cwd, f.fold.Settings
	f.s.opened(f)
	f.answer(f.fold)
	if f.skip {
		f.send(f.fold.OpenCalls(rest))
	}
	f.send(f.fold.Open())
	f.begun <- nil
}

// send sends updates, asks the user, and answers prompts.
func (f *follower) send(list []any) {
	for _, u := range list {
		switch u := u.(type) {
		case updates.Ask:
			f.ask(u)
		case updates.Question:
			f.elicit(u)
		case updates.Resolved:
			f.resolved(u)
		case updates.Delivered:
			f.s.delivered(u)
		case updates.Returned:
			f.s.returned(u.Ref, f.fold.Running())
		case updates.Ended:
			f.s.turnEnded(u)
		default:
			f.s.c.update(f.ctx, f.s.id, u)
		}
	}
}

package fleet

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// How often a follower tries again that has lost its servers, and for how long if its client has not said.
const (
	followAgain = time.Second
	followLimit = 10 * time.Minute
)

// A Following is how a turn is followed that was begun elsewhere.
type Following struct {
	Receipt p.Receipt
	Wait    time.Duration // how long to try if the servers do not answer; 0 or less is followLimit
	Say     func(string)  // a line for people
}

// Started returns an engine for whoever submits and follows a message as if it ran here: the first UserTurn is not
// submitted, because it was, and its receipt is that of the following. A follower that fails because of the servers continues
// where it was when they answer again: the turn runs on meanwhile.
func Started(e engine.Engine, f Following) engine.Engine { return startedEngine{e, f} }

type startedEngine struct {
	engine.Engine
	f Following
}

func (e startedEngine) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	if _, ok := op.(p.UserTurn); ok {
		return e.f.Receipt, nil
	}
	return e.Engine.Submit(ctx, id, op)
}

// Subscribe implements engine.Engine.
func (e startedEngine) Subscribe(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		limit := e.f.Wait
		if limit <= 0 {
			limit = followLimit
		}
		seen := map[p.ItemID]int64{} // how much of each open item was given
		var failed time.Time         // since when there is nothing to follow; zero if there is
		for {
			err := e.follow(ctx, id, &after, seen, func(ev p.Event) bool { failed = time.Time{}; return yield(ev, nil) })
			if err == nil {
				return
			}
			if failed.IsZero() {
				failed = time.Now()
				e.f.Say("waiting for the NATS servers, which do not answer; the turn runs on")
			}
			if ctx.Err() != nil || errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrClosed) || time.Since(failed) > limit {
				yield(p.Event{}, err)
				return
			}
			select {
			case <-time.After(followAgain):
			case <-ctx.Done():
			}
		}
	}
}

// follow gives what is new until that fails, then it returns why; nil if nothing more is wanted.
func (e startedEngine) follow(ctx context.Context, id p.ConversationID, after *p.Cursor, seen map[p.ItemID]int64, give func(p.Event) bool) error {
	for ev, err := range e.Engine.Subscribe(ctx, id, *after) {
		if err != nil {
			return err
		}
		if ev.Seq > 0 {
			*after = ev.Seq
		}
		if d, ok := ev.Body.(*p.Delta); ok {
			skip := seen[d.Item] - d.Offset
			if skip > 0 && skip >= int64(len(d.Text)) {
				continue // it was given before
			}
			seen[d.Item] = d.Offset + int64(len(d.Text))
			if skip > 0 {
				rest := *d
				rest.Offset, rest.Text = d.Offset+skip, d.Text[skip:]
				ev.Body = &rest
			}
		}
		if !give(ev) {
			return nil
		}
	}
	return nil
}

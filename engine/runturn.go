package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	p "github.com/fermata-agent/fermata/protocol"
)

// A TurnEnd is how the turn that RunTurn followed ended.
type TurnEnd struct {
	Turn    p.TurnID
	End     p.TurnEnded
	Message string  // the model's last message in it
	Usage   p.Usage // of this turn
	Seq     p.Seq   // of the last event
	Unsaved bool    // the end is not on disk

	// Returned says that the message was returned and never delivered. Turn is then the
	// turn that it was to join, 0 if it waited for one of its own.
	Returned bool
}

// RunTurn submits a message and passes on the events of the turn that it
// becomes part of, until that turn has ended or the message was returned. A message
// that was to join a turn which failed first starts the next one: RunTurn then follows that.
//
// When ctx ends, RunTurn interrupts the turn, or takes the message back if it
// still waits (for a turn of its own, or to join one), and keeps following until the end: a turn that was started is always followed to
// its end. An error means that the message was refused, or that the conversation can no
// longer be followed. With a context that has ended already, nothing is submitted.
// fn may be nil.
func RunTurn(ctx context.Context, e Engine, id p.ConversationID, ut p.UserTurn, fn func(p.Event)) (TurnEnd, error) {
	return runOp(ctx, e, id, ut, fn)
}

// RunApproval answers an approval and follows its turn as RunTurn does.
func RunApproval(ctx context.Context, e Engine, id p.ConversationID, a p.Approve, fn func(p.Event)) (TurnEnd, error) {
	return runOp(ctx, e, id, a, fn)
}

// RunHeld ends the hold of a turn and follows it as RunTurn does.
func RunHeld(ctx context.Context, e Engine, id p.ConversationID, try p.TryNow, fn func(p.Event)) (TurnEnd, error) {
	return runOp(ctx, e, id, try, fn)
}

func runOp(ctx context.Context, e Engine, id p.ConversationID, op p.Op, fn func(p.Event)) (TurnEnd, error) {
	if ctx.Err() != nil {
		return TurnEnd{}, context.Cause(ctx)
	}
	life := context.WithoutCancel(ctx)
	receipt, err := e.Submit(life, id, op)
	if err != nil {
		return TurnEnd{}, err
	}
	f := newTurnFollower(receipt, fn)
	follow, stopFollow := context.WithCancel(life)
	defer stopFollow()
	defer f.cancelOn(ctx, life, e, id)()
	return f.follow(e.Subscribe(follow, id, receipt.Seq))
}

// FollowTurn passes on the events of a turn after the cursor until it has
// ended. When ctx ends it returns the context's error and interrupts nothing.
func FollowTurn(ctx context.Context, e Engine, id p.ConversationID, turn p.TurnID, after p.Cursor, fn func(p.Event)) (TurnEnd, error) {
	f := newTurnFollower(p.Receipt{Turn: turn, State: p.TakenStarted}, fn)
	return f.follow(e.Subscribe(ctx, id, after))
}

// A turnFollower follows a message, or a turn if input is 0.
type turnFollower struct {
	input     p.InputID
	delivered bool // the message is part of turn end.Turn
	fn        func(p.Event)
	end       TurnEnd
	started   *p.Event      // the latest turn to start: perhaps that of a message that waits
	turns     chan p.TurnID // for cancelOn: the turn to interrupt, 0 while the message waits; the latest, so there is room for one
}

func newTurnFollower(r p.Receipt, fn func(p.Event)) *turnFollower {
	if fn == nil {
		fn = func(p.Event) {}
	}
	f := &turnFollower{input: r.Input, delivered: r.Input == 0, fn: fn, turns: make(chan p.TurnID, 1)}
	if r.State != p.TakenQueued {
		f.end.Turn = r.Turn
	}
	f.target(f.end.Turn)
	return f
}

// target says what a cancel is about: a turn, or the message as long as it waits.
func (f *turnFollower) target(t p.TurnID) {
	if !f.delivered {
		t = 0
	}
	select {
	case <-f.turns: // what it was about before
	default:
	}
	f.turns <- t // only this goroutine sends, so there is room
}

// moveTo follows another turn, or none while the message waits.
func (f *turnFollower) moveTo(t p.TurnID) {
	if f.end.Turn == t {
		return
	}
	f.end = TurnEnd{Turn: t}
}

// cancelOn interrupts the turn, or takes the message back, when ctx ends. If
// that comes too late because the message has moved on, it is done again where the
// message is now. The returned function ends the watch and waits for it.
func (f *turnFollower) cancelOn(ctx, life context.Context, e Engine, id p.ConversationID) func() {
	over, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with the returned function
		defer close(done)
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		for {
			select {
			case t := <-f.turns:
				if t == 0 {
					_, _ = e.Submit(life, id, p.DeleteInput{Input: f.input})
				} else {
					_, _ = e.Submit(life, id, p.Interrupt{Turn: t})
				}
			case <-over:
				return
			}
		}
	}()
	return func() { close(over); <-done }
}

func (f *turnFollower) follow(events iter.Seq2[p.Event, error]) (TurnEnd, error) {
	for e, err := range events {
		if err != nil {
			return f.end, fmt.Errorf("follow turn %d: %w", f.end.Turn, err)
		}
		if f.apply(e) {
			return f.end, nil
		}
	}
	return f.end, errors.New("the events ended before the turn")
}

// apply takes one event and reports whether it was the last.
func (f *turnFollower) apply(e p.Event) bool {
	if !f.delivered && f.findMessage(e) {
		return true
	}
	if e.Turn != f.end.Turn && e.Turn != 0 {
		return false
	}
	f.fn(e)
	switch b := e.Body.(type) {
	case *p.AssistantMessage:
		f.end.Message = b.Text
	case *p.ModelEnded:
		if b.Usage != nil {
			f.end.Usage = f.end.Usage.Add(*b.Usage)
		}
	case *p.TurnEnded:
		if !f.delivered && !f.end.Returned { // it starts the next turn
			f.moveTo(0)
			f.target(0)
			return false
		}
		f.end.End, f.end.Seq, f.end.Unsaved = *b, e.Seq, e.Unsaved
		return true
	}
	return false
}

// findMessage looks for what becomes of a message that is not yet delivered. It
// reports true if there is nothing left to follow.
func (f *turnFollower) findMessage(e p.Event) bool {
	switch b := e.Body.(type) {
	case *p.TurnStarted:
		f.started = &e
	case *p.UserMessage:
		if b.Input != f.input {
			return false
		}
		if f.end.Turn != e.Turn && f.started != nil && f.started.Turn == e.Turn {
			f.fn(*f.started)
		}
		f.delivered = true
		f.moveTo(e.Turn)
		f.target(e.Turn)
	case *p.InputReturned:
		for _, in := range b.Inputs {
			if in.Input != f.input {
				continue
			}
			// One that was to join a turn is returned when that is stopped, and
			// ends with it; one that somebody deleted has no turn to end with.
			f.end.Returned = true
			if last := in.Deleted || f.end.Turn == 0; last {
				f.fn(e)
				return true
			}
		}
	}
	return false
}

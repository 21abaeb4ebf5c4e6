package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	p "github.com/fermata-agent/fermata/protocol"
)

// A TurnEnd is how a turn that RunTurn followed ended.
type TurnEnd struct {
	Turn    p.TurnID
	End     p.TurnEnded
	Message string  // the last thing the model said in it
	Usage   p.Usage // of this turn
	Seq     p.Seq   // of the last event
	Unsaved bool    // the end is not on disk

	// Returned says that the message was handed back and never delivered.
	Returned bool
}

// RunTurn submits a message and passes on the events of the turn that it
// becomes part of, until that has ended. When ctx ends it interrupts the turn,
// or takes the message back if it still waits, and *keeps following* until the end: a turn
// that was begun is always seen to its end. An error means that the message was refused
// or that the conversation can no longer be followed.
func RunTurn(ctx context.Context, e Engine, id p.ConversationID, ut p.UserTurn, fn func(p.Event)) (TurnEnd, error) {
	return runOp(ctx, e, id, ut, fn)
}

// RunApproval answers an approval and follows its turn as RunTurn does.
func RunApproval(ctx context.Context, e Engine, id p.ConversationID, a p.Approve, fn func(p.Event)) (TurnEnd, error) {
	return runOp(ctx, e, id, a, fn)
}

func runOp(ctx context.Context, e Engine, id p.ConversationID, op p.Op, fn func(p.Event)) (TurnEnd, error) {
	life := context.WithoutCancel(ctx)
	receipt, err := e.Submit(life, id, op)
	if err != nil {
		return TurnEnd{}, err
	}
	f := newTurnFollower(receipt, fn)
	follow, stopFollow := context.WithCancel(life)
	defer stopFollow()
	defer f.stopOn(ctx, life, e, id)()
	return f.follow(e.Subscribe(follow, id, receipt.Seq))
}

// FollowTurn passes on the events of a turn after the cursor until it has
// ended. When ctx ends it returns the context's error and stops nothing.
func FollowTurn(ctx context.Context, e Engine, id p.ConversationID, turn p.TurnID, after p.Cursor, fn func(p.Event)) (TurnEnd, error) {
	f := newTurnFollower(p.Receipt{Turn: turn, State: p.TakenStarted}, fn)
	return f.follow(e.Subscribe(ctx, id, after))
}

type turnFollower struct {
	input p.InputID
	fn    func(p.Event)
	end   TurnEnd
	turns chan p.TurnID // tells stopOn which turn is ours: the latest, so there is room for one
}

func newTurnFollower(r p.Receipt, fn func(p.Event)) *turnFollower {
	f := &turnFollower{input: r.Input, fn: fn, turns: make(chan p.TurnID, 1)}
	if r.State != p.TakenQueued {
		f.join(r.Turn)
	}
	return f
}

func (f *turnFollower) join(t p.TurnID) {
	if f.end.Turn == t {
		return
	}
	f.end.Turn = t
	select {
	case <-f.turns: // an earlier turn, which the message did not stay with
	default:
	}
	f.turns <- t // only this goroutine sends, so there is room
}

// stopOn stops the turn when ctx ends. The returned function ends the watch
// and waits for it.
func (f *turnFollower) stopOn(ctx, life context.Context, e Engine, id p.ConversationID) func() {
	over, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with the returned function
		defer close(done)
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		// A message that waits is taken back; if that comes too late, the
		// turn that it has joined is stopped.
		select {
		case t := <-f.turns:
			_, _ = e.Submit(life, id, p.Interrupt{Turn: t})
			return
		default:
		}
		if _, err := e.Submit(life, id, p.DeleteInput{Input: f.input}); err == nil {
			return
		}
		select {
		case t := <-f.turns:
			_, _ = e.Submit(life, id, p.Interrupt{Turn: t})
		case <-over:
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
	if f.input != 0 {
		switch b := e.Body.(type) {
		case *p.UserMessage:
			if b.Input == f.input {
				f.join(e.Turn)
			}
		case *p.InputReturned:
			if f.returned(b) {
				f.fn(e)
				f.end.Returned = true
				// A message that was to join a turn ends with that turn.
				return f.end.Turn == 0
			}
		}
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
		f.end.End, f.end.Seq, f.end.Unsaved = *b, e.Seq, e.Unsaved
		return e.Turn == f.end.Turn
	}
	return false
}

func (f *turnFollower) returned(b *p.InputReturned) bool {
	for _, in := range b.Inputs {
		if in.Input == f.input {
			return true
		}
	}
	return false
}

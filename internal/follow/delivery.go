package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Delivery is what became of a message that was accepted.
type Delivery string

// What can become of a message.
const (
	Delivered Delivery = "delivered" // it is part of a turn
	Returned  Delivery = "returned"  // it was not delivered, and is returned
	Deleted   Delivery = "deleted"   // a client took it back
)

// AwaitDelivery follows a message, whose receipt is given, until it is known what became of it, and returns that and
// the turn that the message is part of. When ctx ends it returns the context's error; the message stays as it is.
func AwaitDelivery(ctx context.Context, e engine.Engine, id p.ConversationID, r p.Receipt) (Delivery, p.TurnID, error) {
	if r.State == p.TakenStarted {
		return Delivered, r.Turn, nil
	}
	return findDelivery(e.Subscribe(ctx, id, r.Seq), r.Input)
}

func findDelivery(events iter.Seq2[p.Event, error], message p.InputID) (Delivery, p.TurnID, error) {
	for e, err := range events {
		if err != nil {
			return "", 0, fmt.Errorf("follow message %d: %w", message, err)
		}
		switch b := e.Body.(type) {
		case *p.UserMessage:
			if b.Input == message {
				return Delivered, e.Turn, nil
			}
		case *p.InputReturned:
			i := slices.IndexFunc(b.Inputs, func(in p.ReturnedInput) bool { return in.Input == message })
			switch {
			case i >= 0 && b.Inputs[i].Deleted:
				return Deleted, 0, nil
			case i >= 0:
				return Returned, 0, nil
			}
		}
	}
	return "", 0, errors.New("the events ended before the message was delivered")
}

package transcript

import (
	"slices"

	p "github.com/fermata-agent/fermata/protocol"
)

// Returned folds an event into the list of messages that were not delivered. Those that a client deleted are part of
// it until the next turn.
func Returned(list []p.ReturnedInput, b p.Body) []p.ReturnedInput {
	switch b := b.(type) {
	case *p.TurnStarted:
		return slices.DeleteFunc(slices.Clone(list), func(in p.ReturnedInput) bool { return !in.Stays })
	case *p.InputReturned:
		return append(slices.Clip(list), b.Inputs...)
	case *p.ReturnedResolved:
		return slices.DeleteFunc(slices.Clone(list), func(in p.ReturnedInput) bool { return slices.Contains(b.Inputs, in.Input) })
	}
	return list
}

// Undelivered returns the messages of such a list that no client has sent, taken, dropped or deleted.
func Undelivered(list []p.ReturnedInput) []p.ReturnedInput {
	return slices.DeleteFunc(slices.Clone(list), func(in p.ReturnedInput) bool { return in.Deleted })
}

// Undelivered returns the messages that were returned and that no client has sent, taken or dropped.
func (t *Transcript) Undelivered() []p.ReturnedInput { return Undelivered(t.Returned) }

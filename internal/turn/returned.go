package turn

import (
	"fmt"
	"slices"

	p "github.com/fermata-agent/fermata/protocol"
)

// evolveReturned moves messages from those that wait to those that were returned. One that
// a client deleted is with that client.
func (s *State) evolveReturned(inputs []p.ReturnedInput) {
	for _, in := range inputs {
		s.dropInput(in.Input)
		if !in.Deleted {
			s.Returned = append(slices.Clip(s.Returned), in)
		}
	}
}

// staying returns the returned messages that the next turn does not end. Those of earlier
// versions counted as done when a turn started.
func (s State) staying() []p.ReturnedInput {
	if !slices.ContainsFunc(s.Returned, func(in p.ReturnedInput) bool { return !in.Stays }) {
		return s.Returned
	}
	return slices.DeleteFunc(slices.Clone(s.Returned), func(in p.ReturnedInput) bool { return !in.Stays })
}

// findReturned returns the returned messages with the given numbers, each of which must be returned and named once.
func (s State) findReturned(ids []p.InputID) ([]p.ReturnedInput, error) {
	var found []p.ReturnedInput
	for i, id := range ids {
		at := slices.IndexFunc(s.Returned, func(in p.ReturnedInput) bool { return in.Input == id })
		if at < 0 || slices.Contains(ids[:i], id) {
			return nil, fmt.Errorf("message %d: %w", id, ErrNotReturned)
		}
		found = append(found, s.Returned[at])
	}
	return found, nil
}

// withReturned checks the returned messages that a message delivers. Without content of its own it has theirs.
func (s State) withReturned(in User) (User, error) {
	found, err := s.findReturned(in.Returned)
	if err != nil || len(in.Content) > 0 {
		return in, err
	}
	for _, r := range found {
		in.Content = append(in.Content, r.Content...)
	}
	return in, nil
}

// addReturned records that messages were not delivered.
func (d *decision) addReturned(inputs ...p.ReturnedInput) {
	if len(inputs) == 0 {
		return
	}
	b := &p.InputReturned{Inputs: inputs, Left: len(d.state.Returned)}
	for _, in := range inputs {
		if !in.Deleted {
			b.Left++
		}
	}
	d.add(b)
}

// addResolved records what became of returned messages, by the message that delivers them if they are sent.
func (d *decision) addResolved(inputs []p.InputID, as p.Resolution, by p.InputID) {
	if len(inputs) > 0 {
		d.add(&p.ReturnedResolved{Inputs: inputs, As: as, Message: by, Left: len(d.state.Returned) - len(inputs)})
	}
}

func (d *decision) takeResolve(in Resolve) error {
	if in.As != p.ResolvedTaken && in.As != p.ResolvedDropped {
		return fmt.Errorf("resolve returned messages: %q: %w", in.As, ErrResolution)
	}
	if len(in.Inputs) == 0 {
		return ErrEmptyResolve
	}
	if _, err := d.state.findReturned(in.Inputs); err != nil {
		return err
	}
	d.addResolved(in.Inputs, in.As, 0)
	return nil
}

package turn

import (
	"slices"

	p "github.com/fermata-agent/fermata/protocol"
)

// takeElicit records that a call asks the person something.
func (d *decision) takeElicit(in Elicit) error {
	i := d.state.find(in.Request.Call)
	switch {
	case d.state.StopReason != "":
		return ErrStopping
	case i < 0 || d.state.Calls[i].Stage != running:
		return ErrNoElicitation
	}
	b := in.Request
	b.Number = d.state.Calls[i].Elicited + 1
	d.add(&b)
	return nil
}

// takeElicited records an answer.
func (d *decision) takeElicited(in Elicited) error {
	if err := in.Answer.Check(); err != nil {
		return err
	}
	i := d.state.find(in.Answer.Call)
	if i < 0 || d.state.StopReason != "" || !slices.Contains(d.state.Calls[i].Elicitations, in.Answer.Number) {
		return ErrNoElicitation
	}
	d.add(&p.ElicitationResolved{Call: in.Answer.Call, Number: in.Answer.Number, Action: in.Answer.Action, Content: in.Answer.Content})
	return nil
}

// cancelElicitations resolves what a call has asked, if an event says that it does not run
// any more.
func (d *decision) cancelElicitations(b p.Body) {
	var call p.CallID
	switch b := b.(type) {
	case *p.ToolOutput:
		call = b.Call
	case *p.ApprovalRequested:
		call = b.Call
	default:
		return
	}
	if i := d.state.find(call); i >= 0 {
		for _, n := range d.state.Calls[i].Elicitations {
			d.add(&p.ElicitationResolved{Call: call, Number: n, Action: p.ElicitationCancel})
		}
	}
}

// Elicited is how often an open call has asked the person something.
func (s State) Elicited(call p.CallID) int {
	if i := s.find(call); i >= 0 {
		return s.Calls[i].Elicited
	}
	return 0
}

func (s *State) evolveElicitation(e p.Event) {
	switch b := e.Body.(type) {
	case *p.ElicitationRequested:
		s.setElicitations(b.Call, func(c *OpenCall) {
			c.Elicited = b.Number
			c.Elicitations = append(slices.Clip(c.Elicitations), b.Number)
		})
	case *p.ElicitationResolved:
		s.setElicitations(b.Call, func(c *OpenCall) {
			c.Elicitations = slices.DeleteFunc(slices.Clone(c.Elicitations), func(n int) bool { return n == b.Number })
		})
	}
}

func (s *State) setElicitations(id p.CallID, change func(*OpenCall)) {
	if i := s.find(id); i >= 0 {
		s.Calls = slices.Clone(s.Calls)
		change(&s.Calls[i])
	}
}

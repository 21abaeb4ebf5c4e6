package fold

import (
	"slices"

	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// maxOps is how many ops are remembered. A client submits one again within seconds, when
// the process has gone to which it was submitted first.
const maxOps = 64

// A DoneOp is an op that its client gave a name to and that was recorded.
type DoneOp struct {
	Name    string
	Receipt p.Receipt // what was answered, or would have been
}

// Done returns what was answered to an op, if one with that name was recorded.
func (s *State) Done(name string) (p.Receipt, bool) {
	i := slices.IndexFunc(s.Ops, func(o DoneOp) bool { return o.Name == name })
	if name == "" || i < 0 {
		return p.Receipt{}, false
	}
	return s.Ops[i].Receipt, true
}

// evolveOps remembers the op that caused an event.
func (s *State) evolveOps(e p.Event) {
	b, ok := e.Body.(p.Caused)
	if !ok || b.CausedBy().Op == "" {
		return
	}
	name := b.CausedBy().Op
	i := slices.IndexFunc(s.Ops, func(o DoneOp) bool { return o.Name == name })
	if i < 0 {
		s.Ops = append(slices.Clone(s.Ops[max(0, len(s.Ops)+1-maxOps):]), DoneOp{Name: name, Receipt: p.Receipt{Seq: e.Seq - 1}})
		i = len(s.Ops) - 1
	}
	r := &s.Ops[i].Receipt
	r.Turn = s.Turn
	switch b := e.Body.(type) {
	case *p.UserMessage:
		r.Input, r.State = b.Input, p.TakenStarted
	case *p.InputAccepted:
		r.Input, r.State = b.Input, p.TakenQueued
		if j := slices.IndexFunc(s.Pending, func(in turn.PendingInput) bool { return in.ID == b.Input }); j >= 0 && s.Pending[j].Joins() {
			r.State = p.TakenSteered
		}
	}
}

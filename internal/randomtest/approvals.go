package randomtest

import (
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// auditApprovals checks what became of the approvals that were open when a turn was stopped or crashed: each is
// cancelled in the batch that ends the turn, and a crash ends no turn in which nothing ran.
func (s *scenario) auditApprovals(all []p.Event) {
	var state turn.State
	var cancelled []p.Seq
	for _, e := range all {
		switch b := e.Body.(type) {
		case *p.ApprovalResolved:
			if b.Decision == p.Cancelled {
				cancelled = append(cancelled, e.Seq)
			}
		case *p.StopRequested:
			if b.Reason == p.Crashed && state.Waiting() {
				s.t.Errorf("event %d: a crash ends a turn that only waited\n%s", e.Seq, around(all, e.Seq))
			}
		case *p.TurnEnded:
			for _, seq := range cancelled {
				if s.fuse.batchOf[uint64(seq)] != s.fuse.batchOf[uint64(e.Seq)] {
					s.t.Errorf("event %d cancels an approval, and event %d ends its turn in another batch\n%s", seq, e.Seq, around(all, e.Seq))
				}
			}
			if b.Reason == p.Crashed {
				s.cancelled += len(cancelled)
			}
			cancelled = nil
		}
		state = state.Evolve(e)
	}
}

package fleet

import (
	"fmt"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// A Kind is what a Report is about.
type Kind string

// The kinds of reports.
const (
	Begun      Kind = "begun"       // a turn was begun, or taken over
	Ended      Kind = "ended"       // a turn has ended
	Refused    Kind = "refused"     // a turn was not begun here, and is left to other machines
	Failed     Kind = "failed"      // machines have failed to begin a turn so often that it is on the list of failed work
	HandedOver Kind = "handed_over" // a turn that waits was left to other machines, because this one ends
)

// A Report is what a worker has done.
type Report struct {
	Kind   Kind
	Work   Work
	Turn   p.TurnID      // of begun and ended
	Took   time.Duration // of ended: since the turn was taken
	Reason p.EndReason   // of ended
	Err    error         // of refused and failed; of handed over, why it was not
}

// String is the report for people.
func (r Report) String() string {
	c := fmt.Sprintf("conversation %s: ", r.Work.Conversation)
	switch r.Kind {
	case Begun:
		return c + fmt.Sprintf("turn %d started", r.Turn)
	case Ended:
		return c + fmt.Sprintf("turn %d %s after %v", r.Turn, r.Reason, r.Took.Round(time.Millisecond))
	case Failed:
		return c + fmt.Sprintf("not started, and put on the list of failed work (fermata fleet status): %v", r.Err)
	case HandedOver:
		if r.Err != nil {
			return c + fmt.Sprintf("waits, and could not be left to another node: %v", r.Err)
		}
		return c + "left to another node, which waits in the place of this one"
	}
	return c + fmt.Sprintf("not started: %v", r.Err)
}

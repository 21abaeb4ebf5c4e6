package conversation

import (
	p "github.com/fermata-agent/fermata/protocol"
)

// notify reports the end of a turn; to programs outside not that of a command which the user
// ran and has seen.
func (o *owner) notify(s p.TurnSummary) {
	if o.cfg.Ended != nil {
		o.cfg.Ended(s)
	}
	if o.cfg.Notify != nil && !s.OnlyShell {
		o.cfg.Notify(s)
	}
}

// notifyWaiting reports that the turn waits.
func (o *owner) notifyWaiting(why p.Body) {
	if o.cfg.Waits != nil {
		o.cfg.Waits(o.state.Summary)
	}
	if o.cfg.NotifyWaiting != nil {
		o.cfg.NotifyWaiting(o.state.Summary, why)
	}
}

package conversation

import "github.com/fermata-agent/fermata/internal/fold"

// A TurnSummary is what programs outside are notified of when a turn has ended.
type TurnSummary = fold.TurnSummary

// notify reports the end of a turn; not that of a command which the user ran and
// has seen.
func (o *owner) notify(s TurnSummary) {
	if o.cfg.Notify != nil && !s.OnlyShell {
		o.cfg.Notify(s)
	}
}

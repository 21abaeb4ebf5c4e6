package conversation

import (
	"errors"
	"slices"

	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// allow reports whether an op may run something with the settings that are, or
// would be, in force.
func (o *owner) allow(op any) error {
	if o.cfg.Allow == nil {
		return nil
	}
	switch op := op.(type) {
	case p.UserTurn:
		if op.Overrides != nil {
			return o.cfg.Allow(op.Overrides.Apply(o.state.Settings))
		}
		return o.cfg.Allow(o.state.Settings)
	case p.Configure:
		return o.cfg.Allow(op.Overrides.Apply(o.state.Settings))
	case p.Compact, p.UserShell:
		return o.cfg.Allow(o.state.Settings)
	case p.Approve:
		if op.Decision == p.Approved || op.Decision == p.ApprovedForSession {
			return o.cfg.Allow(o.state.TurnSettings)
		}
	}
	return nil
}

func (o *owner) takeOp(op any, receipt *p.Receipt) error {
	if err := o.allow(op); err != nil {
		return err
	}
	switch op := op.(type) {
	case p.UserTurn:
		return o.userTurn(op, receipt)
	case p.Approve:
		return o.stepErr(turn.Approval{Call: op.Call, Decision: op.Decision, Message: op.Message})
	case p.AnswerElicitation:
		return o.stepErr(turn.Elicited{Answer: op})
	case p.Configure:
		o.recordOutsideTurn(&p.Configured{Settings: o.changed(op.Overrides)})
	case p.TryNow:
		return o.tryNow(op)
	case p.Compact:
		err := o.stepErr(turn.Compact{})
		receipt.Turn = o.state.Turn
		return err
	case p.UserShell:
		err := o.stepErr(turn.Shell{Command: op.Command})
		receipt.Turn = o.state.Turn
		return err
	case p.KillBackground:
		return o.killBackground(op.ID)
	case p.Rename:
		o.recordOutsideTurn(&p.Renamed{Title: op.Title})
	case p.Revert:
		return o.revert(op)
	case p.Undo:
		return o.undo(op)
	case p.EditInput:
		return o.stepErr(turn.Edit{Input: op.Input, Content: op.Content})
	case p.DeleteInput:
		return o.stepErr(turn.Delete{Input: op.Input})
	default:
		return errors.New("unknown op")
	}
	return nil
}

func (o *owner) userTurn(op p.UserTurn, receipt *p.Receipt) error {
	o.next() // what waits comes first
	busy := o.state.Active
	if !busy && len(op.Content) > 0 && op.Into == 0 {
		o.configure(op.Overrides)
	}
	if err := o.stepErr(turn.User{Content: op.Content, WhenBusy: op.WhenBusy, Overrides: op.Overrides, Ref: op.Ref, Into: op.Into}); err != nil {
		return err
	}
	receipt.Input = o.state.LastInput
	receipt.Turn, receipt.State = o.state.Turn, p.TakenStarted
	if busy {
		receipt.State = p.TakenQueued
		if i := slices.IndexFunc(o.state.Pending, func(in turn.PendingInput) bool { return in.ID == receipt.Input }); i >= 0 && o.state.Pending[i].Joins() {
			receipt.State = p.TakenSteered
		}
	}
	return nil
}

func (o *owner) revert(op p.Revert) error {
	switch {
	case o.state.Active:
		return turn.ErrBusy
	case op.Before <= o.state.History.Compacted(), op.Before > o.state.Turn, op.Before < 1:
		return ErrRevert
	}
	o.recordOutsideTurn(&p.Reverted{Before: op.Before})
	return nil
}

// configure records the settings of the turn that is about to begin, if they
// are others than before.
func (o *owner) configure(by *p.Overrides) {
	s := o.state.Settings
	if by != nil {
		s = o.changed(*by)
	}
	if o.cfg.Environment != nil {
		now := o.cfg.Environment(s)
		if s.Cwd == o.state.Settings.Cwd || by != nil && by.Environment != nil {
			now.Git = s.Environment.Git
		}
		if s.Environment != now {
			s.Environment = now
			by = &p.Overrides{}
		}
	}
	if by != nil {
		o.recordOutsideTurn(&p.Configured{Settings: s})
	}
}

// changed returns the settings with some of them changed. Another model may have
// another context window.
func (o *owner) changed(by p.Overrides) p.Settings {
	s := by.Apply(o.state.Settings)
	if (by.Model != nil || by.Provider != nil) && o.cfg.Window != nil {
		s.ContextWindow = o.cfg.Window(s)
	}
	if (by.Model != nil || by.Provider != nil) && by.Effort == nil && o.cfg.Effort != nil && s.Effort == o.cfg.Effort(o.state.Settings) {
		s.Effort = o.cfg.Effort(s) // nobody chose the old one
	}
	return s
}

// tryNow ends a hold.
func (o *owner) tryNow(op p.TryNow) error {
	if o.state.Hold == nil {
		return turn.ErrNoHold
	}
	try := turn.TryNow{}
	if op.Overrides != nil {
		changed := o.changed(*op.Overrides)
		o.recordOutsideTurn(&p.Configured{Settings: changed})
		try.Settings = &changed
	}
	stopTimer(&o.hold)
	return o.stepErr(try)
}

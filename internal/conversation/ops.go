package conversation

import (
	"errors"
	"slices"

	"github.com/fermata-agent/fermata/internal/fold"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// accept takes an op. Everything is decided before anything is recorded, so that a refused op has changed
// nothing, and all of it is recorded as one batch, so that an op is there whole or not at all. No
// other code records events under the name of an op: one name has one batch.
func (o *owner) accept(r request) (p.Receipt, error) {
	if _, message := r.op.(p.UserTurn); message {
		o.next() // what waits comes first
	}
	cfg, brought, bringNext := o.cfg, o.brought, o.bringNext
	o.bring(r)
	busy := o.state.Active
	receipt := p.Receipt{Turn: o.state.Turn, Seq: o.state.Seq}
	events, err := o.decideOp(r.op)
	if err != nil {
		o.cfg, o.brought, o.bringNext = cfg, brought, bringNext
		return p.Receipt{}, err
	}

	o.sign(events, p.Cause{Client: r.from.Name, Op: r.from.Op})
	o.record(events...)
	receipt = o.receipt(r.op, receipt, busy) // before what follows from the events, which may start the next turn
	o.recorded()
	return receipt, nil
}

// sign says in the events of an op who caused them. A message that waited and is delivered because of the op
// is that of another op.
func (o *owner) sign(events []p.Event, by p.Cause) {
	if by == (p.Cause{}) {
		return
	}
	for _, e := range events {
		message, ok := e.Body.(*p.UserMessage)
		if ok && slices.ContainsFunc(o.state.Pending, func(in turn.PendingInput) bool { return in.ID == message.Input }) {
			continue
		}
		if b, ok := e.Body.(p.Caused); ok {
			b.SetCause(by)
		}
	}
}

// receipt completes the receipt of an op whose events are recorded. The fold makes the same of them,
// for an op that is submitted again.
func (o *owner) receipt(op any, r p.Receipt, busy bool) p.Receipt {
	switch op.(type) {
	case p.Compact:
		r.Turn = o.state.Turn
	case p.UserTurn, p.UserShell:
		r.Input, r.Turn, r.State = o.state.LastInput, o.state.Turn, p.TakenStarted
		if busy {
			r.State = p.TakenQueued
			if i := slices.IndexFunc(o.state.Pending, func(in turn.PendingInput) bool { return in.ID == r.Input }); i >= 0 && o.state.Pending[i].Joins() {
				r.State = p.TakenSteered
			}
		}
	}
	return r
}

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
	case p.TryNow:
		if op.Overrides != nil {
			return o.cfg.Allow(op.Overrides.Apply(o.state.Settings))
		}
		return o.cfg.Allow(o.state.TurnSettings)
	case p.Compact, p.UserShell:
		return o.cfg.Allow(o.state.Settings)
	case p.Approve:
		if op.Decision == p.Approved || op.Decision == p.ApprovedForSession {
			return o.cfg.Allow(o.state.TurnSettings)
		}
	}
	return nil
}

// decideOp returns the events that follow from an op, or why it is refused. It records and changes nothing.
func (o *owner) decideOp(op any) ([]p.Event, error) {
	if err := o.allow(op); err != nil {
		return nil, err
	}
	switch op := op.(type) {
	case p.UserTurn:
		return o.decideMessage(op)
	case p.Interrupt:
		return o.decide(turn.Stop{Turn: op.Turn, Reason: op.Reason})
	case p.Approve:
		return o.decide(turn.Approval{Call: op.Call, Decision: op.Decision, Message: op.Message})
	case p.AnswerElicitation:
		return o.decide(turn.Elicited{Answer: op})
	case p.Configure:
		return outsideTurn(&p.Configured{Settings: o.changed(op.Overrides)}), nil
	case p.TryNow:
		return o.decideTryNow(op)
	case p.Compact:
		return o.decide(turn.Compact{})
	case p.UserShell:
		return o.decide(turn.Shell{Command: op.Command})
	case p.KillBackground:
		return o.decideKill(op)
	case p.Rename:
		return outsideTurn(&p.Renamed{Title: op.Title}), nil
	case p.Revert:
		return o.decideRevert(op)
	case p.Undo:
		return o.decideUndo(op)
	case p.EditInput:
		return o.decide(turn.Edit{Input: op.Input, Content: op.Content})
	case p.DeleteInput:
		return o.decide(turn.Delete{Input: op.Input})
	case p.ResolveReturned:
		return o.decide(turn.Resolve{Inputs: op.Inputs, As: op.As})
	}
	return nil, errors.New("unknown op")
}

// outsideTurn is a batch of one event that belongs to no turn.
func outsideTurn(b p.Body) []p.Event { return []p.Event{{Body: b}} }

// decideMessage decides what becomes of a message. If it starts a turn, the settings of that turn are part of it.
func (o *owner) decideMessage(op p.UserTurn) ([]p.Event, error) {
	in := turn.User{Content: op.Content, WhenBusy: op.WhenBusy, Overrides: op.Overrides, Ref: op.Ref, Into: op.Into, Returned: op.Returned}
	if o.state.Active {
		return o.decide(in)
	}
	return o.decideWith(o.configured(op.Overrides), in)
}

// decideTryNow decides how a hold ends. The settings that the turn continues with are those of the turns after it as well.
func (o *owner) decideTryNow(op p.TryNow) ([]p.Event, error) {
	if op.Overrides == nil {
		return o.decide(turn.TryNow{})
	}
	changed := o.changed(*op.Overrides)
	return o.decideWith(&p.Configured{Settings: changed}, turn.TryNow{Settings: &changed})
}

func (o *owner) decideKill(op p.KillBackground) ([]p.Event, error) {
	if !slices.ContainsFunc(o.state.Background, func(b p.BackgroundStarted) bool { return b.ID == op.ID }) {
		return nil, turn.ErrNoBackground
	}
	return outsideTurn(&p.BackgroundStopRequested{ID: op.ID}), nil
}

func (o *owner) decideRevert(op p.Revert) ([]p.Event, error) {
	switch {
	case o.state.Active:
		return nil, turn.ErrBusy
	case op.Before <= o.state.History.Compacted(), op.Before > o.state.Turn, op.Before < 1:
		return nil, ErrRevert
	}
	return outsideTurn(&p.Reverted{Before: op.Before}), nil
}

var (
	// errUndo is the answer to an Undo without a step.
	errUndo = errors.New("undo: exactly one step must be set")
	// errNotUndoing is the answer to a commit that comes too late: the conversation was opened again since the undo
	// started, which has removed what was prepared.
	errNotUndoing = errors.New("the undo took too long and was rolled back; try again")
)

// decideUndo returns the event of one step of an undo, which the client carries out.
func (o *owner) decideUndo(op p.Undo) ([]p.Event, error) {
	if o.state.Active {
		return nil, turn.ErrBusy
	}
	steps := slices.Concat(undoStep(op.Started), undoStep(op.Committed), undoStep(op.Settled), undoStep(op.Done))
	if len(steps) != 1 {
		return nil, errUndo
	}
	if c := op.Committed; c != nil && !slices.ContainsFunc(o.state.Patches, func(open fold.OpenPatch) bool { return open.Patch == c.Patch }) {
		return nil, errNotUndoing
	}
	return steps, nil
}

// undoStep returns the event of a step, if that is set. It is a copy: the client may submit its op again.
func undoStep[T any, B interface {
	*T
	p.Body
}](step B) []p.Event {
	if step == nil {
		return nil
	}
	event := *step
	return outsideTurn(B(&event))
}

// configured returns the settings of the turn that is about to begin, nil if they are the same as before.
func (o *owner) configured(by *p.Overrides) *p.Configured {
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
	if by == nil {
		return nil
	}
	return &p.Configured{Settings: s}
}

// changed returns the settings with some of them changed. Another model may have
// another context window.
func (o *owner) changed(by p.Overrides) p.Settings {
	s := by.Apply(o.state.Settings)
	if (by.Model != nil || by.Provider != nil) && o.cfg.Window != nil {
		s.ContextWindow = o.cfg.Window(s)
	}
	if (by.Model != nil || by.Provider != nil) && by.Effort == nil && o.cfg.Effort != nil && s.Effort == o.cfg.Effort(o.state.Settings) {
		s.Effort = o.cfg.Effort(s) // the old one was not chosen
	}
	return s
}

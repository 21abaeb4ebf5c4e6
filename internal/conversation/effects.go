package conversation

import (
	"context"
	"time"

	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// prepare does what must not wait for the disk: making room for a turn, and
// stopping one, or a background command.
func (o *owner) prepare(b p.Body) {
	switch b := b.(type) {
	case *p.TurnStarted:
		o.ctx, o.cancel = context.WithCancelCause(context.WithoutCancel(o.base))
		o.makeTools()
	case *p.StopRequested:
		o.stopWorkers(b.Reason)
	case *p.BackgroundStopRequested:
		o.stopBackground([]p.BackgroundStarted{{ID: b.ID}}, &StoppedError{p.Interrupted})
	case *p.HoldEnded:
		stopTimer(&o.hold)
	case *p.TurnEnded:
		o.endTurn()
	}
}

// A StoppedError is the cause of a turn's cancelled context.
type StoppedError struct{ Reason p.EndReason }

func (e *StoppedError) Error() string { return "turn " + string(e.Reason) }

func (o *owner) stopWorkers(reason p.EndReason) {
	if o.cancel == nil {
		return // a crash is being cleaned up: nothing runs
	}
	if o.model != nil {
		o.model.Seal() // what the model says after the stop is not recorded
	}
	o.cancel(&StoppedError{reason})
	stopTimer(&o.hold)
	o.stopBackground(o.state.OwnBackground(), &StoppedError{reason})
	stopTimer(&o.retry)
	o.startStop()
}

// stopParts is the number of parts in which the time to stop is counted.
const stopParts = 10

// startStop limits how long the owner waits for what has to stop. The time is
// counted in parts, so that it does not run out at once when the whole machine, and
// the workers with it, was suspended for longer.
func (o *owner) startStop() {
	stopTimer(&o.stop)
	o.stop, o.stopPartsLeft = time.NewTimer(o.cfg.StopBound/stopParts), stopParts
}

// stopDue gives up the workers that have not ended when the last part is over.
func (o *owner) stopDue() {
	if o.stopPartsLeft--; o.stopPartsLeft > 0 {
		o.stop.Reset(o.cfg.StopBound / stopParts)
		return
	}

	o.stop = nil
	o.step(turn.Lost{Open: o.partials(p.ItemID{Turn: o.state.Turn}), All: o.ending()})
}

func (o *owner) endTurn() {
	if !o.ending() { // else background commands may still be waited for
		stopTimer(&o.stop)
	}
	stopTimer(&o.retry)
	if o.cancel != nil {
		o.cancel(nil)
	}
	o.model, o.elicitations = nil, nil
}

func stopTimer(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

// An effect is what an event sets in motion when it is durable. Replay makes none.
type effect struct {
	seq      p.Seq
	turn     p.TurnID
	carryOut func()
	dropped  turn.Input // reported instead when the turn stops first; may be nil
}

// queueEffect queues what an event sets in motion, if anything.
func (o *owner) queueEffect(e p.Event) {
	queue := func(dropped turn.Input, carryOut func()) {
		o.effects = append(o.effects, effect{e.Seq, e.Turn, carryOut, dropped})
	}
	switch b := e.Body.(type) {
	case *p.ModelRequested:
		queue(turn.ModelDone{Response: b.Response}, func() { o.startModel(e.Turn, *b) })
	case *p.CallStarted:
		queue(turn.ToolDone{Output: p.ToolOutput{Call: b.Call}, NotRun: true}, func() { o.startTool(*b) })
	case *p.ElicitationResolved:
		queue(nil, func() { o.elicited(*b) })
	case *p.ModelRetry:
		queue(nil, func() { o.retry = time.NewTimer(b.Wait) })
	case *p.Held:
		queue(nil, func() {
			o.startHold()
			o.notifyWaiting(b)
		})
	case *p.ApprovalRequested, *p.ElicitationRequested:
		queue(nil, func() { o.notifyWaiting(b) })
	case *p.TurnEnded:
		summary := o.state.Summary
		queue(nil, func() {
			o.notify(summary)
			o.checkpoint()
			o.next()
		})
	}
}

// dropEffects drops the effects of a turn that stops: what has not begun does
// not begin any more. No effect outlives its turn, and no other code drops one.
func (o *owner) dropEffects() {
	if !o.state.Stopping() {
		return
	}
	var dropped, others []effect
	for _, e := range o.effects {
		if e.turn == o.state.Turn {
			dropped = append(dropped, e)
		} else {
			others = append(others, e) // ends of turns before it
		}
	}
	o.effects = others
	for _, e := range dropped {
		if e.dropped != nil {
			o.step(e.dropped)
		}
	}
}

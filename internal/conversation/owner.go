package conversation

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/fermata-agent/fermata/internal/fold"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// An owner is what runs one conversation: the fold of its events, the effects
// that wait for the disk, and the workers. Only owner.run touches it.
type owner struct {
	base    context.Context // values only: what runs is stopped by the turn, not by it
	conv    *Conversation
	own     Config // what this process runs turns with
	cfg     Config // what the turn is run with: own, or what its client brought
	journal journal.Journal

	state *fold.State // the fold of the events, and nothing else

	// What clients brought.
	brought   bool   // a client has started a turn, or resumed one, since the conversation was opened
	bringNext func() // takes up what the client of a waiting message brought; nil if none waits

	// What waits for the disk.
	effects []effect // of recorded events, in order; only of the running turn, but for ends of turns
	replies []reply  // ops whose events are not yet durable
	failed  error    // the journal's, once it has failed

	// The turn that runs.
	ctx           context.Context
	cancel        context.CancelCauseFunc
	tools         []tool.Tool
	await         awaitTools    // waits for tools that are not known yet; nil if all are
	overhead      int64         // tokens of a request beside the history
	model         journal.Scope // what the model may write to
	stop          *time.Timer   // runs while the turn is stopping
	stopPartsLeft int           // parts of the time that the turn has to stop
	retry         *time.Timer   // runs before a retry
	hold          *time.Timer   // runs while the turn waits for a limit and resumes by itself

	// Background commands: those that run, and those that have ended and whose
	// remaining output a call may still read.
	background map[p.BackgroundID]tool.Background

	// Elicitations of running calls that wait for an answer.
	elicitations map[elicitationID]*elicitation

	closing           []chan answer // who waits for the conversation to close
	released          bool          // it closes because nothing goes on
	followers         int           // those that follow the conversation
	idle              *time.Timer   // runs while nothing goes on
	looked            bool          // all that was taken last is a look, which does not restart it
	recovered         []string      // what opening found and did
	unsavedBytes      int64         // bytes recorded since the last checkpoint
	checkpointBytes   int64         // bytes of that checkpoint
	checkpointWritten chan struct{} // closed when it is written; nil if there is none
}

type reply struct {
	seq    p.Seq
	answer func(error) // never blocks
}

// A message comes from a worker of a turn.
type message struct {
	turn    p.TurnID
	input   turn.Input
	record  p.Body       // or: record this, and
	once    bool         // unless it is a notice that was recorded before,
	durable chan<- error // say when it is done; has room for one
	keep    *keepRequest // or: a command that becomes a background command
	elicit  *elicitation // or: something that a call asks the person
	await   *toolsAwaited
}

var errQuit = errors.New("the program ends")

func (o *owner) run() {
	defer o.finish()
	defer o.crash()
	defer stopTimer(&o.idle)
	defer stopTimer(&o.hold)
	for !o.over() {
		o.watchIdle()
		select { // ops first: a stop must not wait behind a flood of output
		case r := <-o.conv.ops:
			o.take(r)
			continue
		default:
		}
		select {
		case r := <-o.conv.ops:
			o.take(r)
		case m := <-o.conv.inbox:
			o.receive(m)
		case <-o.journal.Notify():
			o.durable()
		case <-timerC(o.stop):
			o.stopDue()
		case <-timerC(o.retry):
			o.retry = nil
			o.step(turn.RetryDue{})
		case <-timerC(o.hold):
			o.holdDue()
		case <-o.conv.unfollow:
			o.followers--
		case <-timerC(o.idle):
			o.release()
		case <-o.conv.quit:
			o.kill()
			return
		}
	}
	o.checkpoint() // of a turn that waits there may be none yet
}

func timerC(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

// over reports whether the owner has nothing left to do: it was asked to close,
// or its journal failed, and the turn has ended.
func (o *owner) over() bool {
	if !o.ending() {
		return false
	}
	idle := !o.state.Active || o.state.Waiting() && o.failed == nil
	return idle && len(o.state.Background) == 0 && len(o.effects) == 0 && len(o.replies) == 0
}

// ending reports whether the owner only waits for the end of what runs.
func (o *owner) ending() bool { return len(o.closing) > 0 || o.released || o.failed != nil }

// finish releases the journal; everything appended is durable afterwards.
func (o *owner) finish() {
	if o.checkpointWritten != nil {
		<-o.checkpointWritten
	}
	err := o.journal.Close()
	if o.failed != nil {
		err = o.failed
	}
	o.conv.err = err
	close(o.conv.done)
}

func (o *owner) kill() {
	if o.cancel != nil {
		o.cancel(errQuit)
	}
	o.stopBackground(o.state.Background, errQuit)
}

// crash, when the owner panics, ends the conversation as a crash of the process would: what is recorded stays, and whoever
// opens the conversation next recovers it. Other conversations run on.
func (o *owner) crash() {
	value := recover()
	if value == nil {
		return
	}
	if o.own.Panicked == nil {
		panic(value)
	}
	o.failed = o.own.Panicked.Caught(value)
	_ = o.own.Panicked.Run(o.kill)
}

// take answers one op.
func (o *owner) take(r request) {
	switch op := r.op.(type) {
	case snapshotOp:
		o.looked = op.look
		o.show(r.answer)
		return
	case followOp:
		o.followers++
		r.answer <- answer{snapshot: o.snapshot()} // what is durable is given, however slow the disk is
		return
	case releaseOp:
		r.answer <- answer{released: !o.undoing() && o.releaseIf(o.resting() || op.waiting && o.restingBut(true))}
		return
	case closeOp:
		o.close(r.answer)
		return
	case stopOp:
		o.stopTurn(op.because)
		r.answer <- answer{}
		return
	case p.Interrupt:
		o.interrupt(r)
		return
	}
	switch {
	case o.failed != nil:
		r.answer <- answer{err: o.failed}
		return
	case len(o.closing) > 0:
		r.answer <- answer{err: ErrClosed}
		return
	}
	receipt, done := o.state.Done(r.from.Op)
	if !done {
		var err error
		if receipt, err = o.accept(r); err != nil {
			r.answer <- answer{err: err}
			return
		}
	}
	o.replies = append(o.replies, reply{o.state.Seq, func(err error) {
		if err != nil {
			receipt = p.Receipt{}
		}
		r.answer <- answer{receipt: receipt, err: err}
	}})
	o.durable()
}

// show answers with the state as it is now, once it is durable: whoever gets it
// goes on after its last event, and that must not be another one after a crash.
func (o *owner) show(to chan<- answer) {
	snap := o.snapshot()
	o.replies = append(o.replies, reply{snap.Last, func(error) { to <- answer{snapshot: snap} }})
	o.durable()
}

// interrupt stops the turn that is active now. It is answered at once. One that was recorded before, by its
// name, must not stop the next turn.
func (o *owner) interrupt(r request) {
	receipt, done := o.state.Done(r.from.Op)
	if done {
		r.answer <- answer{receipt: receipt}
		return
	}
	before := p.Receipt{Turn: o.state.Turn, Seq: o.state.Seq}
	receipt, err := o.accept(r)
	switch {
	case errors.Is(err, turn.ErrStopping): // it will end as this one wants
		receipt, err = before, nil
	case err != nil:
		receipt = p.Receipt{Seq: before.Seq}
	}
	r.answer <- answer{receipt: receipt, err: err}
}

func (o *owner) stopTurn(because *p.Error) {
	if !o.state.Waiting() {
		_ = o.stepErr(turn.Stop{Reason: p.Failed, Error: because}) // idle or stopping already is fine
	}
	o.endBackground()
}

func (o *owner) close(to chan answer) {
	o.closing = append(o.closing, to)
	if !o.state.Waiting() {
		_ = o.stepErr(turn.Stop{Reason: p.Interrupted}) // idle or stopping already is fine
	}
	o.endBackground()
	to <- answer{}
}

// receive takes a message of a worker.
func (o *owner) receive(m message) {
	if done, ok := m.input.(turn.BackgroundDone); ok { // it belongs to no turn
		o.step(done)
		return
	}
	if m.turn != o.state.Turn || !o.state.Active {
		// Its worker was given up. Late messages are dropped here, and only here.
		if m.durable != nil {
			m.durable <- context.Canceled
		}
		if m.keep != nil {
			m.keep.answer <- keepAnswer{err: context.Canceled}
		}
		if m.await != nil {
			m.await.dropped <- context.Canceled
		}
		if m.elicit != nil {
			m.elicit.reply(elicited{err: context.Canceled})
		}
		return
	}
	if m.elicit != nil {
		o.elicit(m.elicit)
		return
	}
	if m.await != nil {
		o.toolsKnown(m.await)
		return
	}
	if m.keep != nil {
		o.keep(m.keep)
		return
	}
	if m.durable != nil {
		o.recordFor(m)
		return
	}
	if done, ok := m.input.(turn.ModelDone); ok {
		done.Open = o.partials(p.ItemID{Turn: m.turn, Response: done.Response})
		if done.Error != nil {
			done.Refused = o.refusal(done.Error)
		}
		m.input = done
	}
	o.step(m.input)
}

// recordFor records an event on behalf of a tool. While the turn stops nothing new
// begins, but what became of a patch and notices for people are still recorded.
func (o *owner) recordFor(m message) {
	begins := true
	switch m.record.(type) {
	case *p.Notice, *p.PatchSettled:
		begins = false
	}
	if o.failed != nil || o.state.Stopping() && begins {
		m.durable <- context.Canceled
		return
	}
	if n, ok := m.record.(*p.Notice); ok && m.once && o.state.Warned[n.Text] {
		m.durable <- nil
		return
	}
	o.record(p.Event{Turn: m.turn, Body: m.record})
	o.replies = append(o.replies, reply{o.state.Seq, func(err error) { m.durable <- err }})
	o.durable()
}

// refusal looks up what the history knows of the call that a provider named.
func (o *owner) refusal(err *p.Error) *turn.Refused {
	if err.Call == nil {
		return nil
	}
	id, answered, ok := o.state.History.Find(err.Call.WireID)
	if !ok {
		return nil
	}
	return &turn.Refused{Call: id, Answered: answered}
}

// next starts a turn for the first message that waits, if none runs.
func (o *owner) next() {
	switch {
	case o.state.Active || len(o.state.Pending) == 0 || o.failed != nil:
		return
	case len(o.closing) > 0:
		o.step(turn.ReturnAll{}) // it will not be started
		return
	}
	if o.bringNext != nil {
		o.bringNext()
	}
	events, _ := o.decideWith(o.configured(o.state.Pending[0].Overrides), turn.Next{}) // idle, with a message: it fits
	o.commit(events)
}

// retries is how often a failed request may be made again.
func (o *owner) retries() turn.Retries {
	request, stream := o.cfg.Retries(o.state.TurnSettings)
	return turn.Retries{Request: request, Stream: stream}
}

// wait is the time before a retry: what the server asked for, or a growing
// time with jitter.
func (o *owner) wait(attempt int, err *p.Error) time.Duration {
	if err.After > 0 {
		return err.After
	}
	return time.Duration(float64(RetryWait(o.cfg.Backoff, attempt)) * (0.9 + 0.2*rand.Float64()))
}

// RetryWait is the time before a retry, the first of which is 1, if the service names none: it doubles.
func RetryWait(first time.Duration, attempt int) time.Duration { return first << min(attempt-1, 10) }

func (o *owner) snapshot() Snapshot {
	s := Snapshot{
		ID: o.state.ID, Settings: o.state.Settings, Title: o.state.Title, Last: o.state.Seq, Turn: o.state.Turn,
		Active: o.state.Active, Waiting: o.state.Waiting(), Hold: o.state.Hold, PendingApprovals: o.state.PendingApprovals(),
		Usage: o.state.Usage, ContextTokens: o.state.Size, Ended: o.state.Ended, Recovered: o.recovered, Background: o.state.Background, Returned: o.state.Returned,
	}
	for _, in := range o.state.Pending {
		s.Inputs = append(s.Inputs, p.ReturnedInput{Input: in.ID, Mode: in.Mode, Content: in.Content, Ref: in.Ref})
	}
	return s
}

package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Submission is a turn that some machine is to run, from its client's side.
type Submission struct {
	Queue *Queue
	Nodes func(context.Context) ([]nats.Node, error)
	Work  Work
	Label string // of the machine; empty is any

	Store  *nats.Store   // deletes the conversation if the turn was not begun
	Local  *engine.Local // looks at the conversation
	Engine engine.Engine // interrupts its turn
	Again  bool          // the turn may have been submitted before, under the same name

	Wait   time.Duration   // how long to wait for a machine to begin; negative is without end
	Detach <-chan struct{} // if it closes, the work is left in the queue
	Say    func(string)    // a line for people
}

// Errors of a submission that was not begun.
var (
	ErrDetached  = errors.New("detached: the turn waits for a node")
	ErrWithdrawn = errors.New("nothing has run")
	errDeleted   = errors.New("the conversation was deleted while its turn waited for a node")
)

// An UnknownError says that a turn was perhaps submitted: the servers did not answer for so long that this could not be
// found out.
type UnknownError struct {
	Conversation p.ConversationID
	Err          error // why it was given up
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%v; the turn may have been submitted: %s", e.Err, e.Conversation)
}

func (e *UnknownError) Unwrap() error { return e.Err }

// A FailedError says that machines have failed to begin a turn so often that it is on the list of failed work. It runs only if an
// operator has it tried again.
type FailedError struct {
	Conversation p.ConversationID
	Last         Refusal
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("%d nodes have failed to begin the turn, which is on the list of failed work now: %s: %s", maxFailures, e.Conversation, e.Last.Why)
}

// errDropped says that an operator does not want the turn to run.
var errDropped = errors.New("the turn was dropped from the queue")

// A NoNodeError says that no machine takes such work.
type NoNodeError struct{ Label string }

func (e *NoNodeError) Error() string {
	if e.Label == "" {
		return "no node takes part in the fleet"
	}
	return "no node takes part with the label " + e.Label
}

// A lateError says that no machine had time.
type lateError struct{ wait time.Duration }

func (e *lateError) Error() string { return fmt.Sprintf("no node began the turn within %v", e.wait) }

// serveHint is the command that makes a machine take part.
func (e *NoNodeError) serveHint() string {
	if e.Label == "" {
		return "fermata serve --node NAME"
	}
	return "fermata serve --node NAME --labels " + e.Label
}

// Hint says what to do about it.
func (e *NoNodeError) Hint() string { return "on a machine that is to run it: " + e.serveHint() }

// How often a submission that waits looks which machines there are, when it first says that it waits, and how long it tries to
// find out what became of a turn that it gives up.
const (
	nodesAgain = 2 * time.Second
	sayAfter   = time.Second
	settleTime = 10 * time.Second
)

// Start submits the turn and waits until a machine has begun it. If that takes too long or ctx ends, the work is withdrawn and
// the conversation deleted; if it was begun in the same moment, it is interrupted. If the servers do not answer meanwhile, the
// error is an UnknownError.
func (s Submission) Start(ctx context.Context) (p.Receipt, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	w := waiting{Submission: s, journal: s.watch(life)}
	if s.Again {
		if r, ok := s.recorded(ctx); ok {
			return r, nil
		}
	}
	if s.Wait == 0 {
		missing, err := s.missing(ctx)
		if err == nil && missing != nil {
			err = missing
		}
		if err != nil {
			return w.giveUp(life, err)
		}
	}
	refusals, leave, err := w.listen()
	if err != nil {
		return w.giveUp(life, err)
	}
	defer leave()
	w.refusals, w.put = refusals, w.submit(life)
	receipt, cause := w.await(ctx)
	if cause == nil || errors.Is(cause, ErrDetached) || errors.As(cause, new(*FailedError)) {
		return receipt, cause
	}
	return w.giveUp(life, cause)
}

// A waiting submission is one that no machine has begun.
type waiting struct {
	Submission
	journal  journalWatch
	refusals <-chan Refusal
	put      <-chan putResult // nil when its result is known
	number   uint64           // of the work in the queue; 0 if that is not known
}

type putResult struct {
	number uint64
	err    error
}

// listen receives what machines say that do not take the work, until leave is called.
func (w *waiting) listen() (_ <-chan Refusal, leave func(), _ error) {
	refusals := make(chan Refusal, 16) // more than that in one moment are not of interest
	conn := w.Queue.link.Conn
	w.Work.Reply = conn.NewInbox()
	sub, err := conn.Subscribe(w.Work.Reply, func(m *natsgo.Msg) {
		var r Refusal
		if json.Unmarshal(m.Data, &r) == nil {
			select {
			case refusals <- r:
			default:
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return refusals, func() { _ = sub.Unsubscribe() }, nil // else the connection has ended
}

// submit puts the work into the queue.
func (w *waiting) submit(ctx context.Context) <-chan putResult {
	done := make(chan putResult, 1) // room for the only one: the turn may begin first
	work, label := w.Work, w.Label
	go func() { // ends with ctx
		number, err := w.Queue.Put(ctx, label, work)
		done <- putResult{number, err}
	}()
	return done
}

// missing returns an error if no machine takes such work now.
func (s Submission) missing(ctx context.Context) (*NoNodeError, error) {
	nodes, err := s.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if TakesPart(n, s.Label) {
			return nil, nil
		}
	}
	return &NoNodeError{s.Label}, nil
}

// recorded returns the receipt of a turn that was begun before.
func (s Submission) recorded(ctx context.Context) (p.Receipt, bool) {
	for e, err := range s.Local.Read(ctx, s.Work.Conversation) {
		if err != nil {
			break // it is looked for again while it waits
		}
		if r, ok := s.receiptOf(e); ok {
			return r, true
		}
	}
	return p.Receipt{}, false
}

// receiptOf returns the receipt of the turn if an event is the first of it. Before it the settings may be changed.
func (s Submission) receiptOf(e p.Event) (p.Receipt, bool) {
	if !isOf(e, s.Work) || e.Turn == 0 {
		return p.Receipt{}, false
	}
	return p.Receipt{Turn: e.Turn, Seq: e.Seq - 1, State: p.TakenStarted}, true
}

// A journalWatch reports what is found in the journal.
type journalWatch struct {
	started chan p.Receipt // room for one: the op is recorded
	deleted chan struct{}  // room for one: there is no such conversation any more
}

// watch looks at the journal until the op is in it.
func (s Submission) watch(ctx context.Context) journalWatch {
	w := journalWatch{make(chan p.Receipt, 1), make(chan struct{}, 1)}
	go func() { // ends with ctx
		for ctx.Err() == nil {
			for e, err := range s.Local.Tail(ctx, s.Work.Conversation, 0) {
				if errors.Is(err, engine.ErrNotFound) {
					w.deleted <- struct{}{}
					return
				}
				if err != nil { // the servers may be away
					break
				}
				if r, ok := s.receiptOf(e); ok {
					w.started <- r
					return
				}
			}
			select {
			case <-time.After(nodesAgain):
			case <-ctx.Done():
			}
		}
	}()
	return w
}

// await waits until the turn has begun, and says what it waits for.
func (w *waiting) await(ctx context.Context) (p.Receipt, error) {
	var limit, settled <-chan time.Time
	if w.Wait > 0 {
		timer := time.NewTimer(w.Wait)
		defer timer.Stop()
		limit = timer.C
	}
	looking, stop := context.WithCancel(ctx)
	defer stop()
	notes, detach := w.look(looking), w.Detach
	said := map[string]bool{}
	say := func(line string) {
		if !said[line] {
			said[line] = true
			w.Say(line)
		}
	}
	for {
		select {
		case r := <-w.journal.started:
			return r, nil
		case <-w.journal.deleted:
			return p.Receipt{}, errDeleted
		case put := <-w.put:
			if w.put, w.number = nil, put.number; put.err != nil {
				return p.Receipt{}, w.Store.Explain(put.err)
			}
			if settled != nil {
				return p.Receipt{}, ErrDetached
			}
		case r := <-w.refusals:
			switch {
			case r.Failed:
				return p.Receipt{}, &FailedError{w.Work.Conversation, r}
			case r.Dropped:
				return p.Receipt{}, errDropped
			}
			say(fmt.Sprintf("node %s did not take it: %s", cmp.Or(r.Node, "that has died"), r.Why))
		case line := <-notes:
			say(line)
		case <-limit:
			if w.put == nil {
				say(w.note(ctx)) // it may not have said yet why
			}
			return p.Receipt{}, &lateError{w.Wait}
		case <-detach:
			if w.put == nil {
				return p.Receipt{}, ErrDetached
			}
			settled, detach = time.After(settleTime), nil // it is not known yet whether there is something to leave
		case <-settled:
			return p.Receipt{}, &UnknownError{w.Work.Conversation, errNoAck}
		case <-ctx.Done():
			return p.Receipt{}, context.Cause(ctx)
		}
	}
}

// look says from time to time what a submission waits for.
func (w *waiting) look(ctx context.Context) <-chan string {
	notes := make(chan string)
	go func() { // ends with ctx
		for wait := sayAfter; ; wait = nodesAgain {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
			select {
			case notes <- w.note(ctx):
			case <-ctx.Done():
				return
			}
		}
	}()
	return notes
}

// note says what a submission waits for.
func (w *waiting) note(ctx context.Context) string {
	switch missing, err := w.missing(ctx); {
	case err != nil:
		return "waiting for the NATS servers, which do not answer"
	case missing != nil:
		return fmt.Sprintf("%v; waiting for one (%s)", missing, missing.serveHint())
	}
	return "waiting for a node that has time"
}

// begun reports whether a record is part of a turn.
func begun(r journal.Record) bool { return r.Turn > 0 }

// giveUp withdraws the work. A machine may have taken it: the conversation is deleted only if no turn was begun, and
// once it is deleted no machine can open it.
func (w *waiting) giveUp(ctx context.Context, cause error) (p.Receipt, error) {
	if errors.As(cause, new(*UnknownError)) {
		return p.Receipt{}, cause
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if w.number > 0 {
		_ = w.Queue.Withdraw(ctx, w.number) // else it finds no conversation
	}
	for {
		err := w.Store.DeleteUnless(ctx, string(w.Work.Conversation), begun)
		if err == nil || errors.Is(err, engine.ErrNotFound) {
			return p.Receipt{}, fmt.Errorf("%w: %w", cause, ErrWithdrawn)
		}
		select {
		case r := <-w.journal.started:
			return w.interrupt(ctx, r, cause)
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return p.Receipt{}, &UnknownError{w.Work.Conversation, cause}
		}
	}
}

// interrupt ends a turn that was begun while it was given up. Whoever follows it sees how it ends.
func (w *waiting) interrupt(ctx context.Context, r p.Receipt, cause error) (p.Receipt, error) {
	if errors.As(cause, new(*lateError)) { // just in time
		return r, nil
	}
	_, err := w.Engine.Submit(ctx, w.Work.Conversation, p.Interrupt{Turn: r.Turn})
	if err != nil && !errors.Is(err, engine.ErrNothingToStop) {
		return p.Receipt{}, &UnknownError{w.Work.Conversation, errors.Join(cause, err)}
	}
	return r, nil
}

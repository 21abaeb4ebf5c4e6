package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Submission is a turn that some machine is to run, from its client's side.
type Submission struct {
	Queue *Queue
	Nodes func(context.Context) ([]nats.Node, error)
	Work  Work
	Label string // of the machine; empty is any

	Local  *engine.Local // looks at the conversation, and deletes it if it was not begun
	Engine engine.Engine // interrupts its turn

	Wait   time.Duration   // how long to wait for a machine to begin; negative is without end
	Detach <-chan struct{} // if it closes, the work is left in the queue
	Say    func(string)    // a line for people
}

// Errors of a submission that was not begun.
var (
	ErrDetached  = errors.New("detached: the turn waits for a node")
	ErrWithdrawn = errors.New("nothing has run")
)

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

// How often a submission that waits looks which machines there are, and when it first says that it waits.
const (
	nodesAgain = 2 * time.Second
	sayAfter   = time.Second
)

// Start submits the turn and waits until a machine has begun it. If that takes too long or ctx ends, the work is withdrawn and
// the conversation deleted; if it was begun in the same moment, it is interrupted.
func (s Submission) Start(ctx context.Context) (p.Receipt, error) {
	missing, err := s.missing(ctx)
	if err != nil {
		return p.Receipt{}, err
	}
	if missing != nil && s.Wait == 0 {
		return p.Receipt{}, errors.Join(missing, s.forget(ctx))
	}
	refusals := make(chan Refusal, 16) // more than that in one moment are not of interest
	s.Work.Reply = s.Queue.link.Conn.NewInbox()
	sub, err := s.Queue.link.Conn.Subscribe(s.Work.Reply, func(m *natsgo.Msg) {
		var r Refusal
		if json.Unmarshal(m.Data, &r) == nil {
			select {
			case refusals <- r:
			default:
			}
		}
	})
	if err != nil {
		return p.Receipt{}, err
	}
	defer func() { _ = sub.Unsubscribe() }() // else the connection has ended
	number, err := s.Queue.Put(ctx, s.Label, s.Work)
	if err != nil {
		return p.Receipt{}, errors.Join(err, s.forget(ctx))
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	started := s.watch(life)
	receipt, cause := s.await(ctx, started, refusals)
	if cause == nil || errors.Is(cause, ErrDetached) {
		return receipt, cause
	}
	return s.giveUp(life, number, cause, started)
}

// missing returns an error if no machine takes such work now.
func (s Submission) missing(ctx context.Context) (*NoNodeError, error) {
	nodes, err := s.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if takesPart(n, s.Label) {
			return nil, nil
		}
	}
	return &NoNodeError{s.Label}, nil
}

// forget deletes a conversation that nobody has heard of.
func (s Submission) forget(ctx context.Context) error {
	return s.Local.Delete(context.WithoutCancel(ctx), s.Work.Conversation)
}

// watch looks at the journal, and gives the receipt when the op is in it.
func (s Submission) watch(ctx context.Context) <-chan p.Receipt {
	started := make(chan p.Receipt, 1) // room for the only one: nobody may wait for it any more
	go func() {                        // ends with ctx
		for ctx.Err() == nil {
			for e, err := range s.Local.Tail(ctx, s.Work.Conversation) {
				if err != nil { // the servers may be away
					break
				}
				if isOf(e, s.Work) && e.Turn > 0 { // before it the settings may be changed
					started <- p.Receipt{Turn: e.Turn, Seq: e.Seq - 1, State: p.TakenStarted}
					return
				}
			}
			select {
			case <-time.After(nodesAgain):
			case <-ctx.Done():
			}
		}
	}()
	return started
}

// await waits until the turn has begun, and says what it waits for.
func (s Submission) await(ctx context.Context, started <-chan p.Receipt, refusals <-chan Refusal) (p.Receipt, error) {
	var limit <-chan time.Time
	if s.Wait > 0 {
		timer := time.NewTimer(s.Wait)
		defer timer.Stop()
		limit = timer.C
	}
	said := map[string]bool{}
	say := func(line string) {
		if !said[line] {
			said[line] = true
			s.Say(line)
		}
	}
	look := func() {
		missing, err := s.missing(ctx)
		switch {
		case err != nil: // the servers may be away
		case missing != nil:
			say(fmt.Sprintf("%v; waiting for one (%s)", missing, missing.serveHint()))
		default:
			say("waiting for a node that has time")
		}
	}
	for wait := sayAfter; ; wait = nodesAgain {
		select {
		case r := <-started:
			return r, nil
		case r := <-refusals:
			say(fmt.Sprintf("node %s did not take it: %s", r.Node, r.Why))
		case <-time.After(wait):
			look()
		case <-limit:
			look() // it may not have said yet why
			return p.Receipt{}, &lateError{s.Wait}
		case <-s.Detach:
			return p.Receipt{}, ErrDetached
		case <-ctx.Done():
			return p.Receipt{}, context.Cause(ctx)
		}
	}
}

// giveUp withdraws the work. A machine may have taken it: the conversation can be deleted only while nobody has it open, and
// once it is deleted nobody can open it.
func (s Submission) giveUp(ctx context.Context, number uint64, cause error, started <-chan p.Receipt) (p.Receipt, error) {
	_ = s.Queue.Withdraw(ctx, number) // else it finds no conversation
	for {
		err := s.forget(ctx)
		if err == nil || errors.Is(err, engine.ErrNotFound) {
			return p.Receipt{}, fmt.Errorf("%w: %w", cause, ErrWithdrawn)
		}
		if !errors.As(err, new(*engine.LockedError)) {
			return p.Receipt{}, errors.Join(cause, fmt.Errorf("withdraw the turn: %w", err))
		}
		select {
		case r := <-started:
			if errors.As(cause, new(*lateError)) { // just in time
				return r, nil
			}
			_, err := s.Engine.Submit(ctx, s.Work.Conversation, p.Interrupt{Turn: r.Turn})
			if err != nil && !errors.Is(err, engine.ErrNothingToStop) {
				return p.Receipt{}, errors.Join(cause, err)
			}
			return r, nil // whoever follows it sees how it ends
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Started returns an engine for whoever submits and follows a message as if it ran here: the first UserTurn is not
// submitted, because it was, and its receipt is this.
func Started(e engine.Engine, r p.Receipt) engine.Engine { return startedEngine{e, r} }

type startedEngine struct {
	engine.Engine
	receipt p.Receipt
}

func (e startedEngine) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	if _, ok := op.(p.UserTurn); ok {
		return e.receipt, nil
	}
	return e.Engine.Submit(ctx, id, op)
}

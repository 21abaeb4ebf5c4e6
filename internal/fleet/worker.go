package fleet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Worker takes work from a queue and runs it.
type Worker struct {
	Queue  *Queue
	Local  Local         // starts turns, in this process
	Engine engine.Engine // follows them, wherever they run
	Member nats.Member

	// Prepare says how the turn's settings differ on this machine, nil if they do not, or why it cannot be run here.
	Prepare func(context.Context, Work) (*p.Overrides, error)

	Report func(string) // a line for people: what was begun, and what was not; may be nil
}

// A Local is the engine of this process. *engine.Local is one.
type Local interface {
	Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error)
	Read(ctx context.Context, id p.ConversationID) iter.Seq2[p.Event, error]
}

// lookAgain is how often a worker looks without a hint, which may be lost.
const lookAgain = time.Second

// Run takes and runs work until ctx ends, and returns when what it runs has ended or been left to its engine.
func (w *Worker) Run(ctx context.Context) error {
	var sources []source
	for _, l := range append([]string{""}, w.Member.Labels...) {
		s, err := w.Queue.source(ctx, l)
		if err != nil {
			return err
		}
		sources = append(sources, s)
	}
	hints := make(chan struct{}, 1) // room for one: there may be work
	sub, err := w.Queue.link.Conn.Subscribe(w.Queue.hints(), func(*natsgo.Msg) { wake(hints) })
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // else the connection has ended
	var running sync.WaitGroup
	defer running.Wait()
	free := make(chan struct{}, w.Member.Turns) // holds a value for each turn that runs
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		t := w.take(ctx, sources, hints)
		if t == nil {
			return nil
		}
		running.Go(func() { // ends with its turn, or with ctx
			done := sync.OnceFunc(func() { <-free })
			defer done()
			w.run(ctx, t, done)
		})
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is noted already
	}
}

// take waits for work. It returns nil when ctx has ended.
func (w *Worker) take(ctx context.Context, sources []source, hints <-chan struct{}) *task {
	for {
		for _, s := range sources {
			if ctx.Err() != nil {
				return nil
			}
			if t, err := w.Queue.next(ctx, s); err == nil && t != nil { // the servers may be away
				return t
			}
		}
		select {
		case <-hints:
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil
		}
	}
}

// run starts a turn and follows it to its end. It calls waits when the turn waits for somebody: others can run meanwhile.
func (w *Worker) run(ctx context.Context, t *task, waits func()) {
	receipt, err := w.start(ctx, t)
	if err != nil || receipt.Turn == 0 {
		return
	}
	w.report("conversation %s: turn %d started", t.Conversation, receipt.Turn)
	_, _ = engine.FollowTurn(ctx, w.Engine, t.Conversation, receipt.Turn, receipt.Seq, func(e p.Event) { // how it ends is in the journal
		switch e.Body.(type) {
		case *p.ApprovalRequested, *p.Held:
			waits()
		}
	})
}

// start submits the op of a task. Whatever the outcome, the task is dealt with.
func (w *Worker) start(ctx context.Context, t *task) (p.Receipt, error) {
	if v := (*VersionError)(nil); errors.As(t.err, &v) {
		t.refuse(w.Member.Name, t.err)
		return p.Receipt{}, t.err
	}
	if t.err != nil {
		t.drop()
		return p.Receipt{}, t.err
	}
	defer t.hold()()
	// A conversation remembers only the latest ops by their names, so the whole of it is looked at: the work may have been
	// put into the queue twice.
	known, err := w.isRecorded(ctx, t.Work)
	if known {
		t.started(ctx)
		return p.Receipt{}, nil
	}
	var receipt p.Receipt
	if err == nil {
		receipt, err = w.submit(ctx, t.Work)
	}
	switch {
	case errors.Is(err, engine.ErrNotFound): // it was withdrawn
		t.drop()
	case errors.As(err, new(*engine.LockedError)): // it is not to run there; or it was started there meanwhile
		t.postpone()
	case err != nil && ctx.Err() == nil:
		w.report("conversation %s: not started: %v", t.Conversation, err)
		t.refuse(w.Member.Name, err)
	case err == nil:
		t.started(context.WithoutCancel(ctx))
	}
	return receipt, err
}

func (w *Worker) submit(ctx context.Context, work Work) (p.Receipt, error) {
	over, err := w.Prepare(ctx, work)
	if err != nil {
		return p.Receipt{}, err
	}
	op, _ := work.Op.Op.(p.UserTurn) // decodeWork has checked it
	if op.Overrides != nil {
		return p.Receipt{}, errors.New("a turn of the queue brings settings of its own: they belong into its conversation")
	}
	op.Overrides = over
	from := engine.Client{Name: work.Client, Op: work.Name}
	return w.Local.Submit(engine.WithClient(ctx, from), work.Conversation, op)
}

// isRecorded reports whether the op of some work is in the journal.
func (w *Worker) isRecorded(ctx context.Context, work Work) (bool, error) {
	for e, err := range w.Local.Read(ctx, work.Conversation) {
		if err != nil {
			return false, err
		}
		if isOf(e, work) {
			return true, nil
		}
	}
	return false, nil
}

// isOf reports whether an event was caused by the op of some work.
func isOf(e p.Event, work Work) bool {
	b, ok := e.Body.(p.Caused)
	return ok && b.CausedBy().Op == work.Name
}

func (w *Worker) report(format string, args ...any) {
	if w.Report != nil {
		w.Report(fmt.Sprintf(format, args...))
	}
}

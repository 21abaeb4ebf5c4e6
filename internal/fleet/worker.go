package fleet

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
	"github.com/fermata-agent/fermata/internal/policy"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Worker takes work from a queue and runs it.
type Worker struct {
	Queue  *Queue
	Local  Local         // starts turns, in this process
	Engine engine.Engine // follows them, wherever they run
	Member nats.Member

	// Prepare says how the turn's settings differ on this machine, nil if they do not, or why it cannot be run here: an
	// UnsuitableError if another machine may be able to, any other error if something has failed.
	Prepare func(context.Context, Work) (*p.Overrides, error)

	Turns  *Turns       // what it runs; may be nil
	Report func(Report) // what was begun, what has ended, and what was not begun; may be nil

	// Permit waits until this process may run one more turn, which is so until release is called; nil if it always may. It is asked before
	// work is looked for, so that processes of one machine share what that can run.
	Permit func(context.Context) (release func(), err error)

	// Drain ends the worker when it is closed: it takes nothing more, calls Await, which returns when no turn runs in this process,
	// hands over what only waits, and returns. nil is never.
	Drain <-chan struct{}
	Await func(context.Context)
}

// A Local is the engine of this process. *engine.Local is one.
type Local interface {
	Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error)
	Read(ctx context.Context, id p.ConversationID) iter.Seq2[p.Event, error]
	Resume(ctx context.Context, id p.ConversationID) (p.Snapshot, error)
	ReleaseWaiting(ctx context.Context, id p.ConversationID) error
}

// lookAgain is how often a worker looks without a hint, which may be lost.
const lookAgain = time.Second

// Run takes and runs work until ctx ends or it is drained, and returns when what it runs has ended or been left to its engine.
func (w *Worker) Run(ctx context.Context) error {
	if w.Turns == nil {
		w.Turns = &Turns{}
	}
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
	var running, starting sync.WaitGroup
	defer running.Wait()
	follow, stop := context.WithCancel(ctx)
	defer stop()
	taking, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	go func() { // ends with taking
		select {
		case <-w.Drain:
			w.Turns.drain()
			stopTaking()
		case <-taking.Done():
		}
	}()
	free := make(chan struct{}, w.Member.Turns) // holds a value for each turn that runs
	for taking.Err() == nil {
		t := w.takeWhenFree(taking, free, sources, hints)
		if t == nil {
			break
		}
		starting.Add(1)
		running.Go(func() { // ends with its turn, or with follow
			done := sync.OnceFunc(func() { <-free; t.release() })
			defer done()
			w.run(follow, t, starting.Done, done)
		})
	}
	if ctx.Err() != nil {
		return nil
	}
	starting.Wait()
	w.Await(ctx)
	w.handOver(ctx)
	return nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is noted already
	}
}

// takeWhenFree waits until a turn may run, and for work. It returns nil when ctx has ended.
func (w *Worker) takeWhenFree(ctx context.Context, free chan struct{}, sources []source, hints <-chan struct{}) *task {
	select {
	case free <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	t := w.take(ctx, sources, hints)
	if t == nil {
		<-free
	}
	return t
}

// take waits for work. It returns nil when ctx has ended.
func (w *Worker) take(ctx context.Context, sources []source, hints <-chan struct{}) *task {
	for {
		release := func() {}
		if w.Permit != nil {
			var err error
			if release, err = w.Permit(ctx); err != nil {
				return nil
			}
		}
		for _, s := range sources {
			if ctx.Err() != nil {
				break
			}
			if t, err := w.Queue.next(ctx, s); err == nil && t != nil { // the servers may be away
				t.release = release
				return t
			}
		}
		release()
		select {
		case <-hints:
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil
		}
	}
}

// run starts a turn and follows it to its end. It calls begun when the task was dealt with, and waits when the turn waits for a
// user or a limit: others can run meanwhile.
func (w *Worker) run(ctx context.Context, t *task, begun, waits func()) {
	leave := w.Turns.enter(t)
	defer leave()
	receipt, err := w.start(ctx, t)
	begun()
	if err != nil || receipt.Turn == 0 {
		return
	}
	if t.Adopt {
		w.Turns.wait(t)
		waits()
	}
	w.report(Report{Kind: Begun, Work: t.Work, Turn: receipt.Turn})
	end, err := engine.FollowTurn(ctx, w.Engine, t.Conversation, receipt.Turn, receipt.Seq, func(e p.Event) {
		switch e.Body.(type) {
		case *p.ApprovalRequested, *p.Held:
			w.Turns.wait(t)
			waits()
		case *p.ModelRequested, *p.CallStarted:
			w.Turns.resume(t)
		}
	})
	if err == nil { // else it is not known here: the journal knows
		w.report(Report{Kind: Ended, Work: t.Work, Turn: receipt.Turn, Took: time.Since(t.taken), Reason: end.End.Reason})
	}
}

// start submits the op of a task. Whatever the outcome, the task is dealt with.
func (w *Worker) start(ctx context.Context, t *task) (p.Receipt, error) {
	if v := (*VersionError)(nil); errors.As(t.err, &v) {
		t.refuse(ctx, w.Member.Name, t.err)
		return p.Receipt{}, t.err
	}
	if t.err != nil {
		t.drop()
		return p.Receipt{}, t.err
	}
	defer t.hold()()
	if !t.recall(ctx) {
		w.report(Report{Kind: Failed, Work: t.Work, Err: errors.New(died)})
		return p.Receipt{}, nil
	}
	receipt, err := w.begin(ctx, t)
	switch {
	case err == nil:
		t.started(context.WithoutCancel(ctx))
	case ctx.Err() != nil:
		t.leave(ctx)
	case errors.Is(err, engine.ErrNotFound): // it was withdrawn
		t.drop()
	case t.Adopt && errors.As(err, new(*engine.LockedError)): // another process waits in the place of the one that has left
		t.started(ctx)
	case errors.As(err, new(*engine.LockedError)): // it is not to run there; or it was started there meanwhile
		t.account(ctx, func(*Attempts) {})
		t.postpone()
	case errors.As(err, new(*UnsuitableError)), errors.As(err, new(*policy.LimitError)), errors.As(err, new(*refusal.FullError)):
		w.report(Report{Kind: Refused, Work: t.Work, Err: err})
		t.refuse(ctx, w.Member.Name, err)
	default:
		kind := Refused
		if t.fail(ctx, w.Member.Name, err) {
			kind = Failed
		}
		w.report(Report{Kind: kind, Work: t.Work, Err: err})
	}
	return receipt, err
}

// begin begins the turn of a task, or takes it over. There is no turn in the receipt if there is nothing to do.
func (w *Worker) begin(ctx context.Context, t *task) (p.Receipt, error) {
	if t.Adopt {
		return w.adopt(ctx, t.Work)
	}
	// A conversation remembers only the latest ops by their names, so the whole of it is looked at: the work may have been
	// put into the queue twice.
	known, err := w.isRecorded(ctx, t.Work)
	if known || err != nil {
		return p.Receipt{}, err
	}
	return w.submit(ctx, t.Work)
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

func (w *Worker) report(r Report) {
	if w.Report != nil {
		w.Report(r)
	}
}

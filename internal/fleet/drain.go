package fleet

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// handTime is how long handing over one turn may take.
const handTime = 10 * time.Second

// handOver leaves the turns that only wait to other machines. The conversation of one that does not only wait any more stays here, and its
// turn ends with this process.
func (w *Worker) handOver(ctx context.Context) {
	for _, t := range w.Turns.list() {
		w.report(Report{Kind: HandedOver, Work: t.Work, Err: w.handOverOne(ctx, t)})
	}
}

func (w *Worker) handOverOne(ctx context.Context, t *task) error {
	ctx, cancel := context.WithTimeout(ctx, handTime)
	defer cancel()
	if err := w.Local.ReleaseWaiting(ctx, t.Conversation); err != nil {
		return err
	}
	work := Work{Conversation: t.Conversation, Name: rand.Text(), Client: t.Client, Dir: t.Dir, Git: t.Git, Adopt: true}
	_, err := w.Queue.Put(ctx, t.label, work)
	return err
}

// adopt opens a conversation whose turn waits, in the place of the machine that has begun it.
func (w *Worker) adopt(ctx context.Context, work Work) (p.Receipt, error) {
	if _, err := w.Prepare(ctx, work); err != nil {
		return p.Receipt{}, err
	}
	s, err := w.Local.Resume(ctx, work.Conversation)
	if err != nil || !s.Active { // it was ended meanwhile
		return p.Receipt{}, err
	}
	return p.Receipt{Turn: s.Turn, Seq: s.Last, State: p.TakenStarted}, nil
}

// Turns are what a worker runs. The zero value is that of one which runs nothing yet.
type Turns struct {
	mu       sync.Mutex
	draining bool           // guarded by mu
	waiting  map[*task]bool // all that it has taken, and whether they wait; guarded by mu
}

func (ts *Turns) drain() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.draining = true
}

func (ts *Turns) enter(t *task) (leave func()) {
	ts.set(t, false)
	return func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		delete(ts.waiting, t)
	}
}

func (ts *Turns) wait(t *task)   { ts.set(t, true) }
func (ts *Turns) resume(t *task) { ts.set(t, false) }

func (ts *Turns) set(t *task, waiting bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.waiting == nil {
		ts.waiting = map[*task]bool{}
	}
	ts.waiting[t] = waiting
}

// list returns what was taken and has not ended, the oldest first.
func (ts *Turns) list() (list []*task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for t := range ts.waiting {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *task) int { return a.taken.Compare(b.taken) })
	return list
}

// maxShown is how many turns a node names.
const maxShown = 64

// Now describes them for others.
func (ts *Turns) Now() nats.Activity {
	list := ts.list()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	a := nats.Activity{Draining: ts.draining}
	for _, t := range list[:min(len(list), maxShown)] {
		a.Work = append(a.Work, nats.Turn{
			Conversation: string(t.Conversation), Client: t.Client, Seconds: int64(time.Since(t.taken).Seconds()), Waiting: ts.waiting[t],
		})
	}
	return a
}

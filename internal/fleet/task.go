package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A task is work that this machine has taken.
type task struct {
	Work
	err error // it cannot be understood
	msg jetstream.Msg

	queue     *Queue
	label     string
	number    uint64 // in the queue
	delivered uint64 // how often it was taken, this time included
	attempts  Attempts
	taken     time.Time
	release   func() // gives back the permit to run it
}

// next returns the next task, nil if there is none.
func (q *Queue) next(ctx context.Context, from source) (*task, error) {
	batch, err := from.consumer.FetchNoWait(1)
	if err != nil {
		return nil, err
	}
	select {
	case m, ok := <-batch.Messages():
		if !ok {
			return nil, batch.Error()
		}
		t := &task{msg: m, queue: q, label: q.labelOf(m.Subject()), delivered: 1, taken: time.Now()}
		t.Work, t.err = decodeWork(m.Data())
		if md, err := m.Metadata(); err == nil {
			t.number, t.delivered = md.Sequence.Stream, md.NumDelivered
		}
		return t, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// hold keeps the task from being given to others, until the returned function is called.
func (t *task) hold() (release func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with release
		defer close(done)
		tick := time.NewTicker(ackWait / 4)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = t.msg.InProgress() // else another may get it, and finds the turn started or starts it
			case <-over:
				return
			}
		}
	}()
	return func() { close(over); <-done }
}

// started deletes the task: its turn is recorded.
func (t *task) started(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	_ = t.msg.DoubleAck(ctx) // else another gets it, and finds the turn started
	if t.delivered > 1 {
		t.queue.forget(ctx, t.Name)
	}
}

// drop deletes a task that no machine can run.
func (t *task) drop() { _ = t.msg.Term() }

// The longest time until a task that was refused is given to a machine again; the first time is a second.
const maxRetry = time.Minute

// refuse leaves the task to other machines, and to this one later: it does not suit this one.
func (t *task) refuse(ctx context.Context, node string, why error) {
	r := Refusal{Node: node, Why: shorten(why)}
	t.reply(r)
	t.account(ctx, func(a *Attempts) { a.Last = &r })
	t.postpone()
}

// fail is refuse for a machine that the task suits, and which could not begin the turn. When that has happened too often, the
// task is put on the list of failed work, and fail returns true.
func (t *task) fail(ctx context.Context, node string, why error) bool {
	r := Refusal{Node: node, Why: shorten(why)}
	t.account(ctx, func(a *Attempts) { a.add(r) })
	return t.judge(ctx, r)
}

// judge puts a task that machines have failed at too often on the list of failed work; others come back later.
func (t *task) judge(ctx context.Context, last Refusal) bool {
	if last.Failed = len(t.attempts.Failures) >= maxFailures; last.Failed {
		if err := t.queue.putAside(ctx, t); err != nil {
			last.Failed = false // it is tried again
		}
	}
	t.reply(last)
	if last.Failed {
		t.drop()
		return true
	}
	t.postpone()
	return false
}

// leave returns the task to the queue at once: this machine ends.
func (t *task) leave(ctx context.Context) {
	t.account(context.WithoutCancel(ctx), func(*Attempts) {})
	_ = t.msg.Nak() // else it comes back after ackWait
}

func (t *task) reply(r Refusal) { t.queue.reply(t.Work, r) }

// reply tells the client that waits for some work, if it still does.
func (q *Queue) reply(w Work, r Refusal) {
	if w.Reply == "" {
		return
	}
	data, _ := json.Marshal(r)             // it is a plain value
	_ = q.link.Conn.Publish(w.Reply, data) // else the client finds out by itself, or looks at the list
}

// postpone leaves the task in the queue for a while, the longer the more often.
func (t *task) postpone() {
	_ = t.msg.NakWithDelay(min(maxRetry, time.Second<<min(t.delivered-1, 6))) // else it comes back after ackWait
}

// putAside puts a task on the list of failed work. It is known by its number, so that this happens once.
func (q *Queue) putAside(ctx context.Context, t *task) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	m := natsgo.NewMsg(q.failedSubject())
	m.Data = t.msg.Data()
	m.Header.Set(subjectHeader, t.msg.Subject())
	m.Header.Set(jetstream.MsgIDHeader, fmt.Sprintf("failed-%s-%d", t.Name, t.number))
	_, err := q.publish(ctx, m)
	return err
}

// subjectHeader says under which subject failed work was submitted.
const subjectHeader = "Fermata-Subject"

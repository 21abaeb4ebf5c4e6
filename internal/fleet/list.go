package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Waiting is work in the queue, or on the list of failed work.
type Waiting struct {
	Work
	Attempts

	Number uint64 // in the queue
	Label  string // of the machines that it is for; empty is any
	Since  time.Time
	Failed bool  // it is on the list of failed work
	Err    error // it cannot be understood
}

// maxListed is how many are listed.
const maxListed = 1000

// List returns the work that no machine has begun, the oldest first, and that on the list of failed work. more is how many
// there are beyond that.
func (q *Queue) List(ctx context.Context) (list []Waiting, more uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	attempts, err := q.allAttempts(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read the attempts at waiting work: %w", err)
	}
	for next := uint64(1); len(list) < maxListed; {
		m, err := q.stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(q.link.Name+".w.>"))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return list, 0, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read the queue: %w", err)
		}
		w := q.waiting(m)
		w.Attempts = attempts[w.Name]
		list = append(list, w)
		next = m.Sequence + 1
	}
	info, err := q.stream.Info(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read the queue: %w", err)
	}
	return list, info.State.Msgs - min(info.State.Msgs, uint64(len(list))), nil
}

func (q *Queue) waiting(m *jetstream.RawStreamMsg) Waiting {
	w := Waiting{Number: m.Sequence, Since: m.Time, Failed: m.Subject == q.failedSubject()}
	w.Label = q.labelOf(m.Subject)
	if w.Failed {
		w.Label = q.labelOf(m.Header.Get(subjectHeader))
	}
	w.Work, w.Err = decodeWork(m.Data)
	return w
}

// Errors of who decides about failed work.
var (
	ErrNoSuchWork = errors.New("there is no such work in the queue")
	ErrNotFailed  = errors.New("it has not failed: it waits for a node")
)

func (q *Queue) find(ctx context.Context, number uint64) (*jetstream.RawStreamMsg, error) {
	m, err := q.stream.GetMsg(ctx, number)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, ErrNoSuchWork
	}
	return m, err
}

// Retry submits work from the list of failed work again. Its turn is still begun at most once.
func (q *Queue) Retry(ctx context.Context, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	found, err := q.find(ctx, number)
	if err != nil {
		return err
	}
	if found.Subject != q.failedSubject() {
		return ErrNotFailed
	}
	w := q.waiting(found)
	q.forget(ctx, w.Name)
	m := natsgo.NewMsg(found.Header.Get(subjectHeader))
	m.Data = found.Data
	m.Header.Set(jetstream.MsgIDHeader, fmt.Sprintf("retry-%d", number))
	if _, err := q.publish(ctx, m); err != nil {
		return err
	}
	_ = q.link.Conn.Publish(q.hints(), nil) // else it is found a moment later
	return q.Withdraw(ctx, number)
}

// Drop removes work from the list of failed work, or from the queue, and tells its client. A machine may have taken it meanwhile.
func (q *Queue) Drop(ctx context.Context, number uint64) (Waiting, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	found, err := q.find(ctx, number)
	if err != nil {
		return Waiting{}, err
	}
	w := q.waiting(found)
	if err := q.Withdraw(ctx, number); err != nil {
		return w, err
	}
	q.forget(ctx, w.Name)
	q.reply(w.Work, Refusal{Why: "it was dropped from the queue", Dropped: true})
	return w, nil
}

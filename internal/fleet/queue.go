package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal/nats"
	"github.com/fermata-agent/fermata/internal/journal/nats/provision"
)

// A Queue is the work that no machine has begun. It is a stream: a message is deleted when its turn has
// been started.
type Queue struct {
	link   nats.Link
	stream jetstream.Stream
}

// How long work is kept, one request may take, and a machine may hold a message without a sign of life before another gets it.
const (
	workAge     = 7 * 24 * time.Hour
	requestTime = 5 * time.Second
	openTime    = 30 * time.Second // hundreds of clients may come at once
	ackWait     = 10 * time.Second
)

// OpenQueue returns the queue, and makes it if it is missing.
func OpenQueue(ctx context.Context, link nats.Link) (*Queue, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	name := link.Name + "-work"
	stream, err := provision.Stream(ctx, link.JetStream, jetstream.StreamConfig{
		Name: name, Description: "turns that wait for a node of fermata", Subjects: []string{link.Name + ".w.>"},
		Retention: jetstream.WorkQueuePolicy, Storage: link.Storage, Replicas: link.Replicas, Discard: jetstream.DiscardNew, MaxAge: workAge,
	})
	if err != nil {
		return nil, fmt.Errorf("use the queue %s: %w", name, err)
	}
	return &Queue{link, stream}, nil
}

func (q *Queue) subject(label string) string {
	if label == "" {
		return q.link.Name + ".w.any"
	}
	return q.link.Name + ".w.label." + label
}

func (q *Queue) hints() string { return q.link.Name + ".hint-work" }

// Withdraw removes work that has not been started. A machine may have taken it already.
func (q *Queue) Withdraw(ctx context.Context, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	err := q.stream.DeleteMsg(ctx, number)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

// A source is where work of one label comes from.
type source struct{ consumer jetstream.Consumer }

func (q *Queue) source(ctx context.Context, label string) (source, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	name := "any"
	if label != "" {
		name = "label-" + label
	}
	c, err := q.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: name, FilterSubject: q.subject(label), AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1, MaxAckPending: -1,
	})
	if err != nil {
		return source{}, fmt.Errorf("take part in the queue: %w", err)
	}
	return source{c}, nil
}

// A task is work that this machine has taken.
type task struct {
	Work
	err error // it cannot be understood
	msg jetstream.Msg
	nc  *natsgo.Conn
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
		t := &task{msg: m, nc: q.link.Conn}
		t.Work, t.err = decodeWork(m.Data())
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
}

// drop deletes a task that nobody can run.
func (t *task) drop() { _ = t.msg.Term() }

// The longest time until a task that was refused is given to a machine again; the first time is a second.
const maxRetry = time.Minute

// refuse leaves the task to other machines, and to this one later.
func (t *task) refuse(node string, why error) {
	if t.Reply != "" {
		data, _ := json.Marshal(Refusal{node, why.Error()})
		_ = t.nc.Publish(t.Reply, data)
	}
	t.postpone()
}

// postpone leaves the task in the queue for a while, the longer the more often.
func (t *task) postpone() {
	wait := time.Second
	if md, err := t.msg.Metadata(); err == nil {
		wait = min(maxRetry, time.Second<<min(md.NumDelivered-1, 6))
	}
	_ = t.msg.NakWithDelay(wait) // else it comes back after ackWait
}

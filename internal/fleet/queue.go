package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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

// labelOf is the label that a subject is for.
func (q *Queue) labelOf(subject string) string {
	label, _ := strings.CutPrefix(subject, q.link.Name+".w.label.")
	if label == subject {
		return ""
	}
	return label
}

// failedSubject has no machine take anything from it: it is the list of failed work.
func (q *Queue) failedSubject() string { return q.link.Name + ".w.failed" }

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

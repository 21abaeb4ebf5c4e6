package fleet

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal/nats/provision"
)

// maxFailures is how often machines may fail at some work before an operator has to decide.
const maxFailures = 3

// Attempts are what became of some work that no machine has begun.
type Attempts struct {
	Seen     uint64    `json:"seen,omitempty"`     // how many of its deliveries are accounted for; the machines that had the others have died
	Failures []Refusal `json:"failures,omitempty"` // of machines
	Last     *Refusal  `json:"last,omitempty"`     // the latest of a machine that it does not suit
}

func (a *Attempts) add(r Refusal) { a.Failures = append(a.Failures, r) }

// died is the failure of a machine that cannot say it.
const died = "the node that had taken it ended or was cut off before the turn began"

// recall finds out what became of a task before, and counts machines that have died with it. It returns false if that was too often.
func (t *task) recall(ctx context.Context) bool {
	if t.delivered <= 1 {
		return true
	}
	t.attempts = t.queue.attemptsOf(ctx, t.Name)
	lost := int64(t.delivered-1) - int64(t.attempts.Seen)
	for range min(max(lost, 0), maxFailures) {
		t.attempts.add(Refusal{Why: died})
	}
	if lost <= 0 || len(t.attempts.Failures) < maxFailures {
		return true
	}
	t.account(ctx, func(*Attempts) {})
	return !t.judge(ctx, t.attempts.Failures[len(t.attempts.Failures)-1])
}

// account notes how an attempt has ended. If that cannot be noted, it counts as a machine that has died.
func (t *task) account(ctx context.Context, change func(*Attempts)) {
	if t.Name == "" { // it cannot be understood
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	t.attempts.Seen = t.delivered
	change(&t.attempts)
	kv, err := t.queue.attempts(ctx)
	if err != nil {
		return
	}
	value, _ := json.Marshal(t.attempts) // it is a plain value
	_, _ = kv.Put(ctx, t.Name, value)
}

// attempts returns the bucket of attempts, and makes it if it is missing.
func (q *Queue) attempts(ctx context.Context) (jetstream.KeyValue, error) {
	return provision.Bucket(ctx, q.link.JetStream, provision.BucketConfig{
		Name: q.attemptsName(), Replicas: q.link.Replicas, Storage: q.link.Storage, Age: workAge,
	})
}

func (q *Queue) attemptsName() string { return q.link.Name + "-attempts" }

// attemptsOf returns what is noted of some work; nothing if that is not known.
func (q *Queue) attemptsOf(ctx context.Context, name string) (a Attempts) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	kv, err := q.link.JetStream.KeyValue(ctx, q.attemptsName())
	if err != nil {
		return a
	}
	e, err := kv.Get(ctx, name)
	if err != nil || json.Unmarshal(e.Value(), &a) != nil {
		return Attempts{}
	}
	return a
}

// forget deletes what is noted of some work.
func (q *Queue) forget(ctx context.Context, name string) {
	if kv, err := q.link.JetStream.KeyValue(ctx, q.attemptsName()); err == nil {
		_ = kv.Purge(ctx, name) // else it is forgotten after a week
	}
}

// allAttempts returns what is noted of all work, by its name.
func (q *Queue) allAttempts(ctx context.Context) (map[string]Attempts, error) {
	kv, err := q.link.JetStream.KeyValue(ctx, q.attemptsName())
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	all := map[string]Attempts{}
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return nil, errNoAck
			}
			if e == nil { // that is all
				return all, nil
			}
			var a Attempts
			if json.Unmarshal(e.Value(), &a) == nil { // else another version wrote it
				all[e.Key()] = a
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// maxWhy is how much of an error is kept.
const maxWhy = 500

func shorten(err error) string {
	text := err.Error()
	if len(text) > maxWhy {
		text = text[:maxWhy] + "…"
	}
	return text
}

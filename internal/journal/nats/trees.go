package nats

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Trees and Bundles are what the bucket and the object store are called, after the name of the stream and a dash, that
// keep work trees: see package worktree.
const (
	Trees   = "trees"
	Bundles = "bundles"
)

// Explain says in words for people why the servers refuse something.
func (s *Store) Explain(err error) error { return s.explain(err) }

// Bucket returns a key-value bucket of the name, and makes it if it is missing.
func (s *Store) Bucket(ctx context.Context, what string) (jetstream.KeyValue, error) {
	return s.BucketFor(ctx, what, 0)
}

// BucketFor is Bucket of which each value is forgotten after a time, or never if that is 0. The time matters when the
// bucket is made.
func (s *Store) BucketFor(ctx context.Context, what string, age time.Duration) (jetstream.KeyValue, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return s.bucket(ctx, l, what, l.replicas, age)
}

// forgetTree deletes what is kept of the work tree of a conversation that is deleted. What cannot be deleted only takes room.
func (s *Store) forgetTree(ctx context.Context, l *link, id string) {
	kv, err := l.js.KeyValue(ctx, s.o.Name+"-"+Trees)
	if err != nil {
		return
	}
	e, err := kv.Get(ctx, id)
	if err != nil {
		return
	}
	var kept struct {
		Bundle string `json:"bundle"`
	}
	_ = kv.Purge(ctx, id)
	if json.Unmarshal(e.Value(), &kept) != nil || kept.Bundle == "" {
		return
	}
	if o, err := l.js.ObjectStore(ctx, s.o.Name+"-"+Bundles); err == nil {
		_ = o.Delete(ctx, kept.Bundle)
	}
}

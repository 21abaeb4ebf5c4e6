package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// SetMaxBytes changes how many bytes the stream of conversations may have; 0 is no limit.
func SetMaxBytes(ctx context.Context, js jetstream.JetStream, name string, n int64) error {
	return change(ctx, js, name, func(i *jetstream.StreamInfo) error {
		if used := int64(i.State.Bytes); n > 0 && n < used {
			return fmt.Errorf("the stream has %d bytes: delete conversations first", used)
		}
		newLimit(n).apply(&i.Config)
		return nil
	})
}

// SetReplicas changes on how many servers everything is kept.
func SetReplicas(ctx context.Context, js jetstream.JetStream, name string, n int) error {
	for _, stream := range Streams(name) {
		err := change(ctx, js, stream, func(i *jetstream.StreamInfo) error { i.Config.Replicas = n; return nil })
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
	}
	return nil
}

// SetLease changes how long leases last. inUse returns an error while a process has one: it has read how long that lasts, and
// relies on it. It is asked before and afterwards: a process may have taken a lease meanwhile.
func SetLease(ctx context.Context, js jetstream.JetStream, name string, age time.Duration, inUse func() error) error {
	if age < minAge || age > maxAge {
		return fmt.Errorf("a lease lasts between %v and %v", minAge, maxAge)
	}
	if err := inUse(); err != nil {
		return err
	}
	var was time.Duration
	set := func(to time.Duration) error {
		return change(ctx, js, "KV_"+name+"-nodes", func(i *jetstream.StreamInfo) error {
			was, i.Config.MaxAge = i.Config.MaxAge, to
			i.Config.Duplicates = min(i.Config.Duplicates, to) // the servers refuse one that is longer
			return nil
		})
	}
	if err := set(age); err != nil {
		return err
	}
	if err := inUse(); err != nil {
		return errors.Join(err, set(was))
	}
	return nil
}

// Streams returns the names of all streams of a store. Some of them are made only when they are needed.
func Streams(name string) []string {
	return []string{
		name, name + "-checkpoints", name + "-work", "KV_" + name + "-index", "KV_" + name + "-nodes",
		"KV_" + name + "-trees", "KV_" + name + "-submissions", "KV_" + name + "-attempts", "OBJ_" + name + "-bundles",
	}
}

// change changes the configuration of a stream.
func change(ctx context.Context, js jetstream.JetStream, name string, f func(*jetstream.StreamInfo) error) error {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return &refusal.StreamError{Name: name, Err: err}
	}
	info := stream.CachedInfo()
	if err := f(info); err != nil {
		return err
	}
	if _, err := js.UpdateStream(ctx, info.Config); err != nil {
		return &refusal.StreamError{Name: name, Err: err}
	}
	return nil
}

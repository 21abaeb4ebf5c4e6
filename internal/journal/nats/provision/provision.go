// Package provision makes, checks and changes the streams and buckets that a store on NATS consists of.
package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// A Layout says how the streams of a store are made.
type Layout struct {
	Name     string // of the stream, and the first word of all subjects
	Replicas int    // 1 if 0
	Memory   bool   // keep everything in the servers' memory
	MaxBytes int64  // 0 is no limit
}

// Storage is where messages are kept.
func (l Layout) Storage() jetstream.StorageType {
	if l.Memory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

// Conversations is how the stream for conversations is made.
func (l Layout) Conversations() jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:        l.Name,
		Description: "conversations of fermata",
		Subjects:    []string{l.Name + ".c.>", l.Name + ".aside.>"},
		Storage:     l.Storage(),
		Replicas:    max(l.Replicas, 1),
		Discard:     jetstream.DiscardNew, // a full stream refuses; it does not forget
		AllowDirect: true,
	}
	newLimit(l.MaxBytes).apply(&c)
	return c
}

// Stream returns a stream, and makes it if it is missing.
func Stream(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig) (stream jetstream.Stream, err error) {
	err = refusal.UntilLed(ctx, func() error {
		stream, err = js.Stream(ctx, c.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			stream, err = js.CreateStream(ctx, c)
		}
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another node was faster
			stream, err = js.Stream(ctx, c.Name)
		}
		return err
	})
	if err != nil {
		return nil, &refusal.StreamError{Name: c.Name, Err: err}
	}
	return stream, nil
}

// A BucketConfig says how a key-value bucket is made.
type BucketConfig struct {
	Name     string
	Replicas int
	Storage  jetstream.StorageType
	Age      time.Duration // after which a value is forgotten; 0 is never
}

// Bucket returns a key-value bucket, and makes it if it is missing. Unlike those that the library makes, it is
// read from the leader only: a lease that a replica has not seen yet must not be missing. It
// keeps two values of a key, because the server deletes the one before the last a moment
// before it has the new one: with one value, a lease that is renewed would be missing then.
func Bucket(ctx context.Context, js jetstream.JetStream, c BucketConfig) (jetstream.KeyValue, error) {
	var kv jetstream.KeyValue
	err := refusal.UntilLed(ctx, func() (err error) {
		if kv, err = js.KeyValue(ctx, c.Name); !errors.Is(err, jetstream.ErrBucketNotFound) {
			return err
		}
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: "KV_" + c.Name, Subjects: []string{"$KV." + c.Name + ".>"}, MaxMsgsPerSubject: 2, MaxAge: c.Age,
			Storage: c.Storage, Replicas: c.Replicas, Discard: jetstream.DiscardNew,
			AllowRollup: true, DenyDelete: true, MaxBytes: -1, MaxMsgs: -1,
		})
		if err == nil || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			kv, err = js.KeyValue(ctx, c.Name)
		}
		return err
	})
	if err != nil {
		return nil, &refusal.StreamError{Name: c.Name, Err: err}
	}
	return kv, nil
}

// The shortest and the longest lease.
const (
	minAge = time.Second
	maxAge = time.Hour
)

// Age returns after how long the bucket of leases forgets a value.
func Age(ctx context.Context, kv jetstream.KeyValue) (time.Duration, error) {
	st, err := kv.Status(ctx)
	if err != nil {
		return 0, err
	}
	if st.TTL() < minAge || st.TTL() > maxAge {
		return 0, &refusal.StreamError{Name: kv.Bucket(), Err: fmt.Errorf("its time to live is %v, want between 1s and 1h", st.TTL())}
	}
	return st.TTL(), nil
}

// Check says why a stream cannot hold conversations.
func Check(c jetstream.StreamConfig, name string) error {
	wrong := ""
	switch {
	case !slices.Contains(c.Subjects, name+".c.>") || !slices.Contains(c.Subjects, name+".aside.>"):
		wrong = fmt.Sprintf("its subjects are %v", c.Subjects)
	case c.Retention != jetstream.LimitsPolicy:
		wrong = fmt.Sprintf("its retention is %v", c.Retention)
	case c.Discard != jetstream.DiscardNew:
		wrong = "it discards old messages when it is full"
	case c.MaxAge != 0 || c.MaxMsgsPerSubject > 0:
		wrong = "it forgets messages"
	case !c.AllowDirect:
		wrong = "it does not allow direct access"
	case c.NoAck:
		wrong = "it does not acknowledge"
	default:
		return nil
	}
	return &refusal.StreamError{Name: name, Err: errors.New("it was not made for conversations: " + wrong)}
}

package provision

import (
	"context"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// A Limit is how many bytes the stream of conversations may have.
type Limit struct {
	Max     int64 // as long as it has fewer, turns are run; 0 is no limit
	Reserve int64 // what it may have beyond that: turns are ended with it, conversations opened and deleted
}

// limitKey is the metadata of a stream that says its Limit.Max. The servers' own limit has the reserve as well.
const limitKey = "fermata-max-bytes"

// What a reserve is at least and at most. Between that it is a part of the limit. When a turn ends, the text of its open items
// is in the stream twice for a moment, up to a megabyte for each.
const (
	minReserve  = 4 << 20
	maxReserve  = 256 << 20
	reservePart = 16
)

func newLimit(maxBytes int64) Limit {
	if maxBytes <= 0 {
		return Limit{}
	}
	return Limit{maxBytes, min(max(maxBytes/reservePart, minReserve), maxReserve)}
}

// apply makes the limit that of a stream.
func (l Limit) apply(c *jetstream.StreamConfig) {
	c.Metadata = maps.Clone(c.Metadata)
	delete(c.Metadata, limitKey)
	if l.Max == 0 {
		c.MaxBytes = -1
		return
	}
	if c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	c.MaxBytes, c.Metadata[limitKey] = l.Max+l.Reserve, strconv.FormatInt(l.Max, 10)
}

// LimitOf returns the limit of a stream. One that was made without a reserve has it within its limit, if that is large enough.
func LimitOf(c jetstream.StreamConfig) Limit {
	if c.MaxBytes <= 0 {
		return Limit{}
	}
	if n, err := strconv.ParseInt(c.Metadata[limitKey], 10, 64); err == nil && n > 0 && n < c.MaxBytes {
		return Limit{n, c.MaxBytes - n}
	}
	l := newLimit(c.MaxBytes)
	if l.Max <= 2*l.Reserve {
		return Limit{Max: c.MaxBytes}
	}
	return Limit{c.MaxBytes - l.Reserve, l.Reserve}
}

// loan is by how much a limit is raised for something that cannot wait until there is room.
const loan = 64 << 10

// WithLoan calls f while a stream may have some bytes more than its limit.
func WithLoan(ctx context.Context, js jetstream.JetStream, name string, f func() error) error {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return err
	}
	c := stream.CachedInfo().Config
	if c.MaxBytes <= 0 { // it is not the stream that has no room
		return f()
	}
	was, known := c.MaxBytes, c.Metadata[limitKey] != ""
	c.MaxBytes += loan
	if _, err := js.UpdateStream(ctx, c); err != nil {
		return err
	}
	defer func() {
		if known { // others may lend at the same time, and none of them must keep what another has lent
			newLimit(LimitOf(c).Max).apply(&c)
		} else {
			c.MaxBytes = was
		}
		_, _ = js.UpdateStream(context.WithoutCancel(ctx), c) // else it stays a little larger
	}()
	return f()
}

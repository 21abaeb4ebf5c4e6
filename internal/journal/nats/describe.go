package nats

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal/nats/provision"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// Describe says, in lines for people, where conversations are kept and what is wrong
// with that. It makes the stream if it does not exist, as the first conversation would.
func (s *Store) Describe(ctx context.Context) []string {
	l, err := s.connect(ctx)
	if err != nil {
		return []string{"problem: " + s.explain(err).Error()}
	}
	lines := []string{fmt.Sprintf("NATS %s at %s", l.nc.ConnectedServerVersion(), refusal.Redact(l.nc.ConnectedUrl()))}
	if !l.nc.AuthRequired() && s.o.Auth.Cert == "" {
		lines = append(lines, "warning: the NATS server asks for no credentials: whatever can reach it can use all conversations, and run turns on all nodes (docs/fleet.md)")
	}
	stream, err := l.js.Stream(ctx, s.o.Name)
	if err != nil {
		return append(lines, "problem: "+(&refusal.StreamError{Name: s.o.Name, Err: err}).Error())
	}
	info := stream.CachedInfo()
	c := info.Config
	lines = append(lines, fmt.Sprintf("stream %s: %d messages, %d bytes, %s", c.Name, info.State.Msgs, info.State.Bytes, replicas(c.Replicas)))
	if limit := provision.LimitOf(c); limit.Max > 0 {
		lines = append(lines, fmt.Sprintf("%d %% of its %d bytes are used; %d more are kept for ending turns and deleting", info.State.Bytes*100/uint64(limit.Max), limit.Max, limit.Reserve))
	}
	lines = append(lines, warnings(c)...)
	if l.ttl != s.o.Lease {
		lines = append(lines, fmt.Sprintf("warning: leases last %v, as the stream says: [store] lease_ms counts only when the stream is made (fermata store set lease_ms changes it)", l.ttl))
	}
	return lines
}

func replicas(n int) string {
	if n == 1 {
		return "on one server"
	}
	return fmt.Sprintf("on %d servers", n)
}

// warnings says what a loss of power could take.
func warnings(c jetstream.StreamConfig) []string {
	switch {
	case c.Storage == jetstream.MemoryStorage:
		return []string{"warning: the stream is in memory: conversations are lost when its servers stop"}
	case c.Replicas < 3:
		return []string{"warning: with fewer than 3 replicas, a power failure of the server may lose the last seconds, unless it is run with sync_interval: always"}
	}
	return nil
}

// A Usage is how full the stream of conversations is.
type Usage struct {
	Messages, Bytes uint64
	Max             int64 // of bytes; 0 is no limit
	Replicas        int
}

// Usage looks at the stream.
func (s *Store) Usage(ctx context.Context) (Usage, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return Usage{}, s.explain(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, refusal.ErrNoAnswer)
	defer cancel()
	stream, err := l.js.Stream(ctx, s.o.Name)
	if err != nil {
		return Usage{}, s.explain(err)
	}
	info := stream.CachedInfo()
	return Usage{Messages: info.State.Msgs, Bytes: info.State.Bytes, Max: provision.LimitOf(info.Config).Max, Replicas: info.Config.Replicas}, nil
}

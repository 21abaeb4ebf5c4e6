package fleet

import (
	"context"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/journaltest"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	"github.com/fermata-agent/fermata/internal/randomtest"
)

// startServer starts a server that listens nowhere: with connections within the
// process it can be used in a synctest bubble.
func startServer(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	runClock(t)
	o.DontListen, o.JetStream, o.StoreDir, o.NoSigs, o.NoLog, o.DisableJetStreamBanner = true, true, t.TempDir(), true, true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

// shortLease is that of stores in tests that wait for its end.
const shortLease = 1500 * time.Millisecond

// A cluster is a store whose conversations are each opened by a node of its own, so
// that each can crash alone.
type cluster struct {
	*nats.Store // for everything but writing
	t           testing.TB
	options     nats.Options

	mu    sync.Mutex
	nodes map[string]node
}

type node struct {
	store   *nats.Store
	journal journal.Journal
}

func newCluster(t testing.TB, o journaltest.Options, connect ...natsgo.Option) *cluster {
	c := &cluster{t: t, nodes: make(map[string]node)}
	c.options = nats.Options{Connect: connect, Lease: shortLease, BeforeRecords: func(ctx context.Context) error {
		if o.SyncDelay != nil {
			select {
			case <-time.After(o.SyncDelay()):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if o.SyncError != nil {
			return o.SyncError()
		}
		return nil
	}}
	c.Store = c.node()
	return c
}

func (c *cluster) node() *nats.Store {
	s := nats.New(c.t.Context(), c.options)
	c.t.Cleanup(func() { s.Close() })
	return s
}

func (c *cluster) Create(ctx context.Context, id string, at time.Time) (journal.Journal, error) {
	s := c.node()
	j, err := s.Create(ctx, id, at)
	return c.remember(id, s, j, err)
}

func (c *cluster) Open(ctx context.Context, id string) (journal.Journal, error) {
	s := c.node()
	j, err := s.Open(ctx, id)
	return c.remember(id, s, j, err)
}

func (c *cluster) remember(id string, s *nats.Store, j journal.Journal, err error) (journal.Journal, error) {
	if err != nil {
		s.Close()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[id] = node{s, j}
	return j, nil
}

// Crash ends the node that has a conversation open, and its lease.
func (c *cluster) Crash(id string, mode journal.CrashMode, r *rand.Rand) {
	c.mu.Lock()
	n, ok := c.nodes[id]
	delete(c.nodes, id)
	c.mu.Unlock()
	if !ok {
		return
	}
	n.journal.(interface{ Abandon() bool }).Abandon()
	n.store.Close()
}

func TestJournal(t *testing.T) {
	journaltest.Run(t, func(t *testing.T, o journaltest.Options) journaltest.Harness {
		s := startServer(t, &server.Options{})
		c := newCluster(t, o, natsgo.InProcessServer(s))
		return journaltest.Harness{Store: c, Other: c, Crash: c.Crash, HoldsText: true}
	})
}

var scenarios = flag.Int("scenarios", 4, "how many random scenarios of the engine to run")

func TestRandomInterleavings(t *testing.T) {
	randomtest.Run(t, *scenarios, func(t *testing.T, o randomtest.Options) randomtest.Disk {
		s := startServer(t, &server.Options{})
		c := newCluster(t, o, natsgo.InProcessServer(s))
		return randomtest.Disk{Store: c, Crash: c.Crash}
	})
}

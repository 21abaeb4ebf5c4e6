package fleet

import (
	"encoding/json"
	"flag"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var full = flag.Bool("full", false, "also what takes long: leases of processes that end by themselves, a cluster of servers, a short chaos")

// needsFull skips a test that only a full run has. What it promises is shown without processes too.
func needsFull(t *testing.T) {
	t.Helper()
	if !*full {
		t.Skip("only with -full")
	}
}

// dial connects to NATS servers until the test ends.
func dial(t testing.TB, url string, o ...natsgo.Option) jetstream.JetStream {
	t.Helper()
	nc, err := natsgo.Connect(url, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// endLeaseOf ends the lease of a process that is dead, so that nobody has to wait for that: leases of tests
// are long, because a busy machine must not lose them.
func endLeaseOf(t testing.TB, url, stream string, pid int) {
	t.Helper()
	js := dial(t, url)
	nodes, err := js.KeyValue(t.Context(), stream+"-nodes")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := nodes.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		e, err := nodes.Get(t.Context(), key)
		if err != nil {
			continue // it has ended meanwhile
		}
		var owner struct{ PID int }
		if json.Unmarshal(e.Value(), &owner) == nil && owner.PID == pid {
			if err := nodes.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("process %d has no lease", pid)
}

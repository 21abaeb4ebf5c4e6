package fleet

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal"
)

func entry(kind string) journal.Entry {
	return journal.Entry{Turn: 1, Kind: kind, Body: json.RawMessage(`{}`)}
}

// When a node dies, another takes its conversations over in less than 2 s, and
// everything that was seen of them is there.
func TestTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		worst := time.Duration(0)
		r := rand.New(rand.NewPCG(1, 1))
		for range 20 {
			c := newCluster(t, journal.MemoryOptions{}, natsgo.InProcessServer(s))
			a, b := c.node(), c.node()
			id := "c" + a.Node()
			j, err := a.Create(t.Context(), id, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			j.Append(entry("a"), entry("b"))
			j.Open("s").Write("1.1.0", "message", "half a sent")
			time.Sleep(time.Second + time.Duration(r.IntN(1000))*time.Millisecond)
			a.Abandon()
			died := time.Now()
			k, err := b.Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			worst = max(worst, time.Since(died))
			open, _ := k.OpenItems(t.Context())
			if k.Recovery().Last != 2 || len(open) != 1 || open[0].Text != "half a sent" {
				t.Errorf("after the take-over: %d records, %v", k.Recovery().Last, open)
			}
			k.Close()
		}
		t.Logf("worst take-over: %v", worst)
		if worst >= 2*time.Second {
			t.Errorf("a take-over took %v", worst)
		}
	})
}

// An owner that was taken for dead and comes back cannot append any more, and
// its text does not count.
func TestStaleOwnerIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		c := newCluster(t, journal.MemoryOptions{}, natsgo.InProcessServer(s))
		a, b := c.node(), c.node()
		j, err := a.Create(t.Context(), "x", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		j.Append(entry("a"))
		time.Sleep(time.Second)
		endLease(t, s, a.Node())
		k, err := b.Open(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		j.Open("s").Write("1.1.0", "message", "of the dead")
		k.Open("s").Write("1.1.1", "message", "of the living")
		j.Append(entry("late"))
		time.Sleep(time.Second)
		k.Append(entry("b"))
		time.Sleep(time.Second)
		if _, err := j.Durable(); err == nil {
			t.Error("the stale owner could append")
		}
		v, err := c.View(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		recs, _ := v.Read(t.Context(), 0, 10)
		open, _ := v.OpenItems(t.Context())
		if len(recs) != 2 || recs[1].Kind != "b" || len(open) != 1 || open[0].Text != "of the living" {
			t.Errorf("records %v, open %v", recs, open)
		}
		j.Close()
		k.Close()
	})
}

// endLease deletes the lease of a node, as if its renewals had not arrived.
func endLease(t *testing.T, s *server.Server, node string) {
	t.Helper()
	admin(t, s, func(js jetstream.JetStream) error {
		kv, err := js.KeyValue(t.Context(), "fermata-nodes")
		if err != nil {
			return err
		}
		return kv.Delete(t.Context(), node)
	})
}

// admin gives access to a server. The older of the library's two interfaces shares timers between bubbles.
func admin(t *testing.T, s *server.Server, f func(jetstream.JetStream) error) {
	t.Helper()
	nc, err := natsgo.Connect("", natsgo.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		err = f(js)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A node that cannot renew its lease is notified before the lease can end for others,
// and what it runs has a deadline before that, however the renewals fell.
func TestLeaseIsLostInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		c := newCluster(t, journal.MemoryOptions{}, natsgo.InProcessServer(s))
		var mu sync.Mutex
		var until, lost time.Time
		c.options.Renewed = func(at time.Time) { mu.Lock(); defer mu.Unlock(); until = at }
		c.options.Lost = func() { mu.Lock(); defer mu.Unlock(); lost = time.Now() }
		pipe := &cutter{s: s}
		c.options.Connect = []natsgo.Option{natsgo.InProcessServer(pipe)}
		a := c.node()
		c.options.Connect, c.options.Renewed, c.options.Lost = []natsgo.Option{natsgo.InProcessServer(s)}, nil, nil
		b := c.node()
		j, err := a.Create(t.Context(), "x", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if !lost.IsZero() {
			t.Fatal("lost a lease that was renewed")
		}
		pipe.cut()
		var k journal.Journal
		for k == nil {
			if k, err = b.Open(t.Context(), "x"); err != nil && !errors.As(err, new(*journal.LockedError)) {
				t.Fatal(err)
			}
		}
		taken := time.Now()
		mu.Lock()
		t.Logf("lost %v, killed %v before another had it", taken.Sub(lost), taken.Sub(until))
		if lost.IsZero() || !lost.Before(until) || !until.Before(taken) || taken.Sub(until) < shortLease/10 {
			t.Errorf("lost at %v, what runs ends at %v, another has it at %v", lost, until, taken)
		}
		mu.Unlock()
		k.Close()
		a.Abandon()
		_ = j
	})
}

// A node whose lease has ended learns that before it runs anything again: what it ran is ended, and each
// conversation is begun again, unless another node has it.
func TestLeaseThatHasEndedIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		c := newCluster(t, journal.MemoryOptions{}, natsgo.InProcessServer(s))
		var mu sync.Mutex
		var ends, lost int
		c.options.Renewed = func(until time.Time) {
			mu.Lock()
			defer mu.Unlock()
			if !until.After(time.Now()) {
				ends++
			}
		}
		c.options.Lost = func() { mu.Lock(); defer mu.Unlock(); lost++ }
		a := c.node()
		c.options.Renewed, c.options.Lost = nil, nil
		b := c.node()
		kept, err := a.Create(t.Context(), "kept", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		taken, err := a.Create(t.Context(), "taken", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		kept.Append(entry("a"))
		kept.Open("s").Write("1.1.0", "message", "half a sent")
		time.Sleep(time.Second)
		endLease(t, s, a.Node())
		k, err := b.Open(t.Context(), "taken")
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		time.Sleep(time.Second)
		mu.Lock()
		if ends != 1 || lost != 1 {
			t.Errorf("what ran was ended %d times, and %d times a loss was reported, want once", ends, lost)
		}
		mu.Unlock()
		if _, err := taken.Durable(); err == nil {
			t.Error("a conversation that another node has did not fail")
		}
		kept.Append(entry("b"))
		kept.Open("s").Write("1.1.0", "message", "ence")
		time.Sleep(time.Second)
		if n, err := kept.Durable(); n != 2 || err != nil {
			t.Errorf("a conversation that nobody has taken: %d, %v", n, err)
		}
		if _, err := b.Open(t.Context(), "kept"); !errors.As(err, new(*journal.LockedError)) {
			t.Errorf("opened elsewhere: %v", err)
		}
		a.Abandon()
		k2, err := b.Open(t.Context(), "kept")
		if err != nil {
			t.Fatal(err)
		}
		defer k2.Close()
		open, _ := k2.OpenItems(t.Context())
		if len(open) != 1 || open[0].Text != "half a sentence" {
			t.Errorf("open text %v", open)
		}
	})
}

// A server that does not know of the latest renewal says that a living node is dead. Nothing
// is taken from it.
func TestServerThatIsBehindEndsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		c := newCluster(t, journal.MemoryOptions{}, natsgo.InProcessServer(s))
		a := c.node()
		j, err := a.Create(t.Context(), "x", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		c.options.Connect = []natsgo.Option{natsgo.InProcessServer(&blind{s: s, node: a.Node()})}
		b := c.node()
		if _, err := b.Open(t.Context(), "x"); !errors.As(err, new(*journal.LockedError)) {
			t.Errorf("opened: %v, want locked", err)
		}
		j.Append(entry("a"))
		time.Sleep(time.Second)
		if n, err := j.Durable(); n != 1 || err != nil {
			t.Errorf("the owner: %d, %v", n, err)
		}
	})
}

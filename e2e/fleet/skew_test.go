package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats"
)

// What a node runs ends by a clock that nobody sets: a wall clock that is set by hours, to whichever side, neither ends a lease nor
// makes it longer. And nothing that a node says of itself has a time in it, which others could compare with theirs.
func TestLeaseIgnoresTheWallClock(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	var until time.Time
	st := nats.New(t.Context(), nats.Options{URL: s.ClientURL(), Lease: time.Hour, Renewed: func(at time.Time) { until = at }})
	defer st.Close()
	if err := st.TakePart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(until.String(), " m=") {
		t.Errorf("%v is a time of the wall clock", until)
	}
	admin(t, s, func(js jetstream.JetStream) error {
		nodes, err := js.KeyValue(t.Context(), "fermata-nodes")
		if err != nil {
			return err
		}
		e, err := nodes.Get(t.Context(), st.Node())
		if err != nil {
			return err
		}
		var says map[string]any
		if err := json.Unmarshal(e.Value(), &says); err != nil {
			return err
		}
		names := slices.Sorted(maps.Keys(says))
		if want := []string{"host", "lease", "pid"}; !slices.Equal(names, want) {
			t.Errorf("a node says %q of itself, want %q", names, want)
		}
		return nil
	})
}

// A node whose clock is 26 years late keeps a lease for as long as it renews it, loses it when it dies, and does not take
// that of another which is alive. In a bubble it is the year 2000; there time passes as outside.
func TestClockThatIsOff(t *testing.T) {
	needsFull(t)
	s := listen(t, &server.Options{})
	withLease(t, func(ms int) bool {
		o := nats.Options{URL: s.ClientURL(), Name: fmt.Sprint("clock", ms), Lease: time.Duration(ms) * time.Millisecond}
		var lost atomic.Bool
		o.Lost = func() { lost.Store(true) }
		right, judge := nats.New(t.Context(), o), nats.New(t.Context(), o)
		defer right.Close()
		defer judge.Close()
		synctest.Test(t, func(t *testing.T) {
			keepPace(t)
			o.Connect = []natsgo.Option{natsgo.SetCustomDialer(newBridge(t, strings.TrimPrefix(s.ClientURL(), "nats://")))}
			offClock(t, nats.New(t.Context(), o), right, judge, o.Lease, &lost)
		})
		return !lost.Load()
	})
}

// offClock plays with a node whose clock is off, one whose clock is right, and one to ask, until one loses its lease because the machine is
// too busy.
func offClock(t *testing.T, off, right, judge *nats.Store, lease time.Duration, lost *atomic.Bool) {
	defer off.Close()
	if year := time.Now().Year(); year != 2000 {
		t.Fatalf("it is %d", year)
	}
	check := func(what string, err error) {
		if err != nil && !lost.Load() {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := off.Create(t.Context(), "off", time.Now())
	check("create", err)
	check("create", beyond(t, func(ctx context.Context) error {
		_, err := right.Create(ctx, "right", time.Now())
		return err
	}))
	time.Sleep(3 * lease)
	owned := func(store *nats.Store, id string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, owned, err := store.Owner(ctx, id)
			if err == nil && !owned {
				err = errors.New("nobody owns it")
			}
			return err
		}
	}
	check("the owner whose clock is off", beyond(t, owned(judge, "off")))
	check("the owner, seen with a clock that is off", owned(off, "right")(t.Context()))
	if lost.Load() {
		return
	}
	open := func(store *nats.Store, id string) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			for range 20 { // each waits for a while
				if _, err = store.Open(ctx, id); !errors.As(err, new(*journal.LockedError)) {
					return err
				}
			}
			return err
		}
	}
	right.Abandon()
	died := time.Now()
	check("take over with a clock that is off", open(off, "right")(t.Context()))
	t.Logf("taken over %v after a death, with a lease of %v", time.Since(died), lease)
	off.Abandon()
	died = time.Now()
	check("take over from a clock that is off", beyond(t, open(judge, "off")))
	t.Logf("taken over %v after the death of the one whose clock is off", time.Since(died))
}

// keepPace lets the time of a bubble pass as it does outside.
func keepPace(t *testing.T) {
	stop, done := make(chan struct{}), make(chan struct{})
	began, real := time.Now(), realNow()
	go func() { // ended below
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if ahead := time.Duration(realNow()-real) - time.Since(began); ahead > 0 {
				time.Sleep(ahead)
			} else {
				realPause()
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
	})
}

// beyond runs a function outside of the bubble and returns its error.
func beyond(t *testing.T, f func(context.Context) error) error {
	t.Helper()
	var mu sync.Mutex
	var err error
	done := false
	outside <- func() {
		e := f(context.Background())
		mu.Lock()
		defer mu.Unlock()
		err, done = e, true
	}
	for {
		mu.Lock()
		over := done
		mu.Unlock()
		if over {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

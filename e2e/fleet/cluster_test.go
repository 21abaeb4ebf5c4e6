package fleet

import (
	"flag"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/internal/journal/journaltest"
	"github.com/fermata-agent/fermata/internal/randomtest"
)

var (
	clustered = flag.Bool("clustered", false, "run the whole suite of journals on the cluster, and -scenarios random ones")

	streams atomic.Int64 // that were named
)

// onServers returns a store of its own on servers, to be used within a bubble: three replicas of
// everything on a cluster of three. Server i is the one that is spoken to.
func onServers(t testing.TB, c *servers, i int, o journaltest.Options) *cluster {
	b := newBridge(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(c.all[i].port)))
	st := newCluster(t, o, natsgo.SetCustomDialer(b))
	st.options.Name, st.options.Replicas = fmt.Sprint("test", streams.Add(1)), len(c.all)
	st.options.URL, st.options.Lease = c.all[i].url(), time.Hour // time outside passes more slowly, or faster
	st.Store = st.node()
	return st
}

func needsCluster(t *testing.T) {
	t.Helper()
	if !*clustered {
		needsFull(t)
	}
}

func TestJournalOnACluster(t *testing.T) {
	needsCluster(t)
	c := threeServers(t)
	n := 0
	journaltest.Run(t, func(t *testing.T, o journaltest.Options) journaltest.Harness {
		n++
		if !*clustered && n%8 != 0 {
			t.Skip("one in eight without -clustered")
		}
		st := onServers(t, c, n%3, o)
		return journaltest.Harness{Store: st, Other: st, Crash: st.Crash, HoldsText: true}
	})
}

func TestRandomInterleavingsOnACluster(t *testing.T) {
	needsCluster(t)
	c := threeServers(t)
	n, want := 0, 1
	if *clustered {
		want = *scenarios
	}
	randomtest.Run(t, want, func(t *testing.T, o randomtest.Options) randomtest.Disk {
		n++
		st := onServers(t, c, n%3, o)
		return randomtest.Disk{Store: st, Crash: st.Crash}
	})
}

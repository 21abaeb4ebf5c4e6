package fleet

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats"
)

// A process whose lease has ended begins all its conversations again within half a lease, also if they are many and the servers are
// slow: the messages are under way together.
func TestManyConversationsAreBegunAgain(t *testing.T) {
	for _, slow := range []time.Duration{0, 100 * time.Millisecond} {
		t.Run(slow.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startServer(t, &server.Options{})
				lag := &lagging{s: s}
				a := nats.New(t.Context(), nats.Options{Lease: shortLease, Connect: []natsgo.Option{natsgo.InProcessServer(lag)}})
				defer a.Close()
				var open []journal.Journal
				for i := range 200 {
					j, err := a.Create(t.Context(), fmt.Sprint("c", i), time.Now())
					if err != nil {
						t.Fatal(err)
					}
					open = append(open, j)
				}
				lag.slow(slow)
				endLease(t, s, a.Node())
				began := time.Now()
				time.Sleep(2 * time.Second)
				for _, j := range open {
					j.Append(entry("a"))
				}
				for _, j := range open {
					if err := settled(j, 1); err != nil {
						t.Fatal(err)
					}
				}
				var nodes []nats.Node
				for len(nodes) == 0 && time.Since(began) < time.Minute {
					var err error
					if nodes, err = a.Nodes(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				t.Logf("alive with everything after %v", time.Since(began))
				lag.slow(0)
				if len(nodes) != 1 {
					t.Errorf("%d nodes are alive", len(nodes))
				}
			})
		})
	}
}

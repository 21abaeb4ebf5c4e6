package fleet

import (
	"flag"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal/nats"
)

var (
	kills     = flag.Int("kills", 0, "how often TestServersAreKilled kills each server; 0 is once, and only with -full")
	killLease = flag.Duration("kill-lease", nats.DefaultLease, "how long leases last in TestServersAreKilled")
)

// caughtUp waits until all servers have everything that a stream has.
func (c *servers) caughtUp(t *testing.T, js jetstream.JetStream, streams ...string) {
	t.Helper()
	eventually(t, "all servers have everything", func() bool {
		for _, name := range streams {
			stream, err := js.Stream(t.Context(), name)
			if err != nil {
				return false
			}
			cluster := stream.CachedInfo().Cluster
			if cluster == nil || cluster.Leader == "" || len(cluster.Replicas) != len(c.all)-1 {
				return false
			}
			for _, r := range cluster.Replicas {
				if !r.Current || r.Offline {
					return false
				}
			}
		}
		return true
	})
}

// A server of three is killed while four turns run, one server after the other: the others elect leaders before a lease
// ends, so that no turn fails.
func TestServersAreKilled(t *testing.T) {
	n := *kills
	if n == 0 {
		needsFull(t)
		n = 1
	}
	c := startServers(t, 3)
	var machines []*machine
	for range 4 {
		machines = append(machines, newMachine(t, c.url(), fmt.Sprintf("lease_ms = %d\nreplicas = 3", killLease.Milliseconds())))
	}
	machines[0].must("list") // makes the streams
	js, failed := dial(t, c.url()), 0
	for round := range n * len(c.all) {
		c.caughtUp(t, js, "fermata", "KV_fermata-nodes", "KV_fermata-index", "fermata-checkpoints")
		alive := c.killDuringTurns(t, c.all[round%len(c.all)], machines)
		t.Logf("kill %d, of server %d: %d of %d turns run", round+1, round%len(c.all), alive, len(machines))
		failed += len(machines) - alive
	}
	if failed > 0 {
		t.Errorf("%d turns failed", failed)
	}
}

// killDuringTurns kills a server while each machine runs a turn, starts it again, and returns how many turns still run when a
// process that could not renew its lease would have stopped its turn.
func (c *servers) killDuringTurns(t *testing.T, s *natsServer, machines []*machine) (alive int) {
	t.Helper()
	var cmds []*exec.Cmd
	var outs []*output
	var marks []string
	for _, m := range machines {
		cmd, out, mark := m.startTurn()
		cmds, outs, marks = append(cmds, cmd), append(outs, out), append(marks, mark)
	}
	s.kill()
	<-time.After(*killLease * 7 / 10)
	for i, mark := range marks {
		if running(mark) == 0 {
			t.Logf("turn %d ended: %s", i, outs[i])
		}
		alive += running(mark)
		_ = cmds[i].Process.Signal(syscall.SIGINT)
	}
	c.start(t, s)
	for _, cmd := range cmds {
		_ = cmd.Wait()
	}
	return alive
}

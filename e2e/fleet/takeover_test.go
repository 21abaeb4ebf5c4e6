package fleet

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

var rounds = flag.Int("rounds", 0, "how many nodes TestTakeOverTime kills; 0 is few, and only with -full")

// A node is killed while it runs a turn, and nothing else is broken. How long it takes until another node has ended the turn is recorded: three servers and three nodes, all of them processes, with the lease that is the default.
func TestTakeOverTime(t *testing.T) {
	n := *rounds
	if n == 0 {
		needsFull(t)
		n = 2
	}
	w := newWorld(t)
	var took []time.Duration
	for i := range n {
		took = append(took, w.takeOver(w.nodes[i%3], w.nodes[(i+1)%3]))
	}
	slices.Sort(took)
	t.Logf("%d take-overs: median %v, worst %v: %v", n, took[n/2].Round(time.Millisecond), took[n-1].Round(time.Millisecond), took)
}

// takeOver kills a node that runs a turn, and returns how much later the other node has the conversation, and the turn has ended.
func (w *world) takeOver(from, to *chaosNode) time.Duration {
	w.t.Helper()
	connect := func(n *chaosNode) (e engine.Engine) {
		eventually(w.t, "the node serves", func() bool {
			c, _, err := n.connect(w.t.Context())
			e = c
			return err == nil
		})
		return e
	}
	owner, other := connect(from), connect(to)
	id, err := owner.Create(w.t.Context(), p.Settings{
		Cwd: w.dir, Provider: "demo", Model: "demo", Approval: p.ApprovalNever, Sandbox: p.SandboxPolicy{Mode: p.SandboxFullAccess},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	say(w.t, owner, id, "run: echo begun; sleep 600")
	for ev, err := range owner.Subscribe(w.t.Context(), id, 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		if _, runs := ev.Body.(*p.Delta); runs && ev.Turn == 1 {
			break
		}
	}
	died := time.Now()
	from.kill()
	var took time.Duration
	eventually(w.t, "another node has it", func() bool {
		snap, err := other.Resume(w.t.Context(), id)
		took = time.Since(died)
		if err == nil && snap.Active {
			w.t.Errorf("the turn is active after its node died: %+v", snap)
		}
		return err == nil
	})
	from.start()
	return took
}

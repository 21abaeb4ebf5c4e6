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

// A node is killed while it runs a command, and nothing else is broken. How long it takes until a client on another node
// sees the end of the turn is recorded: three servers and three nodes, all of them processes, with the lease that is the default.
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

// takeOver kills a node that runs a turn, and returns how much later a client of the other node sees the turn's end.
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
	seen := make(chan p.Body, 1000)
	go w.stubborn(other, id, seen)
	w.await(seen, func(b p.Body) bool { _, ok := b.(*p.Delta); return ok })
	died := time.Now()
	from.kill()
	w.await(seen, func(b p.Body) bool { _, ok := b.(*p.TurnEnded); return ok })
	took := time.Since(died)
	from.start()
	return took
}

// stubborn follows a conversation until its turn has ended, however often that fails: a machine that is very busy may not reach the owner in time.
func (w *world) stubborn(e engine.Engine, id p.ConversationID, seen chan<- p.Body) {
	last := p.Seq(0)
	for w.t.Context().Err() == nil {
		for ev, err := range e.Subscribe(w.t.Context(), id, last) {
			if err != nil {
				w.logf("%v", err)
				break
			}
			last = max(last, ev.Seq)
			seen <- ev.Body
			if _, ended := ev.Body.(*p.TurnEnded); ended {
				return
			}
		}
	}
}

// await reads what stubborn has seen.
func (w *world) await(seen <-chan p.Body, is func(p.Body) bool) {
	w.t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		select {
		case b := <-seen:
			if is(b) {
				return
			}
		case <-timeout:
			w.t.Fatal("it was not seen")
		}
	}
}

package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/internal/fleet"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// output is what a process prints, for who reads while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts fermata, and ends it with the test.
func (m *machine) start(args ...string) (*exec.Cmd, *output) {
	m.t.Helper()
	cmd, out := m.command(args...), &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, out
}

// serve starts a node, and waits until it takes part.
func (m *machine) serve(name string, args ...string) (*exec.Cmd, *output) {
	m.t.Helper()
	cmd, out := m.start(append([]string{"serve", "--node", name}, args...)...)
	eventually(m.t, "node "+name+" takes part", func() bool { return strings.Contains(out.String(), "node "+name+" takes") })
	return cmd, out
}

func exitCode(cmd *exec.Cmd) int {
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// A turn that is submitted runs on a node with its label, in that node's directory, and is printed here.
func TestFleetRunsATurn(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	a, b, client := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	a.serve("a")
	_, out := b.serve("b", "--labels", "gpu,big")
	answer := client.must("exec", "--demo", "--fleet", "--label", "gpu", "--node-dir", b.dir, "run: pwd")
	if !strings.Contains(answer, "$ pwd") || !strings.Contains(answer, b.dir) {
		t.Errorf("it printed %s", answer)
	}
	if !strings.Contains(out.String(), "turn 1 started") {
		t.Errorf("the node said %s", out)
	}
	if out := client.must("fsck"); strings.Count(out, " ok") != 1 {
		t.Errorf("fsck: %s", out)
	}

	// Elsewhere there is no such directory: the nodes say so, and the turn is not run.
	cmd, said := client.start("exec", "--demo", "--fleet", "--node-dir", "/no/such", "run: pwd")
	eventually(t, "a node refuses", func() bool { return strings.Contains(said.String(), "there is no directory /no/such here") })
	_ = cmd.Process.Signal(syscall.SIGINT)
	if code := exitCode(cmd); code != 130 || !strings.Contains(said.String(), "nothing has run") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if out := client.must("list"); strings.Count(out, "\n") != 2 { // the first one, and the heading
		t.Errorf("list: %s", out)
	}
}

func TestFleetWithoutNodes(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	client := newMachine(t, s.ClientURL())
	for wait, want := range map[string]string{"0": "no node takes part with the label gpu", "100ms": "no node began the turn within 100ms: nothing has run"} {
		out, err := client.run("exec", "--demo", "--fleet", "--label", "gpu", "--node-dir", "/", "--wait", wait, "run: touch "+client.dir+"/ran")
		if err == nil || !strings.Contains(out, want) || !strings.Contains(out, "fermata serve --node NAME --labels gpu") {
			t.Errorf("--wait %s: %v: %s", wait, err, out)
		}
	}
	cmd, out := client.start("exec", "--demo", "--fleet", "--label", "gpu", "--node-dir", "/", "run: pwd")
	eventually(t, "it says that it waits", func() bool { return strings.Contains(out.String(), "waiting for one") })
	_ = cmd.Process.Signal(syscall.SIGINT)
	if code := exitCode(cmd); code != 130 || !strings.Contains(out.String(), "nothing has run") {
		t.Errorf("exit code %d: %s", code, out)
	}
	// What was given up is not run later; what was left is.
	cmd, out = client.start("exec", "--demo", "--fleet", "--label", "gpu", "--node-dir", client.dir, "run: echo later")
	eventually(t, "it says that it waits", func() bool { return strings.Contains(out.String(), "waiting for one") })
	_ = cmd.Process.Signal(syscall.SIGHUP)
	if code := exitCode(cmd); code != 129 || !strings.Contains(out.String(), "fermata attach") {
		t.Errorf("exit code %d: %s", code, out)
	}
	_, node := newMachine(t, s.ClientURL()).serve("late", "--labels", "gpu")
	eventually(t, "what was left is run", func() bool { return strings.Contains(node.String(), "turn 1 started") })
	if strings.Count(node.String(), "conversation") != 1 {
		t.Errorf("the node said %s", node)
	}
}

// SIGINT interrupts the turn on its node, SIGHUP leaves it running.
func TestFleetSignals(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	worker, client := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	worker.serve("w")
	run := func() (*exec.Cmd, *output, string) {
		mark := fmt.Sprintf("9998.%d", time.Now().UnixNano()%1e9)
		cmd, out := client.start("exec", "--demo", "--fleet", "--node-dir", worker.dir, "run: sleep "+mark)
		eventually(t, "the command runs", func() bool { return running(mark) == 1 && strings.Contains(out.String(), "$ sleep") })
		return cmd, out, mark
	}
	cmd, out, mark := run()
	_ = cmd.Process.Signal(syscall.SIGINT)
	if code := exitCode(cmd); code != 130 || running(mark) != 0 || !strings.Contains(out.String(), "interrupted after") {
		t.Errorf("exit code %d, %d commands: %s", code, running(mark), out)
	}
	cmd, out, mark = run()
	_ = cmd.Process.Signal(syscall.SIGHUP)
	if code := exitCode(cmd); code != 129 || running(mark) != 1 {
		t.Errorf("exit code %d, %d commands: %s", code, running(mark), out)
	}
	id := ""
	for line := range strings.Lines(client.must("ps")) {
		if strings.Contains(line, "running") {
			id = strings.Fields(line)[0]
		}
	}
	if out := client.must("interrupt", id); !strings.Contains(out, "turn 1 interrupted") || running(mark) != 0 {
		t.Errorf("interrupt: %s", out)
	}
}

// A node that is killed in mid-turn has its client see the crash, and no other node runs the turn again.
func TestFleetNodeDies(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	// Clients look whether a node is there every sixth of its lease.
	w1, w2, client := newMachine(t, s.ClientURL(), "lease_ms = 20000"), newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	node, _ := w1.serve("w1", "--labels", "first")
	mark := fmt.Sprintf("9997.%d", time.Now().UnixNano()%1e9)
	cmd, out := client.start("exec", "--demo", "--fleet", "--label", "first", "--node-dir", w1.dir, "run: echo begun; sleep "+mark)
	eventually(t, "the command runs", func() bool { return running(mark) == 1 && strings.Contains(out.String(), "begun") })
	_, other := w2.serve("w2", "--labels", "first")
	_ = node.Process.Kill()
	_ = node.Wait()
	endLeaseOf(t, s.ClientURL(), "fermata", node.Process.Pid)
	if code := exitCode(cmd); code != 1 || !strings.Contains(out.String(), "crashed") {
		t.Errorf("exit code %d: %s", code, out)
	}
	eventually(t, "the command is dead", func() bool { return running(mark) == 0 })
	if strings.Contains(other.String(), "started") {
		t.Errorf("the other node said %s", other)
	}
}

// A turn whose node dies before anything of it was recorded is started by another, and once.
func TestWorkIsStartedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		o := nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}}
		client, a, b := newMember(t, o), newMember(t, o), newMember(t, o)
		id := client.Begin()
		if err := client.c.Release(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		queue := func(m *member) *fleet.Queue {
			link, err := m.store.Link(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			q, err := fleet.OpenQueue(t.Context(), link)
			if err != nil {
				t.Fatal(err)
			}
			return q
		}
		work := func(ctx context.Context, m *member, prepare func() error) {
			w := fleet.Worker{
				Queue: queue(m), Local: m.c.Local, Engine: m.c, Member: nats.Member{Name: "n", Turns: 1},
				Prepare: func(context.Context, fleet.Work) (*p.Overrides, error) { return nil, prepare() },
			}
			go func() { _ = w.Run(ctx) }() // ends with ctx
		}
		taken := make(chan struct{})
		dead := errors.New("it has died")
		work(t.Context(), a, func() error { close(taken); <-t.Context().Done(); return dead })
		put := fleet.Work{Conversation: id, Op: p.OpJSON{Op: p.UserTurn{Content: p.Text("go")}}, Name: "op-1", Dir: "/"}
		if _, err := queue(client).Put(t.Context(), "", put); err != nil {
			t.Fatal(err)
		}
		<-taken
		// Whoever has the conversation open does not get to run it.
		if _, err := client.c.Resume(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		a.die(t)
		starts := 0
		work(t.Context(), b, func() error { starts++; return nil })
		time.Sleep(time.Minute)
		if err := client.c.Release(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		b.Request().Answer("done")
		// The same work again, as if the acknowledgement had been lost: it is known.
		time.Sleep(3 * time.Minute) // for so long the servers would know it
		if _, err := queue(client).Put(t.Context(), "", put); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		turns := 0
		for e, err := range client.c.Read(t.Context(), id) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := e.Body.(*p.TurnStarted); ok {
				turns++
			}
		}
		if turns != 1 || starts < 3 {
			t.Errorf("%d turns in the journal; it was prepared %d times", turns, starts)
		}
	})
}

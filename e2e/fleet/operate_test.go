package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// gated is a command that says in a file that it runs, and then waits for another file.
func gated(begun, open string) string {
	return fmt.Sprintf("run: touch %s; until test -e %s; do sleep 0.02; done; echo ended", begun, open)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func touch(t testing.TB, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// An operator sees the nodes and what waits for whom.
func TestFleetStatus(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	node, client := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	if out := client.must("fleet", "nodes"); !strings.Contains(out, "no node takes part") {
		t.Errorf("nodes: %s", out)
	}
	node.serve("build-1", "--labels", "linux,big", "--turns", "1")
	begun, open := filepath.Join(node.dir, "begun"), filepath.Join(node.dir, "open")
	first, said := client.start("exec", "--demo", "--fleet", "--yolo", "--node-dir", node.dir, gated(begun, open))
	eventually(t, "the turn runs", func() bool { return exists(begun) })
	client.start("exec", "--demo", "--fleet", "--label", "gpu", "--node-dir", node.dir, "run: pwd")
	client.start("exec", "--demo", "--fleet", "--label", "big", "--node-dir", node.dir, "run: pwd")
	var status struct {
		Nodes []struct {
			Name, Version string
			Labels        []string
			Turns         int
			Work          []struct{ Conversation, Client string }
		}
		Queue []struct {
			Number                           uint64
			Conversation, Client, Why, Label string
		}
	}
	eventually(t, "the status shows what there is", func() bool {
		if err := json.Unmarshal([]byte(client.must("fleet", "status", "--json")), &status); err != nil {
			t.Fatal(err)
		}
		return len(status.Queue) == 2 && len(status.Nodes) == 1 && len(status.Nodes[0].Work) == 1
	})
	n := status.Nodes[0]
	if n.Name != "build-1" || strings.Join(n.Labels, ",") != "linux,big" || n.Version == "" || n.Turns != 1 || !strings.HasPrefix(n.Work[0].Client, "exec ") {
		t.Errorf("the node is %+v", n)
	}
	why := map[string]string{}
	for _, q := range status.Queue {
		why[q.Label] = q.Why
	}
	if why["gpu"] != "no node takes part with the label gpu" || why["big"] != "all nodes that take it are busy" {
		t.Errorf("it waits because: %q", why)
	}
	for command, want := range map[string][]string{
		"status": {"1 node, 1 of 1 turn running", "queue: 2 waiting", "no node takes part with the label gpu", "failed work: none"},
		"nodes":  {"build-1", "linux,big", "1 of 1", "busy"},
		"queue":  {"all nodes that take it are busy"},
	} {
		out := client.must("fleet", command)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("fleet %s lacks %q:\n%s", command, w, out)
			}
		}
	}
	touch(t, open)
	if code := exitCode(first); code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// A node that is drained takes nothing more, lets its turns end, and ends. What comes meanwhile runs elsewhere.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	a, b, client := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	old, nodeSaid := a.serve("a")
	begun, open := filepath.Join(a.dir, "begun"), filepath.Join(a.dir, "open")
	running, said := client.start("exec", "--demo", "--fleet", "--yolo", "--node-dir", a.dir, gated(begun, open))
	eventually(t, "the turn runs", func() bool { return exists(begun) })
	if out := client.must("fleet", "drain", "a", "--no-wait"); !strings.Contains(out, "node a drains") {
		t.Errorf("drain: %s", out)
	}
	drain, drainSaid := client.start("fleet", "drain", "a")
	eventually(t, "the drain says what it waits for", func() bool { return strings.Contains(drainSaid.String(), "it runs 1 turn") })
	b.serve("b")
	if out := client.must("exec", "--demo", "--fleet", "--node-dir", b.dir, "run: pwd"); !strings.Contains(out, b.dir) {
		t.Errorf("meanwhile: %s", out)
	}
	if strings.Count(nodeSaid.String(), "started") != 1 {
		t.Errorf("the node that drains said %s", nodeSaid)
	}
	touch(t, open)
	if code := exitCode(running); code != 0 || !strings.Contains(said.String(), "ended") {
		t.Errorf("the turn: exit code %d: %s", code, said)
	}
	if code := exitCode(old); code != 0 {
		t.Errorf("the node: exit code %d: %s", code, nodeSaid)
	}
	if code := exitCode(drain); code != 0 || !strings.Contains(drainSaid.String(), "node a has left") {
		t.Errorf("the drain: exit code %d: %s", code, drainSaid)
	}
	if out, err := client.run("fleet", "drain", "a"); err == nil || !strings.Contains(out, "there is no node a") {
		t.Errorf("once more: %v, %s", err, out)
	}
}

// A turn that waits for an approval is handed over by a node that is drained, and continues where it is approved.
func TestDrainHandsOver(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	a, b, client := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	old, oldSaid := a.serve("a", "--drain", "1h")
	cmd, out := client.start("exec", "--demo", "--fleet", "--park", "-a", "untrusted", "--node-dir", a.dir, "run: touch asked")
	if code := exitCode(cmd); code != 3 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	_ = old.Process.Signal(syscall.SIGTERM)
	if code := exitCode(old); code != 0 {
		t.Errorf("the node: exit code %d: %s", code, oldSaid)
	}
	_, other := b.serve("b")
	eventually(t, "the other node waits in its place", func() bool { return strings.Contains(other.String(), "turn 1 started") })
	ps := client.must("ps")
	if !strings.Contains(ps, "waiting for 1 approval") {
		t.Fatalf("ps: %s", ps)
	}
	client.must("approve", strings.Fields(strings.Split(ps, "\n")[1])[0])
	eventually(t, "the turn has ended there", func() bool { return strings.Contains(other.String(), "turn 1 completed") })
	if !exists(filepath.Join(a.dir, "asked")) {
		t.Error("the command did not run")
	}
	if report := client.must("fsck"); strings.Count(report, " ok") != 1 {
		t.Errorf("fsck: %s", report)
	}
}

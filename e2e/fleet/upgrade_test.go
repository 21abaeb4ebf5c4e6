package fleet

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

var (
	upgradeTurns = flag.Int("upgrade-turns", 4, "how many turns run while TestRollingUpgrade replaces the nodes")
	oldCommit    = flag.String("old-commit", "653143d", "the commit that TestMixedVersions builds the other version from")
)

// Each node is drained and replaced while turns run and more are submitted: every turn has its result, and its effect once.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	n := *upgradeTurns
	s := listen(t, &server.Options{})
	work, client := t.TempDir(), newMachine(t, s.ClientURL())
	effects, open := filepath.Join(work, "effects"), filepath.Join(work, "open")
	var nodes []*exec.Cmd
	for _, name := range []string{"a", "b"} {
		node, _ := newMachine(t, s.ClientURL()).serve(name, "--turns", fmt.Sprint(n), "--drain", "1h")
		nodes = append(nodes, node)
	}
	submit := func(i int) (*exec.Cmd, *output) {
		prompt := fmt.Sprintf("run: echo turn-%d- >> %s; until test -e %s; do sleep 0.05; done; echo result-%d-", i, effects, open, i)
		return client.start("exec", "--demo", "--fleet", "--yolo", "--node-dir", work, prompt)
	}
	var cmds []*exec.Cmd
	var outs []*output
	for i := range n {
		cmd, out := submit(i)
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	eventually(t, "all turns run", func() bool { return lines(effects) == n })
	for i, node := range nodes { // both are replaced before any turn has ended
		_ = node.Process.Signal(syscall.SIGTERM)
		newMachine(t, s.ClientURL()).serve(fmt.Sprintf("new-%d", i), "--turns", fmt.Sprint(n))
	}
	for i := n; i < 2*n; i++ {
		cmd, out := submit(i)
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	eventually(t, "the new turns run on the new nodes", func() bool { return lines(effects) == 2*n })
	touch(t, open)
	for i, cmd := range cmds {
		if code := exitCode(cmd); code != 0 || !strings.Contains(outs[i].String(), fmt.Sprintf("result-%d-", i)) {
			t.Errorf("turn %d: exit code %d: %s", i, code, outs[i])
		}
	}
	for _, node := range nodes {
		if code := exitCode(node); code != 0 {
			t.Errorf("a node that was drained ended with code %d", code)
		}
	}
	text, _ := os.ReadFile(effects)
	for i := range 2 * n {
		if got := strings.Count(string(text), fmt.Sprintf("turn-%d-\n", i)); got != 1 {
			t.Errorf("turn %d had %d effects", i, got)
		}
	}
	if report := client.must("fsck"); strings.Count(report, " ok") != 2*n {
		t.Errorf("fsck: %s", report)
	}
}

// oldVersion builds the program of an earlier commit.
func oldVersion(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "old")
	root := filepath.Join("..", "..")
	if out, err := exec.Command("git", "-C", root, "cat-file", "-e", *oldCommit).CombinedOutput(); err != nil {
		t.Skipf("commit %s is not in this clone: %s", *oldCommit, out)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	unpack := fmt.Sprintf("git -C %s archive %s | tar -x -C %s", root, *oldCommit, dir)
	if out, err := exec.Command("sh", "-c", unpack).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "fermata-old"), "./cmd/fermata")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "fermata-old")
}

// Clients and nodes of an earlier version and this one work together, as docs/fleet.md says.
func TestMixedVersions(t *testing.T) {
	needsFull(t)
	old := oldVersion(t)
	s := listen(t, &server.Options{})
	newer := newMachine(t, s.ClientURL())
	older := newMachine(t, s.ClientURL())
	older.fermata = old
	for name, c := range map[string]struct{ node, client *machine }{"an old node": {older, newer}, "an old client": {newer, older}} {
		node, said := c.node.serve(strings.Fields(name)[2]+"-node", "--labels", "x")
		answer := c.client.must("exec", "--demo", "--fleet", "--label", "x", "--node-dir", c.node.dir, "run: pwd")
		if !strings.Contains(answer, c.node.dir) {
			t.Errorf("%s: %s; the node said %s", name, answer, said)
		}
		nodes := newer.must("fleet", "nodes")
		if name == "an old node" {
			if !strings.Contains(nodes, "unknown") {
				t.Errorf("nodes: %s", nodes)
			}
			if out, err := newer.run("fleet", "drain", "node-node"); err == nil || !strings.Contains(out, "cannot be drained") {
				t.Errorf("drain: %v: %s", err, out)
			}
		}
		_ = node.Process.Signal(syscall.SIGTERM)
		_ = node.Wait()
	}
	for _, m := range []*machine{newer, older} { // each resumes what the other began
		m.must("exec", "--demo", "--skip-git-repo-check", "resume", "--last", "--all", "hello")
		if report := m.must("fsck"); strings.Count(report, " ok") != 2 {
			t.Errorf("fsck: %s", report)
		}
	}
}

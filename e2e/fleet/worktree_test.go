package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// An origin is a bare repository, which names a program wherever it can.
type origin struct {
	t          *testing.T
	url, marks string
	trees      jetstream.KeyValue
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir := t.TempDir()
	o := &origin{t: t, url: "file://" + filepath.Join(dir, "origin.git"), marks: filepath.Join(dir, "marks")}
	seed, bare := filepath.Join(dir, "seed"), filepath.Join(dir, "origin.git")
	o.write(filepath.Join(seed, "a.txt"), "1\n", 0o644)
	o.write(filepath.Join(seed, ".gitignore"), "*.log\n", 0o644)
	o.write(filepath.Join(seed, ".gitattributes"), "* filter=evil diff=evil merge=evil\n", 0o644)
	o.git(seed, "init", "-q")
	o.git(seed, "add", ".")
	o.git(seed, "commit", "-q", "-m", "first")
	o.git(dir, "clone", "-q", "--bare", seed, bare)
	program := filepath.Join(dir, "canary")
	o.write(program, "#!/bin/sh\necho \"$0 $*\" >> '"+o.marks+"'\ncat\n", 0o755)
	for _, hook := range []string{"post-checkout", "reference-transaction", "pre-receive", "post-update", "post-index-change", "fsmonitor-watchman"} {
		o.write(filepath.Join(bare, "hooks", hook), "#!/bin/sh\nexec '"+program+"' hook\n", 0o755)
	}
	for _, key := range []string{"core.fsmonitor", "filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "diff.evil.textconv", "uploadpack.packObjectsHook", "core.sshCommand"} {
		o.git(bare, "config", key, program)
	}
	return o
}

func (o *origin) write(name, text string, mode os.FileMode) {
	o.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		o.t.Fatal(err)
	}
}

func (o *origin) git(dir string, args ...string) string {
	o.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		o.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// state describes a work tree, but for what is ignored.
func (o *origin) state(dir string) string {
	o.t.Helper()
	out := o.git(dir, "log", "--format=%H %s") + o.git(dir, "status", "--porcelain", "--branch")
	for _, name := range strings.Fields(o.git(dir, "ls-files", "-co", "--exclude-standard")) {
		text, _ := os.ReadFile(filepath.Join(dir, name)) // it may be deleted
		out += name + ": " + string(text)
	}
	return out
}

// awaitKept waits until the changes of a turn are in the store.
func (o *origin) awaitKept(s *server.Server, id string, turn int) {
	o.t.Helper()
	if o.trees == nil {
		var err error
		if o.trees, err = dial(o.t, s.ClientURL()).KeyValue(o.t.Context(), "fermata-trees"); err != nil {
			o.t.Fatal(err)
		}
	}
	eventually(o.t, "the changes of the turn are kept", func() bool {
		e, err := o.trees.Get(o.t.Context(), id)
		if err != nil {
			return false
		}
		var kept struct{ Record struct{ Turn int } }
		return json.Unmarshal(e.Value(), &kept) == nil && kept.Record.Turn == turn
	})
}

// tree is where a machine has the work tree of a conversation.
func (m *machine) tree(id string) string { return filepath.Join(m.home+"-work", id) }

// What a turn changed in a checkout is on the next machine when the first one has died: files, untracked ones, and commits. What
// was not kept is said.
func TestWorkTreeMoves(t *testing.T) {
	t.Parallel()
	s, o := listen(t, &server.Options{}), newOrigin(t)
	a, b, c := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	node, said := a.serve("node-a")
	change := "echo changed > a.txt; echo new > new.txt; echo ignored > y.log; echo c > c.txt; git add c.txt; git commit -q -m second"
	out := c.must("exec", "--demo", "--yolo", "--fleet", "--repo", o.url, "--commit", "main", "run: "+change)
	made, err := filepath.Glob(a.tree("*"))
	if err != nil || len(made) != 1 {
		t.Fatalf("the work trees are %q, %v; it printed %s; the node said %s", made, err, out, said)
	}
	id := filepath.Base(made[0])
	o.awaitKept(s, id, 1)
	want := o.state(a.tree(id))
	_ = node.Process.Kill()
	_ = node.Wait()
	endLeaseOf(t, s.ClientURL(), "fermata", node.Process.Pid)
	if !strings.Contains(want, " second\n") || !strings.Contains(want, " M a.txt\n") || !strings.Contains(want, "?? new.txt\n") {
		t.Fatalf("the first machine has\n%s", want)
	}

	answer := b.must("exec", "--demo", "--yolo", "resume", id, "run: pwd; cat a.txt new.txt c.txt; echo 2 > two.txt")
	for _, word := range []string{"the work tree was restored in " + b.tree(id) + ", as it was on node-a after turn 1\n", "$ pwd", "changed\nnew\nc\n"} {
		if !strings.Contains(answer, word) {
			t.Errorf("no %q in %s", word, answer)
		}
	}
	if err := os.Remove(filepath.Join(b.tree(id), "two.txt")); err != nil {
		t.Error(err)
	}
	if got := o.state(b.tree(id)); got != want {
		t.Errorf("there:\n%s\nhere:\n%s", want, got)
	}
	if _, err := os.Stat(filepath.Join(b.tree(id), "y.log")); err == nil {
		t.Error("an ignored file was moved")
	}

	// Interrupted: what was changed until then is kept.
	run := func(command string) *exec.Cmd {
		mark := fmt.Sprintf("9995.%d", time.Now().UnixNano()%1e9)
		cmd, _ := b.start("exec", "--demo", "--yolo", "resume", id, "run: "+command+"; sleep "+mark)
		eventually(t, "the command runs", func() bool { return running(mark) == 1 })
		return cmd
	}
	cmd := run("echo 3 > three.txt")
	_ = cmd.Process.Signal(syscall.SIGINT)
	if code := exitCode(cmd); code != 130 {
		t.Errorf("exit code %d", code)
	}

	killed := run("echo lost > a.txt")
	_ = killed.Process.Kill()
	_ = killed.Wait()
	endLeaseOf(t, s.ClientURL(), "fermata", killed.Process.Pid)
	afterTheKill(t, id, b, c)
	if marks, err := os.ReadFile(o.marks); err == nil {
		t.Errorf("the repository ran %s", marks)
	}

	// What is deleted leaves nothing in the store.
	c.must("delete", "--yes", id)
	if _, err := o.trees.Get(t.Context(), id); err == nil {
		t.Error("the record of the work tree is still there")
	}
}

// afterTheKill is what follows when machine b was killed in turn 4: the state after the turn before is restored on c, and that is said to
// people and to the model.
func afterTheKill(t *testing.T, id string, b, c *machine) {
	t.Helper()
	answer := c.must("exec", "--demo", "--yolo", "resume", id, "run: cat a.txt three.txt")
	for _, word := range []string{"restored in " + c.tree(id), "after turn 3; what turn 4 changed is missing", "changed\n3\n"} {
		if !strings.Contains(answer, word) {
			t.Errorf("no %q in %s", word, answer)
		}
	}
	if out := c.must("show", id); !strings.Contains(out, "<work_tree>the work tree was restored in "+c.tree(id)) {
		t.Errorf("the model was not told: %s", out)
	}

	// The machine that had it before finds that its own tree is old, and leaves it beside the new one.
	answer = b.must("exec", "--demo", "--yolo", "resume", id, "run: cat a.txt")
	if old, err := os.ReadFile(b.tree(id) + ".old-1/a.txt"); err != nil || string(old) != "lost\n" || !strings.Contains(answer, "changed\n") {
		t.Errorf("%q, %v: %s", old, err, answer)
	}
}

// What a turn has changed that waits for an approval is kept also if no node runs it. And who copies a conversation with a work
// tree learns that the tree stays.
func TestWorkTreeOfATurnThatWaitsAnywhere(t *testing.T) {
	t.Parallel()
	s, o := listen(t, &server.Options{}), newOrigin(t)
	a, b, c := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	node, _ := a.serve("n")
	c.must("exec", "--demo", "--fleet", "--repo", o.url, "hello")
	made, _ := filepath.Glob(a.tree("*"))
	if len(made) != 1 {
		t.Fatalf("the work trees are %q", made)
	}
	id := filepath.Base(made[0])
	_ = node.Process.Signal(syscall.SIGTERM)
	_ = node.Wait()
	b.must("exec", "--demo", "resume", id, "hello")
	o.write(filepath.Join(b.tree(id), "new.txt"), "new\n", 0o644)
	if out, err := b.run("exec", "--demo", "--park", "-a", "untrusted", "resume", id, "run: touch asked"); err == nil || !strings.Contains(out, "is waiting for approval") {
		t.Fatalf("%v: %s", err, out)
	}
	c.must("interrupt", id)
	out := c.must("exec", "--demo", "--yolo", "resume", id, "run: cat new.txt")
	if !strings.Contains(out, "while turn 3 waited") || !strings.Contains(out, "\n  new\n") {
		t.Errorf("elsewhere: %s", out)
	}
	o.awaitKept(s, id, 4)
	o.copyAndResume(s, c, id, 4)
}

// copyAndResume copies a conversation with its work tree into a directory, and from there to other servers, and resumes it there.
func (o *origin) copyAndResume(s *server.Server, m *machine, id string, last int) {
	o.t.Helper()
	dir, other := o.t.TempDir(), listen(o.t, &server.Options{})
	there := newMachine(o.t, other.ClientURL())
	for range 2 { // the second time there is nothing to do
		if out := m.must("store", "copy", "--from", s.ClientURL(), "--to", dir, id); !strings.Contains(out, "1 work tree") {
			o.t.Errorf("store copy: %s", out)
		}
		if out := there.must("store", "copy", "--from", dir, "--to", other.ClientURL(), id); !strings.Contains(out, "1 work tree") {
			o.t.Errorf("store copy: %s", out)
		}
	}
	out := there.must("exec", "--demo", "--yolo", "resume", id, "run: pwd; cat new.txt")
	if !strings.Contains(out, "the work tree was restored in "+there.tree(id)) || !strings.Contains(out, fmt.Sprintf("after turn %d", last)) || !strings.Contains(out, "\n  new\n") {
		o.t.Errorf("on other servers: %s", out)
	}
}

// What cannot be checked out is said to who submits it, and nothing runs.
func TestWorkTreeThatCannotBeMade(t *testing.T) {
	t.Parallel()
	s, o := listen(t, &server.Options{}), newOrigin(t)
	node, client := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	node.serve("n")
	for want, args := range map[string][]string{
		"fetch file:///no/such.git: git fetch":  {"--repo", "file:///no/such.git"},
		`"nowhere": no such commit in ` + o.url: {"--repo", o.url, "--commit", "nowhere"},
	} {
		cmd, said := client.start(append([]string{"exec", "--demo", "--fleet", "run: pwd"}, args...)...)
		eventually(t, "the node refuses", func() bool { return strings.Contains(said.String(), "node n did not take it: "+want) })
		_ = cmd.Process.Signal(syscall.SIGINT)
		if code := exitCode(cmd); code != 130 || !strings.Contains(said.String(), "nothing has run") {
			t.Errorf("exit code %d: %s", code, said)
		}
	}
	if left, _ := filepath.Glob(node.home + "-work/*"); len(left) > 0 {
		t.Errorf("these are left: %q", left)
	}
	for want, args := range map[string][]string{
		"--repo needs --fleet":      {"--repo", o.url},
		"--commit needs --repo":     {"--fleet", "--commit", "main"},
		"is not a way to fetch":     {"--fleet", "--repo", "ext://x"},
		"leave out --node-dir":      {"--fleet", "--repo", o.url, "--node-dir", "/"},
		"the URL has a password":    {"--fleet", "--repo", "https://u:secret@localhost/x"},
		"is not the URL of a repos": {"--fleet", "--repo", "../x"},
	} {
		if out, err := client.run(append([]string{"exec", "--demo", "x"}, args...)...); err == nil || !strings.Contains(out, want) || strings.Contains(out, "secret") {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
}

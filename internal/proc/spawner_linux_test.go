package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/proc/tree"
	"github.com/google/go-cmp/cmp"
)

// sparePID waits for the spare and returns its process number.
func sparePID(t *testing.T, s *Spawner) int {
	t.Helper()
	warmUp(t, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := <-s.spares[kind{}]
	s.spares[kind{}] <- sh
	return sh.id.PID
}

func alivePID(pid int) bool {
	p, err := tree.Read(pid)
	return err == nil && !p.Dead()
}

func TestSpareServesOneCommand(t *testing.T) {
	s := newSpawner(t)
	spare := sparePID(t, s)
	s.warm(kind{}) // there is one already
	if again := sparePID(t, s); again != spare {
		t.Fatalf("two spares, %d and %d", spare, again)
	}

	const n = 5
	var all sync.WaitGroup
	pids := make([]int, n)
	for i := range n {
		all.Go(func() {
			c, err := s.Start(t.Context(), Spec{Argv: []string{"true"}}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			pids[i] = c.Identity().PID
			c.Release()
			if r := c.Wait(); r.Err != nil || r.ExitCode != 0 {
				t.Errorf("result %+v", r)
			}
		})
	}
	all.Wait()
	uses := make(map[int]int)
	for _, pid := range pids {
		uses[pid]++
	}
	if len(uses) != n || uses[spare] != 1 {
		t.Errorf("commands ran in shims %v, want %d different ones, the spare %d among them", pids, n, spare)
	}
}

func TestSpareIsReplaced(t *testing.T) {
	s := newSpawner(t)
	hasSpare := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.spares[kind{}] != nil
	}
	if r := s.Run(t.Context(), Spec{Argv: []string{"true"}}, nil); r.Err != nil {
		t.Fatal(r.Err)
	}
	if !hasSpare() {
		t.Error("no spare after a command")
	}

	c, err := s.Start(t.Context(), Spec{Argv: []string{"sleep", "100"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !hasSpare() {
		t.Error("no new spare while a command is prepared")
	}
	c.Stop(nil)
	c.Wait()
}

func TestCloseEndsSpare(t *testing.T) {
	s := newSpawner(t)
	spare := sparePID(t, s)
	tree := append(childrenOf(t, spare), spare)
	if len(tree) != 2 {
		t.Fatalf("spare and stage are %v, want two processes", tree)
	}
	s.Close()
	for _, pid := range tree {
		if alivePID(pid) {
			t.Errorf("process %d of the spare lives after close", pid)
		}
	}
	s.warm(kind{})
	if s.spares[kind{}] != nil {
		t.Error("a spare was started after close")
	}
	s.Close() // again
}

// childrenOf lists the children of a process.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	table, err := tree.Table()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, p := range table {
		if p.PPID == pid && !p.Dead() {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

func TestSpareDiesWithFermata(t *testing.T) {
	a := startAgent(t, agentJob{Warm: true})
	var tree []int
	eventually(t, "spare and stage are there", func() bool {
		tree = childrenOf(t, a.Process.Pid)
		if len(tree) == 1 {
			tree = append(tree, childrenOf(t, tree[0])...)
		}
		return len(tree) == 2
	})
	a.kill()
	eventually(t, "spare and stage are gone", func() bool { return !alivePID(tree[0]) && !alivePID(tree[1]) })
}

func TestKilledSpareIsNoHarm(t *testing.T) {
	s := newSpawner(t)
	spare := sparePID(t, s)
	stage := childrenOf(t, spare)
	if err := syscall.Kill(spare, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the spare is dead", func() bool { return !alivePID(spare) })
	if r, out := runScript(t, s, "echo fine"); r.Err != nil || out.Text() != "fine\n" {
		t.Errorf("result %+v, output %q", r, out.Text())
	}
	for _, pid := range stage {
		if _, err := os.Stat("/proc/" + itoa(pid)); err == nil {
			t.Errorf("stage %d of the dead spare was not waited for", pid)
		}
	}
}

func TestHaltedSpareIsNoHarm(t *testing.T) {
	s := newSpawner(t)
	if err := syscall.Kill(sparePID(t, s), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if r, out := runScript(t, s, "echo fine"); r.Err != nil || out.Text() != "fine\n" {
		t.Errorf("result %+v, output %q", r, out.Text())
	}
}

func TestKilledStageIsReported(t *testing.T) {
	c, err := newSpawner(t).Start(t.Context(), Spec{Argv: []string{"true"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(c.Identity().Leader, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if r := c.Wait(); r.Err == nil || errors.Is(r.Err, ErrShimLost) || r.ExitCode != -1 || r.Stopped {
		t.Errorf("result %+v, want an error without a release, and not of the shim", r)
	}
}

// TestSpawnErrorBeforeRelease has a command that cannot run, which is known
// before anybody lets it.
func TestSpawnErrorBeforeRelease(t *testing.T) {
	c, err := newSpawner(t).Start(t.Context(), Spec{Argv: []string{"no-such-program"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Wait(); !errors.Is(r.Err, fs.ErrNotExist) || r.ExitCode != -1 {
		t.Errorf("result %+v, want %v", r, fs.ErrNotExist)
	}
	c.Release()
}

func TestNothingRunsBeforeRelease(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ran")
	spec := Spec{Argv: []string{"touch", file}, Dir: dir}
	awaitStage := func(t *testing.T, id tree.Identity) {
		t.Helper()
		eventually(t, "the stage is prepared", func() bool {
			wd, err := os.Readlink("/proc/" + itoa(id.Leader) + "/cwd")
			return wd == dir || errors.Is(err, fs.ErrPermission) // only root can look
		})
		awaitTick(t) // in which it could run
	}
	for _, c := range []struct {
		name string
		end  func(c *Command)
	}{
		{"stop", func(c *Command) { c.Stop(errors.New("no")) }},
		{"stop, then release", func(c *Command) { c.Stop(errors.New("no")); <-c.Done(); c.Release() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd, err := newSpawner(t).Start(t.Context(), spec, nil)
			if err != nil {
				t.Fatal(err)
			}
			id := cmd.Identity()
			awaitStage(t, id)
			c.end(cmd)
			r := cmd.Wait()
			if !errors.Is(r.Err, ErrNotReleased) || r.ExitCode != -1 || !r.Stopped || r.Duration != 0 {
				t.Errorf("result %+v, want %v", r, ErrNotReleased)
			}
			if exists(file) || alivePID(id.PID) || alivePID(id.Leader) {
				t.Error("something ran or is left")
			}
		})
	}
	t.Run("kill of fermata", func(t *testing.T) {
		a := startAgent(t, agentJob{Spec: spec, Hold: true})
		if !livesAs(a.id.PID, a.id.Start) || !livesAs(a.id.Leader, a.id.LeaderStart) {
			t.Fatalf("identity %+v does not name living processes", a.id)
		}
		awaitStage(t, a.id)
		a.kill()
		eventually(t, "shim and stage are gone", func() bool { return !alivePID(a.id.PID) && !alivePID(a.id.Leader) })
		if exists(file) {
			t.Error("the command ran")
		}
	})
}

func TestReleaseTwice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "count")
	c, err := newSpawner(t).Start(t.Context(), Spec{Argv: []string{"sh", "-c", `echo x >> "$0"`, file}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	c.Release()
	c.Wait()
	if text, _ := os.ReadFile(file); string(text) != "x\n" {
		t.Errorf("the command wrote %q, want one line", text)
	}
}

func TestMark(t *testing.T) {
	for _, c := range []struct{ env, want []string }{
		{nil, []string{"FERMATA_COMMAND=tok"}},
		{[]string{"A=1", "B=2", "A=3"}, []string{"B=2", "A=3", "FERMATA_COMMAND=tok"}},
		{[]string{"FERMATA_COMMAND=outer", "A="}, []string{"A=", "FERMATA_COMMAND=outer,tok"}},
	} {
		if d := cmp.Diff(c.want, mark(c.env, "tok")); d != "" {
			t.Errorf("mark %q (-want +got):\n%s", c.env, d)
		}
	}
}

// TestSpecIsNotChanged starts two commands from one Spec: marking the first must
// not touch the caller's environment.
func TestSpecIsNotChanged(t *testing.T) {
	want := []string{"PATH=" + os.Getenv("PATH"), "A=0", "A=1"}
	env := append(make([]string, 0, 10), want...)
	s := newSpawner(t)
	spec := Spec{Argv: []string{"sh", "-c", "echo $A; echo $FERMATA_COMMAND"}, Env: env}
	_, first := runSpec(t, s, spec)
	_, second := runSpec(t, s, spec)
	if d := cmp.Diff(want, spec.Env); d != "" {
		t.Errorf("environment (-want +got):\n%s", d)
	}
	if first.Text() == second.Text() || len(first.Text()) != len(second.Text()) {
		t.Errorf("tokens %q and %q, want two of the same form", first.Text(), second.Text())
	}
}

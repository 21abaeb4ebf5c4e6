package proc

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/proc/tree"
	"github.com/google/go-cmp/cmp"
)

// sparePID waits for the spare and returns its process number.
func sparePID(t *testing.T, s *Spawner) int {
	t.Helper()
	return spareOf(t, s, kind{}).PID
}

// spareOf waits for the spare of a kind and returns its process.
func spareOf(t *testing.T, s *Spawner, k kind) tree.Process {
	t.Helper()
	warmUp(t, s, k)
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := <-s.spares[k]
	s.spares[k] <- sh
	return tree.Process{PID: sh.id.PID, Start: sh.id.Start}
}

// stagedKind is what a confined command needs.
var stagedKind = kind{scoped: true, staged: true}

func lives(p tree.Process) bool { return livesAs(p.PID, p.Start) }

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
	for k, processes := range map[kind]int{{}: 1, stagedKind: 2} {
		s := newSpawner(t)
		spare := spareOf(t, s, k)
		tree := append(childrenOf(t, spare.PID), spare)
		if len(tree) != processes {
			t.Fatalf("the processes of a spare are %v, want %d", tree, processes)
		}
		s.Close()
		for _, p := range tree {
			if lives(p) {
				t.Errorf("process %d of the spare lives after close", p.PID)
			}
		}
		s.warm(k)
		if s.spares[k] != nil {
			t.Error("a spare was started after close")
		}
		s.Close() // again
	}
}

// childrenOf lists the children of a process.
func childrenOf(t *testing.T, pid int) []tree.Process {
	t.Helper()
	table, err := tree.Table()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(table, func(p tree.Process) bool { return p.PPID != pid || p.Dead() })
}

func TestSpareDiesWithFermata(t *testing.T) {
	a := startAgent(t, agentJob{Warm: true})
	var tree []tree.Process
	eventually(t, "spare and stage are there", func() bool {
		tree = childrenOf(t, a.Process.Pid)
		if len(tree) == 1 {
			tree = append(tree, childrenOf(t, tree[0].PID)...)
		}
		return len(tree) == 2
	})
	a.kill()
	eventually(t, "spare and stage are gone", func() bool { return !lives(tree[0]) && !lives(tree[1]) })
}

func TestKilledSpareIsNoHarm(t *testing.T) {
	s := newSpawner(t)
	spare := spareOf(t, s, stagedKind)
	stage := childrenOf(t, spare.PID)
	if err := syscall.Kill(spare.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the spare is dead", func() bool { return !lives(spare) })
	r, out := runSpec(t, s, Spec{Argv: []string{"echo", "fine"}, Confine: noConfinement})
	if r.Err != nil || out.Text() != "fine\n" {
		t.Errorf("result %+v, output %q", r, out.Text())
	}
	for _, p := range stage {
		if now, err := tree.Read(p.PID); err == nil && now.Start == p.Start {
			t.Errorf("stage %d of the dead spare was not waited for", p.PID)
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
	c, err := newSpawner(t).Start(t.Context(), Spec{Argv: []string{"true"}, Confine: noConfinement}, nil)
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
	for name, confine := range withAndWithoutStage {
		t.Run(name, func(t *testing.T) {
			c, err := newSpawner(t).Start(t.Context(), Spec{Argv: []string{"no-such-program"}, Confine: confine}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r := c.Wait(); !errors.Is(r.Err, fs.ErrNotExist) || r.ExitCode != -1 {
				t.Errorf("result %+v, want %v", r, fs.ErrNotExist)
			}
			c.Release()
		})
	}
}

// noConfinement makes a command have a stage that confines nothing.
var noConfinement = json.RawMessage("{}")

// withAndWithoutStage is Spec.Confine for both ways to start a command.
var withAndWithoutStage = map[string]json.RawMessage{"with a stage": noConfinement, "without": nil}

// TestUnconfinedCommandHasNoStage looks at what waits for a release: one process for a command that nothing
// confines, and two for others.
func TestUnconfinedCommandHasNoStage(t *testing.T) {
	for name, want := range map[string]int{"with a stage": 1, "without": 0} {
		t.Run(name, func(t *testing.T) {
			cmd, err := newSpawner(t).Start(t.Context(), Spec{Argv: []string{"true"}, Confine: withAndWithoutStage[name]}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(childrenOf(t, cmd.Identity().PID)); n != want {
				t.Errorf("the shim has %d children before the release, want %d", n, want)
			}
			cmd.Release()
			if r := cmd.Wait(); r.Err != nil || r.ExitCode != 0 {
				t.Errorf("result %+v", r)
			}
		})
	}
}

func TestNothingRunsBeforeRelease(t *testing.T) {
	for name, confine := range withAndWithoutStage {
		t.Run(name, func(t *testing.T) { testNothingRunsBeforeRelease(t, confine) })
	}
}

func testNothingRunsBeforeRelease(t *testing.T, confine json.RawMessage) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ran")
	spec := Spec{Argv: []string{"touch", file}, Dir: dir, Confine: confine}
	awaitReady := func(t *testing.T, id tree.Identity) {
		t.Helper()
		eventually(t, "the command is prepared", func() bool {
			waits := id.Leader
			if waits == 0 {
				waits = id.PID
			}
			wd, err := os.Readlink("/proc/" + itoa(waits) + "/cwd")
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
			awaitReady(t, id)
			c.end(cmd)
			r := cmd.Wait()
			if !errors.Is(r.Err, ErrNotReleased) || r.ExitCode != -1 || !r.Stopped || r.Duration != 0 {
				t.Errorf("result %+v, want %v", r, ErrNotReleased)
			}
			if exists(file) || livesAs(id.PID, id.Start) || livesAs(id.Leader, id.LeaderStart) {
				t.Error("something ran or is left")
			}
		})
	}
	t.Run("kill of fermata", func(t *testing.T) {
		a := startAgent(t, agentJob{Spec: spec, Hold: true})
		if !livesAs(a.id.PID, a.id.Start) || confine != nil && !livesAs(a.id.Leader, a.id.LeaderStart) {
			t.Fatalf("identity %+v does not name living processes", a.id)
		}
		awaitReady(t, a.id)
		a.kill()
		eventually(t, "shim and stage are gone", func() bool {
			return !livesAs(a.id.PID, a.id.Start) && !livesAs(a.id.Leader, a.id.LeaderStart)
		})
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

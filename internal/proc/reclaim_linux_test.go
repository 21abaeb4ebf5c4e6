package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// murder kills fermata and the shim so that neither can act on the other's death.
func murder(t *testing.T, a *agent) {
	t.Helper()
	halt(t, a.Process.Pid)
	if err := syscall.Kill(a.id.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the shim is dead", func() bool { return !alivePID(a.id.PID) })
	a.kill()
}

// halt stops a process, and returns when none of its threads runs any more.
func halt(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it stands still", func() bool {
		threads, _ := filepath.Glob("/proc/" + itoa(pid) + "/task/*/stat")
		for _, name := range threads {
			text, _ := os.ReadFile(name)
			if i := bytes.LastIndexByte(text, ')'); i >= 0 && !bytes.HasPrefix(text[i+1:], []byte(" T")) {
				return false
			}
		}
		return len(threads) > 0
	})
}

func TestReclaimWithoutShim(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"plain", `sleep 100.$MARK & touch $READY; wait`},
		{"own session", `setsid sh -c 'trap "" TERM; touch $READY; for i in 1 2 3; do sleep 100.$MARK; done' $MARK & wait`},
		{"empty environment in the session", `env -i PATH="$PATH" sleep 100.$MARK & touch $READY; wait`},
		{
			"empty environment and own session below one with the token",
			`setsid sh -c 'env -i PATH="$PATH" setsid sleep 100.$MARK & touch $READY; wait' $MARK & wait`,
		},
		{
			"empty environment and own session, orphaned",
			`sh -c 'env -i PATH="$PATH" setsid sleep 100.$MARK & touch $READY'; exec env -i PATH="$PATH" sleep 100`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sc := victim{script: c.script}.scene(t)
			a := startAgent(t, agentJob{Spec: sc.spec})
			sc.awaitReady(t)
			murder(t, a)
			if len(marked(t, sc.mark)) == 0 {
				t.Fatal("nothing was left, so this proves nothing")
			}
			id := a.id
			id.Cgroup = "" // few users have one, and with it nothing else is needed: see TestReclaimByCgroup
			killed, err := tree.Reclaim(id)
			noneMarked(t, sc.mark)
			if err != nil || killed == 0 {
				t.Errorf("killed %d, error %v", killed, err)
			}
			if killed, err := tree.Reclaim(a.id); err != nil || killed != 0 {
				t.Errorf("again: killed %d, error %v, want nothing", killed, err)
			}
		})
	}
}

// TestReclaimWithHaltedShim has a command that halts its shim again and again:
// when fermata dies the shim cannot act.
func TestReclaimWithHaltedShim(t *testing.T) {
	t.Parallel()
	needs(t, "perl")
	sc := victim{script: halter}.scene(t)
	a := startAgent(t, agentJob{Spec: sc.spec})
	sc.awaitReady(t)
	a.kill()
	if _, err := tree.Reclaim(a.id); err != nil {
		t.Error(err)
	}
	noneMarked(t, sc.mark)
	if livesAs(a.id.PID, a.id.Start) {
		t.Error("the shim lives")
	}
}

func TestReclaimLeavesStrangersAlone(t *testing.T) {
	t.Parallel()
	sc := victims[0].scene(t)
	a := startAgent(t, agentJob{Spec: sc.spec})
	sc.awaitReady(t)
	for _, c := range []struct {
		name   string
		change func(id *tree.Identity)
	}{
		{"another boot", func(id *tree.Identity) { id.Boot = "other" }},
		{"numbers used again", func(id *tree.Identity) {
			id.Start++
			id.LeaderStart++
			id.Token, id.Mark, id.Cgroup = "other", id.Mark+1, id.Cgroup+"x"
		}},
		{"nothing known", func(id *tree.Identity) { *id = tree.Identity{Boot: id.Boot} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := a.id
			c.change(&id)
			if killed, err := tree.Reclaim(id); killed != 0 || err != nil {
				t.Errorf("killed %d, error %v, want nothing", killed, err)
			}
			if !livesAs(a.id.PID, a.id.Start) || len(marked(t, sc.mark)) == 0 {
				t.Fatal("a stranger was killed")
			}
		})
	}
	a.kill()
	eventually(t, "the command is gone", func() bool { return len(marked(t, sc.mark)) == 0 })
}

// TestReclaimByCgroup has a process that has got rid of all that it inherited.
func TestReclaimByCgroup(t *testing.T) {
	t.Parallel()
	group := tree.NewCgroup()
	if group == nil {
		t.Skip("no cgroup for us here")
	}
	group.Remove()
	needs(t, "bash") // whose ulimit knows the limit of file locks as -x
	sc := victim{script: `bash -c 'ulimit -x 5 || exit; env -i PATH="$PATH" setsid sleep 100.$MARK & touch $READY'; exec env -i PATH="$PATH" sleep 100`}.scene(t)
	a := startAgent(t, agentJob{Spec: sc.spec})
	sc.awaitReady(t)
	if a.id.Cgroup == "" || !exists(a.id.Cgroup) {
		t.Fatalf("identity %+v names no cgroup", a.id)
	}
	murder(t, a)
	if len(marked(t, sc.mark)) == 0 {
		t.Fatal("nothing was left, so this proves nothing")
	}
	killed, err := tree.Reclaim(a.id)
	noneMarked(t, sc.mark)
	if err != nil || killed == 0 {
		t.Errorf("killed %d, error %v", killed, err)
	}
	if exists(a.id.Cgroup) {
		t.Error("the cgroup is left")
	}
}

// TestCgroupIsRemoved leaves none behind.
func TestCgroupIsRemoved(t *testing.T) {
	s := newSpawner(t)
	c, err := s.Start(t.Context(), Spec{Argv: []string{"true"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	c.Wait()
	s.Close()
	if group := c.Identity().Cgroup; group != "" && exists(group) {
		t.Errorf("%s is left", group)
	}
}

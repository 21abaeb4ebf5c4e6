package proc

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// TestHaltByGenerations halts a tree of three generations in sessions of their own.
func TestHaltByGenerations(t *testing.T) {
	needs(t, "setsid", "sh", "sleep")
	if err := becomeSubreaper(); err != nil {
		t.Fatal(err)
	}
	mark := newMark()
	t.Cleanup(func() { killMarked(t, mark) })
	script := `setsid sh -c 'setsid sleep 100.` + mark + ` & sleep 100.` + mark + `; :' & sleep 100.` + mark + `; :`
	cmd := exec.Command("sh", "-c", script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	eventually(t, "all are there", func() bool { return len(marked(t, mark)) == 5 })
	tree.Halt(time.Minute)
	eventually(t, "all are halted", func() bool {
		for _, p := range marked(t, mark) {
			if p.State != 'T' {
				return false
			}
		}
		return true
	})
	if n := len(marked(t, mark)); n != 5 {
		t.Errorf("%d processes, want 5", n)
	}
	for _, p := range marked(t, mark) {
		_ = tree.Signal(p, syscall.SIGKILL)
	}
	_ = cmd.Wait()
	eventually(t, "all are gone", func() bool { return len(marked(t, mark)) == 0 })
}

// TestTheDeadStayWhileHalted looks at the order in which a shim without a call that
// kills all works: nobody's place is given away before all are halted.
func TestTheDeadStayWhileHalted(t *testing.T) {
	r := newReaper(0)
	r.waiting.Lock()
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { r.reap(); close(done) }()
	dead := func() bool { p, err := tree.Read(cmd.Process.Pid); return err == nil && p.Dead() }
	eventually(t, "it is dead", dead)
	if !dead() {
		t.Error("it was waited for")
	}
	r.waiting.Unlock()
	<-done
	if dead() {
		t.Error("it was not waited for")
	}
	_ = cmd.Process.Release()
}

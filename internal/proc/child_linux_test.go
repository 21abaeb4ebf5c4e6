package proc

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// TestShimThatCannotBeBuried has a shim whose pipe is closed and that does not
// die, as the first process of a PID namespace when another one hangs: nobody
// waits for it, and what is below it is found.
func TestShimThatCannotBeBuried(t *testing.T) {
	mark := newMark()
	cmd := exec.Command("sh", "-c", "sleep 100."+mark+" & exec sleep 100."+mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both live", func() bool { return len(childrenOf(t, cmd.Process.Pid)) == 1 && len(marked(t, "sleep 100."+mark)) == 2 })
	status, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	s := &shim{process: cmd.Process, id: tree.Identity{PID: cmd.Process.Pid}, reports: make(chan report)}
	if err := tree.Identify(&s.id); err != nil {
		t.Fatal(err)
	}
	go s.follow(status)
	eventually(t, "no caller waits for it", func() bool {
		select {
		case <-s.reports:
			return true
		default:
			return false
		}
	})
	if killed, left := tree.EndOrphans(s.id, 0, time.Minute); killed != 1 || left != 0 {
		t.Errorf("killed %d, left %d, want what was below it", killed, left)
	}
	if !alivePID(s.id.PID) {
		t.Error("it is dead, so this proves nothing")
	}
	_ = cmd.Process.Kill()
	eventually(t, "it is waited for when it dies", func() bool { return !tree.Running(s.id) && !exists("/proc/"+itoa(s.id.PID)) })
}

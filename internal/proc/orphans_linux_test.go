package proc

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestOrphansAreNotOurOtherChildren has other children beside a command whose
// shim was killed: they must be left alone, alive or dead.
func TestOrphansAreNotOurOtherChildren(t *testing.T) {
	daemon := exec.Command("sleep", "100")
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	awaitTick(t)
	c, err := newSpawner(t).Start(t.Context(), Spec{Argv: []string{"sh", "-c", "sleep 100 & kill -9 $PPID; wait"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	alive, dead := exec.Command("sleep", "100"), exec.Command("sh", "-c", "exit 5")
	for _, cmd := range []*exec.Cmd{alive, dead} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the second child is dead", func() bool { return !alivePID(dead.Process.Pid) })

	c.Release()
	if r := c.Wait(); !errors.Is(r.Err, ErrShimLost) || r.Killed != 2 {
		t.Errorf("result %+v, want %v and two killed", r, ErrShimLost)
	}
	for what, cmd := range map[string]*exec.Cmd{"an ordinary child": alive, "an older daemon": daemon} {
		if !alivePID(cmd.Process.Pid) {
			t.Errorf("%s was killed", what)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	var exit *exec.ExitError
	if err := dead.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 5 {
		t.Errorf("status of an ordinary child: %v, want exit code 5", err)
	}
}

// awaitTick waits until processes get a later start time than those of now.
func awaitTick(t *testing.T) {
	t.Helper()
	uptime := func() string {
		text, err := os.ReadFile("/proc/uptime")
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), " ")
		return first
	}
	for range 2 { // the two clocks may be off by one
		now := uptime()
		eventually(t, "the clock ticks", func() bool { return uptime() != now })
	}
}

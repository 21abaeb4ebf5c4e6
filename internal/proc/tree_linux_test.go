package proc

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const statTail = " 10 11 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 987654 1 2 3\n"

func TestParseStat(t *testing.T) {
	want := process{pid: 7, ppid: 10, pgrp: 11, session: 12, state: 'S', threads: 3, start: 987654}
	for _, name := range []string{"sh", "a b", "x) R 1 2 3 (", ")", ""} {
		got, err := parseStat(7, []byte("7 ("+name+") S"+statTail))
		if err != nil {
			t.Errorf("name %q: %v", name, err)
			continue
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(process{})); d != "" {
			t.Errorf("name %q (-want +got):\n%s", name, d)
		}
	}
	for _, text := range []string{"", "7", "7 (sh)", "7 (sh) S 1 2", "7 (sh) S x" + statTail[3:]} {
		if p, err := parseStat(7, []byte(text)); err == nil {
			t.Errorf("text %q was read as %+v", text, p)
		}
	}
}

func TestReadProcess(t *testing.T) {
	p, err := readProcess(os.Getpid())
	if err != nil || p.ppid != os.Getppid() || p.pgrp != syscall.Getpgrp() || p.threads < 1 || p.start == 0 || p.dead() {
		t.Errorf("this process is %+v, error %v", p, err)
	}
	if _, err := readProcess(1 << 30); err == nil {
		t.Error("read a process that cannot exist")
	}
}

func TestSignalProcessMindsStartTime(t *testing.T) {
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()

	p, err := readProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	other := p
	other.start++
	if err := signalProcess(other, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("signal with another start time: error %v, want %v", err, syscall.ESRCH)
	}
	if !alivePID(p.pid) {
		t.Fatal("a stranger was killed")
	}
	if err := signalProcess(p, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	eventually(t, "it is dead", func() bool { return !alivePID(p.pid) })
}

func TestSignalGroupSparesOwn(t *testing.T) {
	const none = syscall.Signal(99) // the kernel refuses it, if it is asked
	if err := signalGroup(syscall.Getpgrp(), none); err != nil {
		t.Error(err)
	}
	if err := signalGroup(1, none); err == nil {
		t.Error("another group was not signalled")
	}
}

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

package tree

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const statTail = " 10 11 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 987654 1 2 3\n"

func TestParseStat(t *testing.T) {
	want := Process{PID: 7, PPID: 10, PGrp: 11, Session: 12, State: 'S', Threads: 3, Start: 987654}
	for _, name := range []string{"sh", "a b", "x) R 1 2 3 (", ")", ""} {
		got, err := parseStat(7, []byte("7 ("+name+") S"+statTail))
		if err != nil {
			t.Errorf("name %q: %v", name, err)
			continue
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(Process{})); d != "" {
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
	p, err := Read(os.Getpid())
	if err != nil || p.PPID != os.Getppid() || p.PGrp != syscall.Getpgrp() || p.Threads < 1 || p.Start == 0 || p.Dead() {
		t.Errorf("this process is %+v, error %v", p, err)
	}
	if _, err := Read(1 << 30); err == nil {
		t.Error("read a process that cannot exist")
	}
}

func TestSignalProcessMindsStartTime(t *testing.T) {
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()

	p, err := Read(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	other := p
	other.Start++
	if err := Signal(other, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("signal with another start time: error %v, want %v", err, syscall.ESRCH)
	}
	if !alivePID(p.PID) {
		t.Fatal("a stranger was killed")
	}
	if err := Signal(p, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	eventually(t, "it is dead", func() bool { return !alivePID(p.PID) })
}

func TestSignalGroupSparesOwn(t *testing.T) {
	const none = syscall.Signal(99) // the kernel refuses it, if it is asked
	if err := SignalGroup(syscall.Getpgrp(), none); err != nil {
		t.Error(err)
	}
	if err := SignalGroup(1, none); err == nil {
		t.Error("another group was not signalled")
	}
}

// A look that is not finished in time has seen the youngest, among whom is what was started last.
func TestLookBeginsWithTheYoungest(t *testing.T) {
	table, err := tableUntil(time.Now().Add(-time.Second))
	if err != nil || len(table) == 0 {
		t.Fatalf("%d processes, error %v", len(table), err)
	}
	if !slices.IsSortedFunc(table, func(a, b Process) int { return b.PID - a.PID }) {
		t.Errorf("not in descending order: %+v", table)
	}
}

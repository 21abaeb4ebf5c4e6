package remote

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A process that is stopped or has ended is told apart from one that is only slow.
func TestRuns(t *testing.T) {
	if !runs(os.Getpid()) {
		t.Error("this process does not run")
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if !runs(pid) {
		t.Error("the process does not run")
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("%v, %v", status, err)
	}
	if runs(pid) {
		t.Error("a stopped process runs")
	}
	if runs(1 << 30) {
		t.Error("a process that is not there runs")
	}
}

// An owner whose process runs has more time to respond than one that may be stopped.
func TestSlowOwner(t *testing.T) {
	for name, tt := range map[string]struct {
		pid   int
		times time.Duration
	}{"runs": {os.Getpid(), slowFactor}, "not known": {0, 1}, "not there": {1 << 30, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				defer ours.Close()
				defer theirs.Close()
				began := time.Now()
				_, err := connect(t.Context(), ours, tt.pid, Options{Bound: time.Second})
				if err == nil || time.Since(began) != tt.times*time.Second {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}

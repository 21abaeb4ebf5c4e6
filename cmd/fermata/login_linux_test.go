package main

import (
	"io"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Ctrl-C at the question for a key leaves a terminal that shows what is typed.
func TestInterruptedLoginRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	master, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal can be had here: %v", err)
	}
	defer master.Close()
	defer tty.Close()
	go func() { _, _ = io.Copy(io.Discard, master) }() // ends when the terminal is closed
	shows := func() bool {
		state, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		return err == nil && state.Lflag&unix.ECHO != 0
	}
	pr := &process{t: t, done: make(chan struct{})}
	pr.cmd = pl.command(t.Context(), "login", "openai")
	pr.cmd.Stdin, pr.cmd.Stdout, pr.cmd.Stderr = tty, tty, tty
	pr.begin(func() {})
	eventually(t, "typing is not shown", func() bool { return !shows() })
	pr.signal(syscall.SIGINT)
	if code := pr.code(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if !shows() {
		t.Error("the terminal no longer shows what is typed")
	}
}

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// startAtTerminal runs the binary as somebody does who sits there: everything is on one
// terminal. What is written to the result is typed.
func (pl *place) startAtTerminal(args ...string) (*process, io.Writer) {
	pl.t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		pl.t.Skipf("no terminal can be had here: %v", err)
	}
	pr := &process{t: pl.t, done: make(chan struct{})}
	pr.cmd = pl.command(context.Background(), args...)
	pr.cmd.Stdin, pr.cmd.Stdout, pr.cmd.Stderr = tty, tty, tty
	pr.cmd.Env = append(pr.cmd.Env, "TERM=dumb")
	read := make(chan struct{})
	go func() { // ends when the last process with the terminal has ended
		defer close(read)
		_, _ = io.Copy(&pr.err, master)
	}()
	pr.begin(func() {
		tty.Close()
		<-read
		master.Close()
	})
	return pr, master
}

// answer waits for the nth question and types.
func (pr *process) answer(in io.Writer, n int, typed string) {
	pr.t.Helper()
	eventually(pr.t, "there is a question", func() bool { return strings.Count(pr.err.String(), "allow this? ") == n })
	if _, err := io.WriteString(in, typed); err != nil {
		pr.t.Fatal(err)
	}
}

// On a terminal exec asks, and does what the answer says.
func TestExecAsksOnATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, typed string
		code        int
		made        bool
	}{
		{"yes", "y\n", exitOK, true},
		{"no", "n\n", exitOK, false}, // a client was asked: nothing was left undone
		{"stop", "s\n", exitFailed, false},
		{"end of input", "\x04", exitOK, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			pr, in := pl.startAtTerminal("exec", "--demo", "-a", "untrusted", "run: touch made")
			pr.answer(in, 1, c.typed)
			if code := pr.code(); code != c.code {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, pr.err.String())
			}
			if _, err := os.Stat(filepath.Join(pl.work, "made")); (err == nil) != c.made {
				t.Errorf("the command ran: %t, want %t\n%s", err == nil, c.made, pr.err.String())
			}
		})
	}
}

// What is allowed for good is not asked about again, in this project.
func TestExecRemembersAPermission(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pr, in := pl.startAtTerminal("exec", "--demo", "-a", "untrusted", "run: touch -a one")
	pr.answer(in, 1, "p\n")
	if code := pr.code(); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, pr.err.String())
	}
	contains(t, "the question", pr.err.String(), "commands that start with `touch -a` in ")
	pl.must("exec", "--demo", "-a", "untrusted", "run: touch -a two")
	contains(t, "permissions", pl.must("permissions"), "  touch -a …")
	pl.must("permissions", "revoke", "touch", "-a")
	if _, errs, code := pl.run("exec", "--demo", "-a", "untrusted", "run: touch -a three"); code != exitRefused {
		t.Errorf("after it was revoked: exit code %d\n%s", code, errs)
	}
	for name, want := range map[string]bool{"one": true, "two": true, "three": false} {
		if _, err := os.Stat(filepath.Join(pl.work, name)); (err == nil) != want {
			t.Errorf("%s: there is %t, want %t", name, err == nil, want)
		}
	}
}

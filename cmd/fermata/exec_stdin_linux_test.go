package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// startReading runs the binary with a stdin that we have the other end of.
func (pl *place) startReading(in *os.File, args ...string) *process {
	pl.t.Helper()
	pr := &process{t: pl.t, done: make(chan struct{})}
	pr.cmd = pl.command(context.Background(), args...)
	pr.cmd.Stdin, pr.cmd.Stdout, pr.cmd.Stderr = in, &pr.out, &pr.err
	pr.begin(func() {})
	return pr
}

const stdinWaits, stdinGone = "fermata: reading from stdin until it is closed", "fermata: nothing was written to stdin: continuing without it\n"

// pipes are what those who start a program leave it as its stdin: a shell or a
// Go program a pipe, a program in Node a socket.
func pipes(t *testing.T, test func(t *testing.T, r, w *os.File)) {
	t.Helper()
	t.Run("pipe", func(t *testing.T) {
		t.Parallel()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		test(t, r, w)
	})
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, w := os.NewFile(uintptr(fds[0]), "reader"), os.NewFile(uintptr(fds[1]), "writer")
		defer r.Close()
		defer w.Close()
		test(t, r, w)
	})
}

// Nobody writes and nobody closes: the prompt is all there is. What comes later
// is for another client.
func TestStdinThatIsLeftOpen(t *testing.T) {
	t.Parallel()
	pipes(t, func(t *testing.T, r, w *os.File) {
		pl := newPlace(t)
		pr := pl.startReading(r, "exec", "--demo", "run: echo went on")
		if code := pr.code(); code != exitOK {
			t.Errorf("exit code %d\n%s", code, pr.err.String())
		}
		contains(t, "stdout", pr.out.String(), "went on")
		contains(t, "stderr", pr.err.String(), stdinWaits, stdinGone)
		if shown := pl.must("show", pl.conversation()); strings.Contains(shown, "<stdin>") {
			t.Errorf("the model was told of a stdin:\n%s", shown)
		}
		if _, err := w.WriteString("later"); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 10)
		if n, err := r.Read(b); string(b[:n]) != "later" {
			t.Errorf("who comes next reads %q, %v", b[:n], err)
		}
	})
}

// Once something has come, all of it is waited for.
func TestStdinThatComesInPieces(t *testing.T) {
	t.Parallel()
	pipes(t, func(t *testing.T, r, w *os.File) {
		pl := newPlace(t)
		if _, err := w.WriteString("first, "); err != nil {
			t.Fatal(err)
		}
		pr := pl.startReading(r, "exec", "--demo", "explain this")
		eventually(t, "we are told that it waits", func() bool { return pr.err.has(stdinWaits) })
		_, _ = w.WriteString("and last")
		w.Close()
		if code := pr.code(); code != exitOK {
			t.Errorf("exit code %d\n%s", code, pr.err.String())
		}
		contains(t, "conversation", pl.must("show", pl.conversation()), "> <stdin>\n> first, and last\n> </stdin>\n")
	})
}

// A prompt that is to come from stdin is waited for as long as it takes.
func TestPromptOnStdinIsWaitedFor(t *testing.T) {
	t.Parallel()
	pipes(t, func(t *testing.T, r, w *os.File) {
		pl := newPlace(t)
		pr := pl.startReading(r, "exec", "--demo", "-")
		eventually(t, "we are told that it waits", func() bool { return pr.err.has(stdinWaits) })
		_, _ = io.WriteString(w, "run: echo at last")
		w.Close()
		if code := pr.code(); code != exitOK {
			t.Errorf("exit code %d\n%s", code, pr.err.String())
		}
		contains(t, "stdout", pr.out.String(), "at last")
	})
}

// A slow command before us in a pipeline is waited for, longer than anybody
// else, and so is one that writes into a named pipe.
func TestStdinOfASlowCommand(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"pipeline":     `(sleep 2; echo late data) | "$0" exec --demo 'explain this'`,
		"named pipe":   `mkfifo p; (sleep 2; echo late data) >p & "$0" exec --demo 'explain this' <p`,
		"substitution": `"$0" exec --demo 'explain this' < <(sleep 2; echo late data)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			cmd := exec.CommandContext(t.Context(), "bash", "-c", script, pl.bin)
			cmd.Dir, cmd.Env = pl.work, pl.env
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), stdinGone) {
				t.Errorf("%v\n%s", err, out)
			}
			contains(t, "conversation", pl.must("show", pl.conversation()), "> <stdin>\n> late data\n> </stdin>\n")
		})
	}
}

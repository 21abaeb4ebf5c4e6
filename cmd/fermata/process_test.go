package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// A recorder keeps what was printed, and when it was seen.
type recorder struct {
	mu     sync.Mutex
	chunks []chunk
}

type chunk struct {
	at   time.Time
	text string
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.chunks = append(r.chunks, chunk{time.Now(), string(b)})
	return len(b), nil
}

func (r *recorder) String() string { return r.before(time.Now()) }

// before is what had been seen at an instant. A terminal's line ends are made
// those of a file.
func (r *recorder) before(at time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, c := range r.chunks {
		if c.at.Before(at) {
			b.WriteString(c.text)
		}
	}
	return strings.ReplaceAll(b.String(), "\r\n", "\n")
}

func (r *recorder) has(text string) bool { return strings.Contains(r.String(), text) }

// A process is a binary that runs.
type process struct {
	t        testing.TB
	cmd      *exec.Cmd
	out, err recorder
	done     chan struct{} // closed when it has ended and all it printed was read
}

// start runs the binary with its output on pipes that are read.
func (pl *place) start(args ...string) *process {
	pl.t.Helper()
	pr := &process{t: pl.t, done: make(chan struct{})}
	pr.cmd = pl.command(context.Background(), args...)
	pr.cmd.Stdout, pr.cmd.Stderr = &pr.out, &pr.err
	pr.begin(func() {})
	return pr
}

// startOnTerminal runs the binary with progress on a terminal, where text is
// shown as it arrives.
func (pl *place) startOnTerminal(args ...string) *process {
	pl.t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		pl.t.Skipf("no terminal can be had here: %v", err)
	}
	pr := &process{t: pl.t, done: make(chan struct{})}
	pr.cmd = pl.command(context.Background(), args...)
	pr.cmd.Stdout, pr.cmd.Stderr = &pr.out, tty
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
	return pr
}

// startUnread runs the binary with its output on pipes that are full, and that
// no client reads.
func (pl *place) startUnread(args ...string) *process {
	pl.t.Helper()
	pr := &process{t: pl.t, done: make(chan struct{})}
	pr.cmd = pl.command(context.Background(), args...)
	var open []*os.File
	for _, to := range []*io.Writer{&pr.cmd.Stdout, &pr.cmd.Stderr} {
		r, w := fullPipe(pl.t)
		*to = w
		open = append(open, r, w)
	}
	pr.begin(func() {
		for _, f := range open {
			f.Close()
		}
	})
	return pr
}

func fullPipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := w.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4096)
	for full := error(nil); full != syscall.EAGAIN; {
		if err := raw.Control(func(fd uintptr) { _, full = syscall.Write(int(fd), block) }); err != nil {
			t.Fatal(err)
		}
	}
	return r, w
}

// begin starts the process; after is done when it has ended.
func (pr *process) begin(after func()) {
	pr.t.Helper()
	if err := pr.cmd.Start(); err != nil {
		pr.t.Fatal(err)
	}
	go func() {
		defer close(pr.done)
		_ = pr.cmd.Wait()
		after()
	}()
	pr.t.Cleanup(func() {
		_ = pr.cmd.Process.Kill()
		<-pr.done
	})
}

func (pr *process) signal(s os.Signal) {
	pr.t.Helper()
	if err := pr.cmd.Process.Signal(s); err != nil {
		pr.t.Fatalf("%v: %v\n%s", s, err, pr.err.String())
	}
}

// code waits for the end and returns the exit code, -1 if a signal was the end.
func (pr *process) code() int {
	pr.t.Helper()
	timer := time.NewTimer(untilDeadline(pr.t))
	defer timer.Stop()
	select {
	case <-pr.done:
	case <-timer.C:
		pr.t.Fatalf("it does not end\n%s", pr.err.String())
	}
	return pr.cmd.ProcessState.ExitCode()
}

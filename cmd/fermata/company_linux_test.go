package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	p "github.com/fermata-agent/fermata/protocol"
)

// whenOpened starts to watch a file. The returned function waits until somebody
// has opened it.
func whenOpened(t *testing.T, name string) func() {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Skipf("files cannot be watched here: %v", err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	t.Cleanup(func() { events.Close() })
	if _, err := unix.InotifyAddWatch(fd, name, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := events.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := events.Read(make([]byte, 4096)); err != nil {
			t.Fatalf("nobody opens %s: %v", name, err)
		}
	}
}

// occupied is a conversation that a process runs.
func occupied(t *testing.T) (pl *place, owner *process, id, lock string) {
	t.Helper()
	pl = newPlace(t)
	owner = pl.start("exec", "--demo", "wait 600")
	id = pl.conversation()
	pl.awaitEvent(id, "the turn runs", func(b p.Body) bool { _, ok := b.(*p.ModelRequested); return ok })
	return pl, owner, id, pl.conversations()[0].Path + ".lock"
}

// Where nobody can listen, a second process is told who has the conversation.
func TestSecondWriterIsToldWhoHasTheConversation(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	run := filepath.Join(pl.dir, "home/fermata/run")
	if err := errors.Join(os.MkdirAll(filepath.Dir(run), 0o700), os.WriteFile(run, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	owner := pl.start("exec", "--demo", "wait 600")
	id := pl.conversation()
	pl.awaitEvent(id, "the turn runs", func(b p.Body) bool { _, ok := b.(*p.ModelRequested); return ok })
	eventually(t, "the owner says that no process can join", func() bool {
		return owner.err.has("warning: listen for other processes") && owner.err.has("other terminals cannot join")
	})
	out, errs, code := pl.run("exec", "resume", id, "run: touch ran")
	if code != exitFailed || out != "" {
		t.Errorf("exit code %d, stdout %q; want %d and nothing", code, out, exitFailed)
	}
	contains(t, "stderr", errs, fmt.Sprint(owner.cmd.Process.Pid), "hint: ")
	if _, err := os.Stat(filepath.Join(pl.work, "ran")); err == nil {
		t.Error("its command ran")
	}
	pl.must("show", id) // reading takes no lock
	owner.signal(syscall.SIGINT)
	if code := owner.code(); code != exitInterrupted {
		t.Errorf("the owner's exit code is %d, want %d", code, exitInterrupted)
	}
	pl.sound(id)
}

// The message of a second process that comes while the owner is ending is delivered by
// itself, or returned if it had joined the turn already.
func TestSecondWriterWaitsForAnOwnerThatEnds(t *testing.T) {
	t.Parallel()
	pl, owner, id, lock := occupied(t)
	await := whenOpened(t, lock)
	second := pl.start("exec", "resume", id, "what happened?")
	await()
	owner.signal(syscall.SIGTERM)
	switch code := second.code(); {
	case code == exitOK:
		contains(t, "what the model was told", second.out.String(), "You had asked: wait 600", "on purpose")
	case second.err.has("fermata: interrupted after "): // the owner took the message and ended its turn, too
		contains(t, "what is recorded", pl.journal(), `"text":"what happened?"`)
	default:
		contains(t, "stderr", second.err.String(), "not delivered: what happened?")
	}
	owner.code()
	pl.fsck(id)
}

func TestSignalWhileWaitingForTheOwner(t *testing.T) {
	t.Parallel()
	for _, stop := range stops {
		t.Run(stop.name, func(t *testing.T) {
			t.Parallel()
			pl, _, id, lock := occupied(t)
			await := whenOpened(t, lock)
			second := pl.start("exec", "resume", id, "run: touch ran")
			await()
			second.signal(stop.signal)
			if code := second.code(); code != stop.code {
				t.Errorf("exit code %d, want %d\n%s", code, stop.code, second.err.String())
			}
		})
	}
}

// The end of a terminal stops the turn, unless nohup said that it shall not.
func TestHangup(t *testing.T) {
	t.Parallel()
	const prompt = "run: echo ready; while ! test -e go; do sleep 0.05; done; echo went on"
	for _, heed := range []bool{true, false} {
		t.Run(fmt.Sprintf("heeded %t", heed), func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			pr := &process{t: t, done: make(chan struct{})}
			pr.cmd = pl.command(t.Context(), "exec", "--demo", prompt)
			if !heed {
				pr.cmd.Path = "/bin/sh"
				pr.cmd.Args = []string{"sh", "-c", `trap "" HUP; exec "$0" exec --demo "$1"`, pl.bin, prompt}
			}
			pr.cmd.Stdout, pr.cmd.Stderr = &pr.out, &pr.err
			pr.begin(func() {})
			id := pl.conversation()
			pl.awaitText(id, "ready")
			pr.signal(syscall.SIGHUP)
			if heed {
				if code := pr.code(); code == exitOK {
					t.Errorf("exit code %d", code)
				}
				contains(t, "stderr", pr.err.String(), "fermata: interrupted after ")
				pl.noneLeft(t, nil)
				pl.sound(id)
				return
			}
			pl.file("go", "")
			if code := pr.code(); code != exitOK {
				t.Errorf("exit code %d, want %d\n%s", code, exitOK, pr.err.String())
			}
			contains(t, "stdout", pr.out.String(), "went on")
		})
	}
}

// A reader that goes away ends nothing but what it would have read.
func TestReaderGoesAway(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		close  func(*exec.Cmd, *os.File)
		code   int
		out    string
		errors string
	}{
		{"stdout", func(c *exec.Cmd, w *os.File) { c.Stdout = w }, exitUnread, "", "  (ok, "},
		{"stderr", func(c *exec.Cmd, w *os.File) { c.Stderr = w }, exitOK, "hello\n", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			defer w.Close()
			pr := &process{t: t, done: make(chan struct{})}
			pr.cmd = pl.command(t.Context(), "exec", "--demo", "run: echo hello")
			pr.cmd.Stdout, pr.cmd.Stderr = &pr.out, &pr.err
			test.close(pr.cmd, w)
			pr.begin(func() {})
			if code := pr.code(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			contains(t, "stdout", pr.out.String(), test.out)
			contains(t, "stderr", pr.err.String(), test.errors)
			if pr.err.has("fermata:") {
				t.Errorf("stderr: nothing went wrong, and it says\n%s", pr.err.String())
			}
			contains(t, "what the model was told", pl.sound(pl.conversation()), "Nothing was interrupted")
		})
	}
}

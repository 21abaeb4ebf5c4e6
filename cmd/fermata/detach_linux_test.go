package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	p "github.com/fermata-agent/fermata/protocol"
)

// stopServe ends what a test has left running.
func (pl *place) stopServe() {
	pl.t.Cleanup(func() { pl.run("stop", "--all") })
}

// startHere runs the binary on a terminal of its own, as a login shell would. The returned function closes
// the terminal.
func (pl *place) startHere(args ...string) (pr *process, hangUp func()) {
	pl.t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		pl.t.Skipf("no terminal can be had here: %v", err)
	}
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		pl.t.Fatal(err)
	}
	master.Close()
	master = os.NewFile(uintptr(fd), "terminal") // one that can be closed while it is read
	pr = &process{t: pl.t, done: make(chan struct{})}
	pr.cmd = pl.command(pl.t.Context(), args...)
	pr.cmd.Stdin, pr.cmd.Stdout, pr.cmd.Stderr = tty, tty, tty
	pr.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	read := make(chan struct{})
	go func() { // ends with the terminal
		defer close(read)
		_, _ = io.Copy(&pr.out, master)
	}()
	pr.begin(func() {})
	tty.Close()
	return pr, func() {
		master.Close()
		<-read
	}
}

// A turn that fermata serve runs goes on when its terminal is closed: nothing is missing and
// nothing comes twice, and after an interrupt nothing of it is left.
func TestDetachedTurnOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.stopServe()
	first, second := pl.fifo("first"), pl.fifo("second")
	pr, hangUp := pl.startHere("exec", "--demo", "--detach", "run: echo begun; cat first; echo alone; cat second; echo over; exec sleep 1000")
	eventually(t, "the command runs", func() bool { return pr.out.has("  begun") })
	id := pl.conversation()
	hangUp()
	if code := pr.code(); code != 128+int(syscall.SIGHUP) {
		t.Errorf("exit code %d\n%s", code, pr.out.String())
	}
	first()
	pl.awaitText(id, "alone")
	watching := pl.start("attach", id)
	eventually(t, "it is shown so far", func() bool { return watching.out.has("  begun\n  alone\n") })
	contains(t, "ps", pl.must("ps"), id, "(serve)", "running", "run: echo begun")
	second()
	eventually(t, "what comes is shown", func() bool { return watching.out.has("  begun\n  alone\n  over\n") })
	if n := strings.Count(watching.out.String(), "\n  alone\n"); n != 1 {
		t.Errorf("it is shown %d times:\n%s", n, watching.out.String())
	}
	watching.signal(syscall.SIGINT)
	watching.code()
	pl.must("interrupt", id)
	contains(t, "what the model is told", pl.sound(id), "begun", "alone", "over")
	pl.must("stop", "--all")
	pl.noneLeft(t, nil)
	if left := pl.sockets(); slices.ContainsFunc(left, func(s string) bool { return strings.HasSuffix(s, ".sock") }) {
		t.Errorf("left behind: %v", left)
	}
}

// A turn is run with the environment and the configuration of the client that starts it, which are
// not recorded.
func TestDetachedTurnHasItsClientsEnvironment(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.stopServe()
	const secret = "5e7a11ed-0b5cu2e"
	for _, value := range []string{"one", "two"} {
		cmd := pl.command(t.Context(), "exec", "--demo", "--detach", "-c", "shell_environment_policy.set.EXTRA=\""+value+"\"", "run: echo $MINE-$EXTRA")
		cmd.Env = append(slices.Clone(cmd.Env), "MINE="+value, "UNUSED="+secret)
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), value+"-"+value) {
			t.Errorf("%q, %v", out, err)
		}
		for _, info := range pl.conversations() {
			if text, err := os.ReadFile(info.Path); err != nil || strings.Contains(string(text), secret) {
				t.Errorf("%s: %v, or it holds the environment", info.Path, err)
			}
		}
	}
}

// Ctrl-C and SIGTERM interrupt a detached turn: stop means stop. A hangup only detaches.
func TestSignalsOfDetachedExec(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.stopServe()
	for sig, says := range map[syscall.Signal]string{syscall.SIGINT: "interrupted after", syscall.SIGTERM: "interrupted after", syscall.SIGHUP: "the turn continues"} {
		pr := pl.start("exec", "--demo", "--detach", "run: echo begun; exec sleep 1000")
		eventually(t, "the command runs", func() bool { return pr.err.has("  begun") })
		id := string(pl.conversations()[0].ID)
		pr.signal(sig)
		if code := pr.code(); code != 128+int(sig) || !pr.err.has(says) {
			t.Errorf("%v: exit code %d\n%s", sig, code, pr.err.String())
		}
		runs := strings.Contains(pl.must("ps"), id) && strings.Contains(pl.must("ps"), "running")
		if runs != (sig == syscall.SIGHUP) {
			t.Errorf("%v: after it:\n%s", sig, pl.must("ps"))
		}
		pl.run("interrupt", id)
	}
}

// The process that serves is killed in mid-turn: another one is started, and recovers the conversation.
func TestServeIsKilled(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.stopServe()
	pr := pl.start("exec", "--demo", "--detach", "run: echo begun; exec sleep 1000")
	id := pl.conversation()
	pl.awaitText(id, "begun")
	owner := pl.owner(id)
	if err := syscall.Kill(owner, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := pr.code(); code != exitFailed {
		t.Errorf("exit code %d\n%s", code, pr.err.String())
	}
	contains(t, "stderr", pr.err.String(), "crashed")
	pl.fsck(id)
	pl.must("exec", "resume", id, "--demo", "--detach", "say something")
	if now := pl.owner(id); now == owner {
		t.Errorf("process %d is still the owner", now)
	}
}

// owner is the process that has a conversation open, 0 if none has.
func (pl *place) owner(id string) int {
	pl.t.Helper()
	owner, _, err := pl.reader().Owner(pl.t.Context(), p.ConversationID(id))
	if err != nil {
		pl.t.Fatal(err)
	}
	return owner.PID
}

// Commands about a conversation that another process has open are carried out by that one, which keeps it.
func TestCommandsJoinTheOwner(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.stopServe()
	if _, errs, code := pl.run("exec", "--demo", "--detach", "--park", "-a", "untrusted", "write made: text"); code != exitWaiting {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	id := pl.conversation()
	owner := pl.owner(id)
	if owner == 0 || !strings.Contains(pl.must("ps"), "waiting for 1 approval") {
		t.Errorf("process %d has it\n%s", owner, pl.must("ps"))
	}
	pl.must("approve", id)
	pl.awaitEvent(id, "the answer, with who gave it", func(b p.Body) bool {
		answer, ok := b.(*p.ApprovalResolved)
		return ok && strings.HasPrefix(answer.Client, "approve ")
	})
	if !exists(filepath.Join(pl.work, "made")) {
		t.Error("what was approved is not there")
	}
	pl.must("undo", "--yes", id)
	if exists(filepath.Join(pl.work, "made")) {
		t.Error("what was undone is there")
	}
	pl.must("archive", id)
	contains(t, "stop", pl.must("ps"), "nothing is running")
}

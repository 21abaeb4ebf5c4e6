package proc

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// polite is a command that notes that it was asked to end.
const polite = `trap 'touch $READY.asked; exit 0' TERM; touch $READY; while :; do sleep 0.01; done`

// End is for a process that did not start the command.
func TestEndFromAnotherProcess(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			sc := victim{script: polite}.scene(t)
			mode.apply(t, &sc.spec)
			sc.spec.Grace, sc.spec.Bound = 10*time.Second, 20*time.Second // it shall be able to do what it is asked
			a := startAgent(t, agentJob{Spec: sc.spec})
			sc.awaitReady(t)
			if !tree.Running(a.id) {
				t.Error("it does not run")
			}
			if ended, err := tree.End(a.id); !ended || err != nil {
				t.Errorf("ended %t, error %v", ended, err)
			}
			noneMarked(t, sc.mark)
			if !exists(sc.ready + ".asked") {
				t.Error("it was not asked to end")
			}
			if tree.Running(a.id) || livesAs(a.id.PID, a.id.Start) {
				t.Error("it still runs")
			}
			if err := a.Wait(); err != nil { // its fermata heard of it, and goes on
				t.Errorf("fermata: %v", err)
			}
			if ended, err := tree.End(a.id); ended || err != nil {
				t.Errorf("again: ended %t, error %v, want nothing", ended, err)
			}
		})
	}
}

func TestEndOfWhatDoesNotWantTo(t *testing.T) {
	for _, v := range victims {
		t.Run(v.name, func(t *testing.T) {
			if v.killsShim {
				t.Skip("there is nobody to ask")
			}
			v.sideBySide(t, modes[0])
			sc := v.scene(t)
			a := startAgent(t, agentJob{Spec: sc.spec})
			sc.awaitReady(t)
			if ended, err := tree.End(a.id); !ended || err != nil {
				t.Errorf("ended %t, error %v", ended, err)
			}
			noneMarked(t, sc.mark)
		})
	}
}

// The owner learns how its command ended: it did not stop it.
func TestEndAndTheOwnersResult(t *testing.T) {
	t.Parallel()
	s := newSpawner(t)
	sc := victims[0].scene(t)
	c, err := s.Start(t.Context(), sc.spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	sc.awaitReady(t)
	if ended, err := tree.End(c.Identity()); !ended || err != nil {
		t.Errorf("ended %t, error %v", ended, err)
	}
	r := c.Wait()
	noneMarked(t, sc.mark)
	if r.Signal != "SIGTERM" || !r.Ended || r.Stopped || r.TimedOut || r.Err != nil || r.Killed < 2 {
		t.Errorf("result %+v, want ended by SIGTERM", r)
	}
}

// What ends by itself, or because its owner stops it, was not ended by another.
func TestOthersDidNotEndIt(t *testing.T) {
	t.Parallel()
	s := newSpawner(t)
	if r := s.Run(t.Context(), Spec{Argv: []string{"sh", "-c", "kill -TERM $$"}}, nil); r.Signal != "SIGTERM" || r.Ended {
		t.Errorf("result %+v, want ended by itself", r)
	}
	sc := victims[0].scene(t)
	c, err := s.Start(t.Context(), sc.spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	sc.awaitReady(t)
	c.Stop(nil)
	if r := c.Wait(); !r.Stopped || r.Ended {
		t.Errorf("result %+v, want stopped by its owner", r)
	}
}

// What waits for its release does not run when it is ended before.
func TestEndBeforeTheRelease(t *testing.T) {
	t.Parallel()
	sc := victims[0].scene(t)
	c, err := newSpawner(t).Start(t.Context(), sc.spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := tree.End(c.Identity()); !ended || err != nil {
		t.Errorf("ended %t, error %v", ended, err)
	}
	c.Release()
	if r := c.Wait(); !errors.Is(r.Err, ErrNotReleased) {
		t.Errorf("result %+v, want that it was not released", r)
	}
	if exists(sc.ready) {
		t.Error("it ran")
	}
}

func TestEndLeavesStrangersAlone(t *testing.T) {
	t.Parallel()
	sc := victims[0].scene(t)
	a := startAgent(t, agentJob{Spec: sc.spec})
	sc.awaitReady(t)
	for name, change := range map[string]func(id *tree.Identity){
		"another boot":        func(id *tree.Identity) { id.Boot = "other" },
		"a number used again": func(id *tree.Identity) { id.Start++ },
		"nobody":              func(id *tree.Identity) { id.PID = 0 },
	} {
		id := a.id
		change(&id)
		if tree.Running(id) {
			t.Errorf("%s: runs", name)
		}
		if ended, err := tree.End(id); ended || err != nil {
			t.Errorf("%s: ended %t, error %v, want nothing", name, ended, err)
		}
		if !tree.Running(a.id) || len(marked(t, sc.mark)) == 0 {
			t.Fatalf("%s: a stranger was ended", name)
		}
	}
	a.kill()
	eventually(t, "it ends with its fermata", func() bool { return !tree.Running(a.id) })
	noneMarked(t, sc.mark)
}

func TestEndOfAHaltedShim(t *testing.T) {
	t.Parallel()
	sc := victims[0].scene(t)
	a := startAgent(t, agentJob{Spec: sc.spec})
	sc.awaitReady(t)
	if err := syscall.Kill(a.id.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the shim is halted", func() bool {
		p, err := tree.Read(a.id.PID)
		return err == nil && p.State == 'T'
	})
	if !tree.Running(a.id) {
		t.Error("a halted one does not run")
	}
	if ended, err := tree.End(a.id); !ended || err != nil {
		t.Errorf("ended %t, error %v", ended, err)
	}
	noneMarked(t, sc.mark)
}

// When fermata is dead and the time that it allowed is too short, the shim goes
// on until nothing is left.
func TestShimKeepsKilling(t *testing.T) {
	for _, v := range victims {
		if !v.storm || !v.sessions && !longtest.On() {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			sc := v.scene(t)
			sc.spec.Bound = time.Nanosecond
			a := startAgent(t, agentJob{Spec: sc.spec})
			sc.awaitReady(t)
			a.kill()
			eventually(t, "the shim is gone", func() bool { return !tree.Running(a.id) })
			noneMarked(t, sc.mark)
		})
	}
}

// A command may close its terminal, go on, and open it again.
func TestPtyIsNotHungUpWhenItIsClosed(t *testing.T) {
	t.Parallel()
	for range longtest.Default(20, 5) {
		c, out := startPty(t, `exec 3>/dev/null <&- >&- 2>&-; sleep 0.02; echo back >/dev/tty; exit 4`)
		if r := c.Wait(); r.ExitCode != 4 || r.Signal != "" || out.Text() != "back\r\n" {
			t.Fatalf("result %+v, output %q", r, out.Text())
		}
	}
}

func TestWriteToACommandThatDoesNotRead(t *testing.T) {
	t.Parallel()
	needs(t, "stty")
	c, out := startPty(t, `stty raw -echo; echo up; read x; test $(head -c 5) = hello && exit 7`)
	defer c.Stop(nil)
	eventually(t, "the command is up", func() bool { return strings.Contains(out.Text(), "up") })
	if err := syscall.Kill(-tree.CommandPID(c.Identity()), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	text := []byte(strings.Repeat("x", 1<<20))
	n, err := c.Write(text)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n >= len(text) {
		t.Fatalf("wrote %d bytes, error %v, want %v", n, err, os.ErrDeadlineExceeded)
	}
	// When it reads again, it can be written to again, and its output comes.
	if err := syscall.Kill(-tree.CommandPID(c.Identity()), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what is left is taken", func() bool {
		_, err := c.Write([]byte("\nhello"))
		return err == nil
	})
	if r := c.Wait(); r.ExitCode != 7 {
		t.Errorf("result %+v, want exit code 7", r)
	}
}

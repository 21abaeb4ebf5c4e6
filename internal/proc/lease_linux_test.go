package proc

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A command ends with the lease, at once, also if it ignores polite signals and has
// left its session.
func TestLeaseEndsACommand(t *testing.T) {
	t.Parallel()
	s, mark := newSpawner(t), newMark()
	s.Lease(time.Now().Add(time.Hour))
	c, err := s.Start(t.Context(), Spec{
		Argv:  []string{"sh", "-c", "trap '' TERM INT HUP; setsid sleep 100." + mark + " & sleep 100." + mark + "; sleep 100." + mark},
		Grace: time.Hour, Bound: 2 * time.Hour,
	}, func(Stream, []byte) {})
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	eventually(t, "both run", func() bool { return len(marked(t, "sleep 100."+mark)) >= 2 })
	s.Lease(time.Now())
	r := c.Wait()
	if r.ExitCode != -1 || r.Signal != "SIGKILL" || r.Err != nil {
		t.Errorf("result %+v, want killed", r)
	}
	if left := marked(t, "sleep 100."+mark); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

// A lease that is extended holds; one that ends does so also for who runs already.
func TestLeaseOfARunningCommand(t *testing.T) {
	t.Parallel()
	s, mark := newSpawner(t), newMark()
	s.Lease(time.Now().Add(time.Hour))
	c, err := s.Start(t.Context(), Spec{Argv: []string{"sleep", "100." + mark}}, func(Stream, []byte) {})
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	eventually(t, "it runs", func() bool { return len(marked(t, "sleep 100."+mark)) == 1 })
	s.Lease(time.Now().Add(2 * time.Hour))
	s.Lease(time.Now())
	if r := c.Wait(); r.Signal != "SIGKILL" {
		t.Errorf("result %+v, want killed", r)
	}
	eventually(t, "it is forgotten", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.running) == 0 })
}

// The shim ends its command although whoever started it is halted.
func TestLeaseEndsWhileTheOwnerIsHalted(t *testing.T) {
	t.Parallel()
	mark := newMark()
	runs := func() bool { return len(marked(t, "sleep 100."+mark)) > 0 }
	// Halting is what shall end the lease: one that a busy machine did not renew in time proves nothing.
	for lease := 500 * time.Millisecond; ; lease *= 2 {
		owner := startAgent(t, agentJob{Spec: Spec{Argv: []string{"sleep", "100." + mark}}, Lease: lease})
		eventually(t, "it runs", func() bool { return runs() || dead(owner.Process.Pid) })
		if err := owner.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the owner is halted", func() bool { return dead(owner.Process.Pid) || halted(owner.Process.Pid) })
		if !runs() && lease < time.Minute {
			continue
		}
		eventually(t, "the command is dead", func() bool { return !runs() })
		if !halted(owner.Process.Pid) {
			t.Error("the owner is not halted")
		}
		return
	}
}

// dead reports whether a process has ended.
func dead(pid int) bool { return state(pid) == "Z" || state(pid) == "" }

// halted reports whether a process was stopped by a signal.
func halted(pid int) bool { return state(pid) == "T" }

// state is the letter that the kernel has for it.
func state(pid int) string {
	stat, _ := os.ReadFile("/proc/" + itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(stat), ") ")
	letter, _, _ := strings.Cut(after, " ")
	return letter
}

// A lease that has ended is not extended for those that ran: another may have begun meanwhile. Lease returns
// when they are dead.
func TestLeaseThatHasEndedIsNotExtended(t *testing.T) {
	t.Parallel()
	s, mark := newSpawner(t), newMark()
	s.Lease(time.Now().Add(time.Hour))
	start := func() *Command {
		c, err := s.Start(t.Context(), Spec{Argv: []string{"sleep", "100." + mark}}, func(Stream, []byte) {})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, waits := start(), start()
	c.Release()
	eventually(t, "it runs", func() bool { return len(marked(t, "sleep 100."+mark)) == 1 })
	s.Lease(time.Now())
	if left := marked(t, "sleep 100."+mark); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	s.Lease(time.Now().Add(time.Hour))
	waits.Release()
	if r := c.Wait(); r.Signal != "SIGKILL" {
		t.Errorf("result %+v, want killed", r)
	}
	if r := waits.Wait(); !errors.Is(r.Err, ErrLeaseOver) || !errors.Is(r.Err, ErrNotReleased) {
		t.Errorf("what had not begun: %+v, want not released", r)
	}
	next := start()
	next.Release()
	eventually(t, "a new one runs", func() bool { return len(marked(t, "sleep 100."+mark)) == 1 })
	next.Stop(nil)
	next.Wait()
}

// A command that is started when the lease is over does not run, also if it was released at once.
func TestLeaseIsOverBeforeTheStart(t *testing.T) {
	s := newSpawner(t)
	for _, over := range []time.Duration{leaseOver, now()} {
		s.lease = over
		ran := filepath.Join(t.TempDir(), "ran")
		if r := s.Run(t.Context(), Spec{Argv: []string{"touch", ran}}, func(Stream, []byte) {}); !errors.Is(r.Err, ErrLeaseOver) || !errors.Is(r.Err, ErrNotReleased) {
			t.Errorf("lease until %v: %+v, want not released", over, r)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Error("it ran")
		}
	}
}

// What is over for good is not extended by what was sent before or is sent later.
func TestDeadlineThatIsOver(t *testing.T) {
	d := deadline{ended: make(chan struct{})}
	d.set(now() + time.Hour)
	d.set(leaseOver)
	d.set(now() + time.Hour)
	if !d.over.Load() {
		t.Fatal("it was extended")
	}
	<-d.ended
}

func TestDeadlineIsTheLatest(t *testing.T) {
	d := deadline{ended: make(chan struct{})}
	d.set(0)
	d.set(now() + time.Hour)
	later := now() + 2*time.Hour
	d.set(later)
	if d.until.Load() != int64(later) || d.over.Load() {
		t.Errorf("until %d, over %v", d.until.Load(), d.over.Load())
	}
	d.set(now())
	<-d.ended
	if !d.over.Load() {
		t.Error("it has ended and is not over")
	}
}

// A command that is started when the lease is over is over from its start, so that no later lease can release it. The shim alone
// could not tell: it would be sent that one, too.
func TestCommandOfALeaseThatIsOver(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		lease time.Duration
		over  bool
	}{
		{"none", 0, false},
		{"to come", now() + time.Hour, false},
		{"not renewed in time", now() - time.Nanosecond, true},
		{"ended", leaseOver, true},
	} {
		s, c := &Spawner{lease: test.lease}, &Command{leases: make(chan time.Duration, 1), over: make(chan struct{})}
		if until := s.track(c); until != test.lease || c.isOver() != test.over {
			t.Errorf("%s: until %v, over %v, want until %v, over %v", test.name, until, c.isOver(), test.lease, test.over)
		}
		s.Lease(time.Now().Add(time.Hour))
		if c.isOver() != test.over {
			t.Errorf("%s: after another lease over is %v", test.name, c.isOver())
		}
	}
}

// A command whose lease ended before it was released is told so instead, by name: no later time can be taken for it.
func TestShimIsToldThatTheLeaseIsOver(t *testing.T) {
	t.Parallel()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	c := &Command{
		shim: &shim{control: to}, released: make(chan struct{}), over: make(chan struct{}), done: make(chan struct{}),
		leases: make(chan time.Duration, 1),
	}
	close(c.over)
	close(c.released)
	sent := make(chan struct{})
	go func() { c.send(); close(sent) }()
	messages := json.NewDecoder(from)
	var first order
	var next release
	if err := errors.Join(messages.Decode(&first), messages.Decode(&next)); err != nil {
		t.Fatal(err)
	}
	if next != (release{Until: leaseOver}) {
		t.Errorf("it was sent %+v", next)
	}
	close(c.done)
	<-sent
	to.Close()
}

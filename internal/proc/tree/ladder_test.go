package tree

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// forest is a set of pretended processes.
type forest struct {
	mu    sync.Mutex
	alive map[int]Process
	heeds map[int]time.Duration // how long after TERM a process ends; absent: it does not
	fears map[int]bool          // may not be signalled
	dies  time.Duration         // how long a process needs to die of KILL
	log   []string
	blind bool // the process table cannot be read
}

func newForest(pids ...int) *forest {
	f := &forest{alive: map[int]Process{}, heeds: map[int]time.Duration{}, fears: map[int]bool{}}
	for _, pid := range pids {
		f.alive[pid] = Process{PID: pid, PGrp: pid, Start: uint64(pid), State: 'S'}
	}
	return f
}

func (f *forest) living() ([]Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blind {
		return nil, errors.New("no /proc")
	}
	return slices.SortedFunc(maps.Values(f.alive), func(a, b Process) int { return a.PID - b.PID }), nil
}

func (f *forest) signal(p Process, sig syscall.Signal) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fears[p.PID] {
		return syscall.EPERM
	}
	f.log = append(f.log, sig.String()+" "+string(rune('0'+p.PID)))
	d, heeds := f.heeds[p.PID]
	switch {
	case sig == syscall.SIGKILL && f.dies > 0:
		time.AfterFunc(f.dies, func() { f.end(p.PID) })
	case sig == syscall.SIGKILL:
		delete(f.alive, p.PID)
	case sig == syscall.SIGTERM && heeds:
		time.AfterFunc(d, func() { f.end(p.PID) })
	}
	return nil
}

func (f *forest) end(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.alive, pid)
}

func (f *forest) ladder(grace, bound time.Duration) *Ladder {
	return &Ladder{
		Grace: grace, Bound: bound, Tree: f.living, Signal: f.signal,
		SignalGroup: func(int, syscall.Signal) error { return nil },
	}
}

func TestLadder(t *testing.T) {
	const grace, bound = 100 * time.Millisecond, 2 * time.Second
	for _, c := range []struct {
		name      string
		forest    func() *forest
		hit, left int
		log       []string
		atLeast   time.Duration
		atMost    time.Duration
	}{
		{name: "nothing there", forest: func() *forest { return newForest() }},
		{
			name: "all heed, the grace is cut short",
			forest: func() *forest {
				f := newForest(1, 2)
				f.heeds[1], f.heeds[2] = 10*time.Millisecond, 20*time.Millisecond
				return f
			},
			hit: 2, log: []string{"terminated 1", "terminated 2"},
			atLeast: 20 * time.Millisecond, atMost: 30 * time.Millisecond,
		},
		{
			name:   "one is deaf and gets the grace first",
			forest: func() *forest { f := newForest(1, 2); f.heeds[1] = time.Millisecond; return f },
			hit:    2, log: []string{"terminated 1", "terminated 2", "killed 2"},
			atLeast: grace, atMost: grace + 10*time.Millisecond,
		},
		{
			name: "a halted one is woken",
			forest: func() *forest {
				f := newForest(1)
				f.alive[1] = Process{PID: 1, State: 'T'}
				f.heeds[1] = time.Millisecond
				return f
			},
			hit: 1, log: []string{"terminated 1", "continued 1"}, atMost: 10 * time.Millisecond,
		},
		{
			name:   "one may not be signalled",
			forest: func() *forest { f := newForest(1, 2); f.fears[2] = true; return f },
			hit:    1, left: 1, log: []string{"terminated 1", "killed 1"},
			atLeast: bound, atMost: bound + 20*time.Millisecond,
		},
		{
			name:   "nothing can be seen",
			forest: func() *forest { f := newForest(1); f.blind = true; return f },
			left:   1, atLeast: bound, atMost: bound + 20*time.Millisecond,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := c.forest()
				began := time.Now()
				hit, left := f.ladder(grace, bound).Run()
				took := time.Since(began)
				if hit != c.hit || left != c.left {
					t.Errorf("hit %d, left %d, want %d and %d", hit, left, c.hit, c.left)
				}
				if took < c.atLeast || took > c.atMost {
					t.Errorf("took %v, want %v to %v", took, c.atLeast, c.atMost)
				}
				if d := cmp.Diff(c.log, f.log); d != "" {
					t.Errorf("signals (-want +got):\n%s", d)
				}
			})
		})
	}
}

// Who was killed and only waits for a processor is waited for longer, but not for ever; who cannot be killed is not.
func TestLadderWaitsForTheDying(t *testing.T) {
	const bound, late = time.Second, 10 * time.Second
	for name, c := range map[string]struct {
		dies  time.Duration
		state byte
		fears bool
		left  int
		took  time.Duration // at least; and not much longer
	}{
		"late":          {3 * time.Second, 'R', false, 0, 3 * time.Second},
		"never":         {time.Hour, 'R', false, 1, bound + late},
		"in the kernel": {time.Hour, 'D', false, 1, bound},
		"a stranger":    {time.Hour, 'R', true, 1, bound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newForest(1)
				f.alive[1] = Process{PID: 1, PGrp: 1, Start: 1, State: c.state}
				f.dies, f.fears[1] = c.dies, c.fears
				l := f.ladder(0, bound)
				l.Late, l.KillFirst = late, func() {} // which counts everybody
				began := time.Now()
				_, left := l.Run()
				if took := time.Since(began); left != c.left || took < c.took || took > c.took+100*time.Millisecond {
					t.Errorf("%d are left after %v, want %d after %v", left, took, c.left, c.took)
				}
				synctest.Wait()
			})
		})
	}
}

// TestLadderLooksTwice has a process that one look at the table misses.
func TestLadderLooksTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForest(1)
		l := f.ladder(0, time.Second)
		looks := 0
		l.Tree = func() ([]Process, error) {
			if looks++; looks == 1 {
				return nil, nil
			}
			return f.living()
		}
		if hit, left := l.Run(); hit != 1 || left != 0 || len(f.alive) != 0 {
			t.Errorf("hit %d, left %d, alive %v, want the one process killed", hit, left, f.alive)
		}
	})
}

// TestLadderBelievesGone has a tree in which no process is seen but some are
// left, which only the parent knows.
func TestLadderBelievesGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForest()
		l := f.ladder(100*time.Millisecond, time.Second)
		gone := make(chan struct{})
		l.Gone = gone
		time.AfterFunc(500*time.Millisecond, func() { close(gone) })
		began := time.Now()
		if _, left := l.Run(); left != 0 || time.Since(began) != 500*time.Millisecond {
			t.Errorf("left %d after %v, want to wait for the parent's word", left, time.Since(began))
		}
	})
}

func TestLadderKillsGroupsAndSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForest(3, 4, 5)
		f.alive[4] = Process{PID: 4, PGrp: 3}
		f.alive[5] = Process{PID: 5, PGrp: 1} // never the group of init
		zombie := Process{PID: 6, PGrp: 7, State: 'Z'}
		l := f.ladder(-1, time.Second)
		var groups []int
		l.SignalGroup = func(g int, sig syscall.Signal) error {
			if sig != syscall.SIGKILL {
				t.Errorf("signal %v to a group", sig)
			}
			groups = append(groups, g)
			return nil
		}
		l.Sweep = func() []int { return []int{5, 9} }
		l.KillFirst = func() { groups = append(groups, -1) }
		l.Tree = func() ([]Process, error) {
			list, err := f.living()
			return append(list, zombie), err
		}
		if hit, left := l.Run(); hit != 4 || left != 0 {
			t.Errorf("hit %d, left %d, want 4 and 0", hit, left)
		}
		if d := cmp.Diff([]int{-1, 3, 7}, groups); d != "" {
			t.Errorf("all, then groups (-want +got):\n%s", d)
		}
	})
}

// When nothing may run any longer, the process table is read after the kill.
func TestLadderKillsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, gone := newForest(1, 2), make(chan struct{})
		l := f.ladder(0, time.Second)
		var order []string
		l.Now, l.Gone = true, gone
		l.KillFirst = sync.OnceFunc(func() {
			order = append(order, "kill")
			f.end(1)
			f.end(2)
			close(gone)
		})
		l.Tree = func() ([]Process, error) {
			order = append(order, "look")
			return f.living()
		}
		if _, left := l.Run(); left != 0 || order[0] != "kill" {
			t.Errorf("left %d, order %v", left, order)
		}
	})
}

// TestLadderTellsFirst has a ladder whose holder may be killed at any instant:
// what it is about to end was told before.
func TestLadderTellsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForest(1, 2)
		f.heeds[1] = time.Millisecond
		time.AfterFunc(50*time.Millisecond, func() { // one more is born in the grace
			f.mu.Lock()
			defer f.mu.Unlock()
			f.alive[3] = Process{PID: 3, PGrp: 3, Start: 3, State: 'S'}
		})
		l := f.ladder(100*time.Millisecond, time.Second)
		l.Found = func(n int) { f.log = append(f.log, "found "+string(rune('0'+n))) }
		l.Run()
		want := []string{"found 2", "terminated 1", "terminated 2", "found 3", "killed 2", "killed 3"}
		if d := cmp.Diff(want, f.log); d != "" {
			t.Errorf("order (-want +got):\n%s", d)
		}
	})
}

// TestLadderAfterAStandstill has a machine that stood still for longer than the
// bound, and a process that needs a moment to die when it goes on.
func TestLadderAfterAStandstill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForest(1)
		l := f.ladder(100*time.Millisecond, time.Second)
		l.Signal = func(p Process, sig syscall.Signal) error {
			if sig == syscall.SIGTERM {
				time.Sleep(time.Minute)
				return nil
			}
			time.AfterFunc(50*time.Millisecond, func() { f.end(p.PID) })
			return nil
		}
		if ended, left := l.Run(); ended != 1 || left != 0 {
			t.Errorf("ended %d, left %d, want it ended", ended, left)
		}
	})
}

// TestLadderCountsTheDead has a process that hangs in the kernel, where no signal
// reaches it.
func TestLadderCountsTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForest(1, 2)
		l := f.ladder(0, time.Second)
		l.Signal = func(p Process, sig syscall.Signal) error {
			if p.PID == 2 {
				return nil
			}
			return f.signal(p, sig)
		}
		if ended, left := l.Run(); ended != 1 || left != 1 {
			t.Errorf("ended %d, left %d, want one of each", ended, left)
		}
	})
}

func TestDescendants(t *testing.T) {
	table := []Process{
		{PID: 2, PPID: 1},
		{PID: 3, PPID: 2},
		{PID: 7, PPID: 5},
		{PID: 5, PPID: 3},
		{PID: 4, PPID: 1},
		{PID: 8, PPID: 8}, // a loop, which a table read in motion may show
		{PID: 9, PPID: 8},
	}
	for _, c := range []struct {
		roots, want []int
	}{
		{[]int{2}, []int{3, 5, 7}},
		{[]int{4}, nil},
		{[]int{3, 4}, []int{5, 7}},
		{[]int{2, 3}, []int{5, 7}},
		{[]int{8}, []int{9}},
		{nil, nil},
	} {
		var got []int
		for _, p := range Descendants(table, c.roots...) {
			got = append(got, p.PID)
		}
		slices.Sort(got)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("descendants of %v (-want +got):\n%s", c.roots, d)
		}
	}
}

func TestDead(t *testing.T) {
	for _, c := range []struct {
		p    Process
		want bool
	}{
		{Process{State: 'S', Threads: 1}, false},
		{Process{State: 'Z', Threads: 1}, true},
		{Process{State: 'Z', Threads: 2}, false}, // its first thread has ended
		{Process{State: 'X'}, true},
	} {
		if got := c.p.Dead(); got != c.want {
			t.Errorf("%+v dead: %v, want %v", c.p, got, c.want)
		}
	}
}

// bomb is a forest at the limit of processes in which everybody forks whenever there is
// room, each child in a group of its own, and nobody exits.
type bomb struct {
	*forest
	halted map[int]bool
	next   int
}

const bombLimit = 100

func newBomb() *bomb {
	b := &bomb{forest: newForest(), halted: map[int]bool{}, next: 2}
	b.alive[1] = Process{PID: 1, PGrp: 1, State: 'R'}
	b.grow()
	return b
}

// grow lets those who are not halted fork as often as the limit allows.
func (b *bomb) grow() {
	running := 0
	for pid := range b.alive {
		if !b.halted[pid] {
			running++
		}
	}
	for running > 0 && len(b.alive) < bombLimit {
		b.alive[b.next] = Process{PID: b.next, PGrp: b.next, State: 'R'}
		b.next++
	}
}

func (b *bomb) signal(p Process, sig syscall.Signal) error {
	if _, ok := b.alive[p.PID]; !ok {
		return syscall.ESRCH
	}
	switch sig {
	case syscall.SIGSTOP:
		b.halted[p.PID] = true
	case syscall.SIGKILL:
		delete(b.alive, p.PID)
	}
	b.grow()
	return nil
}

// TestLadderOfABomb ends it only if it is halted first.
func TestLadderOfABomb(t *testing.T) {
	for _, halt := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBomb()
			l := b.ladder(100*time.Millisecond, 2*time.Second)
			l.Signal, l.Halt = b.signal, halt
			ended, left := l.Run()
			if halt && (ended != bombLimit || left != 0) {
				t.Errorf("halted: %d ended, %d left", ended, left)
			}
			if !halt && left == 0 {
				t.Error("this bomb is too weak to show anything")
			}
		})
	}
}

// TestFewAreNotHalted leaves an ordinary command alone.
func TestFewAreNotHalted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForest(1, 2, 3)
		l := f.ladder(0, time.Second)
		l.Halt = true
		l.Run()
		if slices.ContainsFunc(f.log, func(s string) bool { return strings.HasPrefix(s, syscall.SIGSTOP.String()) }) {
			t.Errorf("signals: %v", f.log)
		}
	})
}

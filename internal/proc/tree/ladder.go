package tree

import (
	"errors"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Ladder ends a set of processes: TERM, a grace, then KILL until nothing is
// left or the bound is over. It is used by the shim on its descendants, by
// fermata on orphans of a lost shim, and by Reclaim.
type Ladder struct {
	Grace, Bound time.Duration

	// Late is how much longer the ladder waits for processes that were killed and are not dead yet, because
	// on a busy machine they wait for a processor.
	Late time.Duration

	// Tree lists what is still there. Zombies among it do not count, but tell of
	// the groups in which others may live too shortly to be seen.
	Tree func() ([]Process, error)

	// Signal and signalGroup are the system's, except in tests.
	Signal      func(p Process, sig syscall.Signal) error
	SignalGroup func(pgrp int, sig syscall.Signal) error

	// Halt says that many processes are halted before they are killed: see halt.
	Halt bool

	// KillFirst, if not nil, is the first thing that is done to kill.
	KillFirst func()

	// Now says that nothing may run any longer than it must: KillFirst does not wait until its victims
	// are counted, for which the whole process table is read. Those that it ended are not counted.
	Now bool

	// Sweep, if not nil, kills by a quicker way what it can, and says whom. It
	// is for processes that live shorter than a look at the process table: it is
	// called before one, again and again while it finds new processes.
	Sweep func() []int

	// Gone is closed when nothing is left. Nil means that two empty lists in a
	// row say so: one alone may have missed a process that was just being created.
	Gone <-chan struct{}

	// Found, if not nil, hears how many processes are known before any of them
	// is signalled, and again when there are more.
	Found func(n int)

	hit   map[int]bool // who was signalled, by process number
	known map[int]bool // who was seen
}

// Many processes are more than an ordinary command has.
const Many = 32

const (
	firstRound = time.Millisecond
	lastRound  = 16 * time.Millisecond

	lookInterval = 4 * time.Millisecond // a look reads the whole process table

	haltLimit = time.Second

	standstill = 100 * time.Millisecond // longer than a look ever takes
)

// Run climbs down the ladder. It returns the number of processes that it ended
// and of those that are left, which is zero if all went well.
func (l *Ladder) Run() (ended, left int) {
	if l.isGone() {
		return 0, 0
	}

	l.hit, l.known = make(map[int]bool), make(map[int]bool)
	budget := l.Bound
	var end time.Time // of being late
	if l.Grace > 0 && l.step(syscall.SIGTERM, l.Grace, &budget) {
		return len(l.hit), 0
	}
	if l.Grace <= 0 && l.KillFirst != nil {
		if l.Now {
			l.KillFirst()
		}
		l.count()
	}
	if l.Halt {
		l.halt(min(haltLimit, budget/4))
	}
	for wait := firstRound; ; wait = min(2*wait, lastRound) {
		if l.step(syscall.SIGKILL, wait, &budget) {
			return len(l.hit), 0
		}
		if budget > 0 {
			continue
		}
		if end.IsZero() {
			end = time.Now().Add(l.Late)
		}
		rest, err := l.living()
		if err == nil && time.Now().Before(end) && l.dying(rest) {
			budget = lastRound
			continue
		}
		for _, p := range rest {
			delete(l.hit, p.PID)
		}
		return len(l.hit), max(len(rest), 1)
	}
}

// dying reports whether nothing but the lack of a processor can keep these from being dead when they are killed.
func (l *Ladder) dying(rest []Process) bool {
	return !slices.ContainsFunc(rest, func(p Process) bool {
		err := l.Signal(p, syscall.SIGKILL)
		return p.State == 'D' || err != nil && !errors.Is(err, syscall.ESRCH)
	})
}

// halt stops many processes, one generation after the other, until no new process is found
// or the time is up. Who forks at the limit of processes gets no room by this, because
// who is halted still counts; to kill them one by one would make room for others.
func (l *Ladder) halt(limit time.Duration) {
	halted := make(map[int]bool)
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		living, err := l.living()
		if err != nil || len(living) < Many {
			return
		}
		l.see(living)
		before := len(halted)
		for _, p := range living {
			if !halted[p.PID] && l.Signal(p, syscall.SIGSTOP) == nil {
				halted[p.PID] = true
			}
		}
		if len(halted) == before {
			return
		}
	}
}

// count notes who is there before KillFirst ends them all unseen. Who is still there
// at the end is not counted.
func (l *Ladder) count() {
	living, _ := l.living() // what cannot be seen cannot be counted
	l.see(living)
	for _, p := range living {
		l.hit[p.PID] = true
	}
}

// step signals all, waits, and reports whether all are gone. It takes what it
// needed off the time that is left, but little for a standstill of the whole
// machine: the others could not die meanwhile.
func (l *Ladder) step(sig syscall.Signal, wait time.Duration, budget *time.Duration) bool {
	began := time.Now()
	wait = min(wait, *budget)
	l.round(sig)
	gone := l.await(wait)
	*budget -= min(time.Since(began), wait+standstill)
	return gone
}

// round signals everything that lives now.
func (l *Ladder) round(sig syscall.Signal) {
	if sig == syscall.SIGKILL && l.KillFirst != nil {
		l.KillFirst()
	}
	if sig == syscall.SIGKILL {
		l.sweep()
	}
	all, err := l.Tree()
	if err != nil {
		all = nil // the next round may see more; the bound ends the trying
	}
	groups := groupsOf(all)
	living := alive(all)
	l.see(living)
	for _, p := range living {
		if l.Signal(p, sig) == nil {
			l.hit[p.PID] = true
		}
		if p.State == 'T' && sig != syscall.SIGKILL {
			_ = l.Signal(p, syscall.SIGCONT) // a halted process cannot heed
		}
	}
	if sig != syscall.SIGKILL {
		return
	}

	for _, g := range groups {
		_ = l.SignalGroup(g, syscall.SIGKILL)
	}
	l.sweep()
}

// sweep sweeps until no new process is found. In a storm most processes wait for a
// processor, where they can be killed: each pass leaves a fraction, if it follows
// the one before at once.
func (l *Ladder) sweep() {
	const maxPasses = 50 // the budget of the ladder is not looked at meanwhile
	for range maxPasses {
		if l.Sweep == nil || l.isGone() {
			return
		}
		before := len(l.hit)
		for _, pid := range l.Sweep() {
			l.hit[pid] = true
		}
		if len(l.hit) == before {
			return // those that are dying take their time
		}
		runtime.Gosched() // the dead must be waited for, or the next pass gets slow
	}
}

func (l *Ladder) living() ([]Process, error) {
	all, err := l.Tree()
	return alive(all), err
}

// see notes whom the ladder is about to signal.
func (l *Ladder) see(living []Process) {
	before := len(l.known)
	for _, p := range living {
		l.known[p.PID] = true
	}
	if l.Found != nil && len(l.known) > before {
		l.Found(len(l.known))
	}
}

// groupsOf lists the groups of processes. To kill them is what wins against a fork
// storm: a group is killed as one, so none of its members can fork away in between.
// All members of a descendant's group are descendants: groups do not cross
// sessions, and the sessions were made by descendants. The number of a group is not
// used again while one of them waits to be reaped.
func groupsOf(list []Process) []int {
	var groups []int
	for _, p := range list {
		if p.PGrp > 1 {
			groups = append(groups, p.PGrp)
		}
	}
	slices.Sort(groups) // there may be thousands, each of its own
	return slices.Compact(groups)
}

// await waits up to d for everything to be gone.
func (l *Ladder) await(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var look <-chan time.Time
	if l.Gone == nil {
		ticker := time.NewTicker(lookInterval)
		defer ticker.Stop()
		look = ticker.C
	}
	for !l.isGone() {
		select {
		case <-l.Gone:
		case <-look:
		case <-timer.C:
			return l.isGone()
		}
	}
	return true
}

// isGone reports whether nothing is left.
func (l *Ladder) isGone() bool {
	if l.Gone == nil {
		return l.looksEmpty()
	}

	select {
	case <-l.Gone:
		return true
	default:
		return false
	}
}

// looksEmpty reports whether two looks in a row see nothing alive.
func (l *Ladder) looksEmpty() bool {
	for range 2 {
		living, err := l.living()
		if err != nil || len(living) > 0 {
			return false
		}
	}
	return true
}

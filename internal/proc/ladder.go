package proc

import (
	"slices"
	"syscall"
	"time"
)

// process is one row of the system's process table. Number and start time
// together name a process for good.
type process struct {
	pid, ppid, pgrp, session int
	state                    byte
	threads                  int
	start                    uint64
}

// dead reports whether p only waits for its parent to notice. A process whose
// first thread has ended while others run looks like a zombie but is none.
func (p process) dead() bool {
	return (p.state == 'Z' && p.threads <= 1) || p.state == 'X'
}

// descendants returns those processes of table that descend from one of roots,
// without the roots themselves.
func descendants(table []process, roots ...int) []process {
	children := make(map[int][]process, len(table))
	for _, p := range table {
		children[p.ppid] = append(children[p.ppid], p)
	}

	var found []process
	seen := make(map[int]bool, len(roots))
	for _, r := range roots {
		seen[r] = true
	}
	for len(roots) > 0 {
		next := roots[0]
		roots = roots[1:]
		for _, p := range children[next] {
			if seen[p.pid] {
				continue
			}
			seen[p.pid] = true
			found = append(found, p)
			roots = append(roots, p.pid)
		}
	}
	return found
}

// alive returns list without the dead, in place.
func alive(list []process) []process {
	return slices.DeleteFunc(list, process.dead)
}

// ladder ends a set of processes: TERM, a grace, then KILL until nothing is
// left or the bound is over. It is used by the shim on its descendants, by
// fermata on orphans of a lost shim, and by Reclaim.
type ladder struct {
	grace, bound time.Duration

	// tree lists what is still there. Zombies among it do not count, but tell of
	// the groups in which others may live too shortly to be seen.
	tree func() ([]process, error)

	// signal and signalGroup are the system's, except in tests.
	signal      func(p process, sig syscall.Signal) error
	signalGroup func(pgrp int, sig syscall.Signal) error

	// strike, if not nil, is the first thing that is done to kill.
	strike func()

	// sweep, if not nil, kills by a quicker way what it can, and says whom. It
	// is for processes that live shorter than a look at the process table.
	sweep func() []int

	// gone is closed when nothing is left. Nil means that two empty lists in a
	// row say so: one alone may have missed a process that was just being born.
	gone <-chan struct{}

	// found, if not nil, hears how many processes are known before any of them
	// is signalled, and again when there are more.
	found func(n int)

	hit   map[int]bool // who was signalled, by process number
	known map[int]bool // who was seen
}

const (
	firstRound = time.Millisecond
	lastRound  = 16 * time.Millisecond

	lookInterval = 4 * time.Millisecond // a look reads the whole process table

	standstill = 100 * time.Millisecond // longer than a look ever takes
)

// run climbs down the ladder. It returns the number of processes that it ended
// and of those that are left, which is zero if all went well.
func (l *ladder) run() (ended, left int) {
	if l.isGone() {
		return 0, 0
	}

	l.hit, l.known = make(map[int]bool), make(map[int]bool)
	budget := l.bound
	if l.grace > 0 && l.step(syscall.SIGTERM, l.grace, &budget) {
		return len(l.hit), 0
	}
	for wait := firstRound; ; wait = min(2*wait, lastRound) {
		if l.step(syscall.SIGKILL, wait, &budget) {
			return len(l.hit), 0
		}
		if budget > 0 {
			continue
		}
		rest, _ := l.living()
		for _, p := range rest {
			delete(l.hit, p.pid)
		}
		return len(l.hit), max(len(rest), 1)
	}
}

// step signals all, waits, and reports whether all are gone. It takes what it
// needed off the time that is left, but little for a standstill of the whole
// machine: the others could not die meanwhile.
func (l *ladder) step(sig syscall.Signal, wait time.Duration, budget *time.Duration) bool {
	began := time.Now()
	wait = min(wait, *budget)
	l.round(sig)
	gone := l.await(wait)
	*budget -= min(time.Since(began), wait+standstill)
	return gone
}

// round signals everything that lives now.
func (l *ladder) round(sig syscall.Signal) {
	if sig == syscall.SIGKILL && l.strike != nil {
		l.strike()
	}
	all, err := l.tree()
	if err != nil {
		all = nil // the next round may see more; the bound ends the trying
	}
	groups := groupsOf(all)
	living := alive(all)
	l.see(living)
	for _, p := range living {
		if l.signal(p, sig) == nil {
			l.hit[p.pid] = true
		}
		if p.state == 'T' && sig != syscall.SIGKILL {
			_ = l.signal(p, syscall.SIGCONT) // a halted process cannot heed
		}
	}
	if sig != syscall.SIGKILL {
		return
	}

	for _, g := range groups {
		_ = l.signalGroup(g, syscall.SIGKILL)
	}
	if l.sweep == nil {
		return
	}
	for _, pid := range l.sweep() {
		l.hit[pid] = true
	}
}

func (l *ladder) living() ([]process, error) {
	all, err := l.tree()
	return alive(all), err
}

// see notes whom the ladder is about to signal.
func (l *ladder) see(living []process) {
	before := len(l.known)
	for _, p := range living {
		l.known[p.pid] = true
	}
	if l.found != nil && len(l.known) > before {
		l.found(len(l.known))
	}
}

// groupsOf lists the groups of processes. To kill them is what wins against a fork
// storm: a group is killed as one, so none of its members can fork away in between.
// All members of a descendant's group are descendants: groups do not cross
// sessions, and the sessions were made by descendants. The number of a group is not
// used again while one of them waits to be buried.
func groupsOf(list []process) []int {
	var groups []int
	for _, p := range list {
		if p.pgrp > 1 {
			groups = append(groups, p.pgrp)
		}
	}
	slices.Sort(groups) // there may be thousands, each of its own
	return slices.Compact(groups)
}

// await waits up to d for everything to be gone.
func (l *ladder) await(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var look <-chan time.Time
	if l.gone == nil {
		ticker := time.NewTicker(lookInterval)
		defer ticker.Stop()
		look = ticker.C
	}
	for !l.isGone() {
		select {
		case <-l.gone:
		case <-look:
		case <-timer.C:
			return l.isGone()
		}
	}
	return true
}

// isGone reports whether nothing is left.
func (l *ladder) isGone() bool {
	if l.gone == nil {
		return l.looksEmpty()
	}

	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// looksEmpty reports whether two looks in a row see nothing alive.
func (l *ladder) looksEmpty() bool {
	for range 2 {
		living, err := l.living()
		if err != nil || len(living) > 0 {
			return false
		}
	}
	return true
}

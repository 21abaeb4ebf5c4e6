package tree

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// EndOrphans ends what a dead shim left to us. It returns how many processes
// were ended and how many are left.
func EndOrphans(id Identity, grace, bound time.Duration) (killed, left int) {
	if id.Start == 0 {
		return 0, 0 // nothing distinguishes them from our other children
	}

	living := func() ([]Process, error) { return orphans(id) }
	l := &Ladder{
		Grace: grace, Bound: bound, Late: lateBound, Tree: living, Signal: Signal, SignalGroup: SignalGroup,
		KillFirst: func() { killCgroup(id.Cgroup) },
	}
	defer removeCgroup(id.Cgroup)
	return l.Run()
}

// orphans lists the living processes that fell to us from dead shims, with their
// descendants, and reaps the dead ones one by one: waiting for any child would
// steal those of others. We know them from three things: they are our children;
// they are not in our session, while shims and ordinary children are; and they
// are not older than the shim. What could not die with its PID namespace has not
// fallen to us, and is still below the shim.
func orphans(id Identity) ([]Process, error) {
	table, err := Table()
	if err != nil {
		return nil, err
	}

	session, err := unix.Getsid(0)
	if err != nil {
		return nil, err
	}

	var found []Process
	var roots []int
	for _, p := range table {
		if p.PID == id.PID && p.Start == id.Start {
			roots = append(roots, p.PID)
		}
		if p.PPID != os.Getpid() || p.Session == session || p.Start < id.Start {
			continue
		}
		if p.Dead() {
			_, _ = unix.Wait4(p.PID, nil, unix.WNOHANG, nil)
			continue
		}
		found = append(found, p)
		roots = append(roots, p.PID)
	}
	return alive(append(found, Descendants(table, roots...)...)), nil
}

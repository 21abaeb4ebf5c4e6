package proc

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// endOrphans ends what a dead shim left to us. It returns how many processes
// were ended and how many are left.
func endOrphans(id Identity, grace, bound time.Duration) (killed, left int) {
	if id.Start == 0 {
		return 0, 0 // nothing can be told from our other children
	}

	living := func() ([]process, error) { return orphans(id) }
	l := &ladder{grace: grace, bound: bound, tree: living, signal: signalProcess, signalGroup: signalGroup}
	return l.run()
}

// orphans lists the living processes that fell to us from dead shims, with their
// descendants, and reaps the dead ones one by one: waiting for any child would
// steal those of others. We know them from three things: they are our children;
// they are not in our session, while shims and ordinary children are; and they
// are not older than the shim. What could not die with its PID namespace has not
// fallen to us, and is still below the shim.
func orphans(id Identity) ([]process, error) {
	table, err := processTable()
	if err != nil {
		return nil, err
	}

	session, err := unix.Getsid(0)
	if err != nil {
		return nil, err
	}

	var found []process
	var roots []int
	for _, p := range table {
		if p.pid == id.PID && p.start == id.Start {
			roots = append(roots, p.pid)
		}
		if p.ppid != os.Getpid() || p.session == session || p.start < id.Start {
			continue
		}
		if p.dead() {
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
			continue
		}
		found = append(found, p)
		roots = append(roots, p.pid)
	}
	return alive(append(found, descendants(table, roots...)...)), nil
}

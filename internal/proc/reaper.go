//go:build unix

package proc

import (
	"errors"
	"sync"
	"syscall"
)

// reaper is the only one who waits for children in the shim.
type reaper struct {
	leader int
	exited chan struct{} // closed when the command itself has ended
	gone   chan struct{} // closed when there is no child, so no descendant

	waiting sync.Mutex // held while the dead are waited for, and by who wants them to stay

	mu  sync.Mutex
	end *exitStatus // guarded by mu
}

func newReaper(leader int) *reaper {
	return &reaper{leader: leader, exited: make(chan struct{}), gone: make(chan struct{})}
}

// run waits for children until there is none.
func (r *reaper) run() {
	defer close(r.gone)
	for {
		err := awaitDead()
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || !r.reap() {
			return
		}
	}
}

// reap waits for those that are dead, but not for ever: in a storm there are always
// more. It reports whether there may be others.
func (r *reaper) reap() bool {
	const most = 64
	r.waiting.Lock()
	defer r.waiting.Unlock()
	for range most {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, reapFlags, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return false
		}
		if pid <= 0 {
			return true
		}
		r.note(pid, ws)
	}
	return true
}

func (r *reaper) note(pid int, ws syscall.WaitStatus) {
	if pid == r.leader {
		r.setEnd(ws)
	}
}

// setEnd keeps how the command ended. The number of a reaped process may be used
// again by a later descendant, so only the first counts.
func (r *reaper) setEnd(ws syscall.WaitStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end != nil {
		return
	}

	r.end = &exitStatus{Code: ws.ExitStatus()}
	if ws.Signaled() {
		r.end.Signal = int(ws.Signal())
	}
	close(r.exited)
}

// status is how the command ended, or nil.
func (r *reaper) status() *exitStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end
}

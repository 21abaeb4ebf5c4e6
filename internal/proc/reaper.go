//go:build unix

package proc

import (
	"errors"
	"sync"
	"syscall"
)

// reaper is the only one who waits for children in the shim.
type reaper struct {
	leader int           // only run uses it
	exited chan struct{} // closed when the command itself has ended
	gone   chan struct{} // closed when there is no child, so no descendant

	mu  sync.Mutex
	end *exitStatus // guarded by mu
}

func newReaper() *reaper {
	return &reaper{exited: make(chan struct{}), gone: make(chan struct{})}
}

// run waits for children until there is none. leader is the first of them.
func (r *reaper) run(leader int) {
	defer close(r.gone)
	r.leader = leader
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		r.note(pid, ws)
		for { // in a storm there are more, and waiting for each takes long
			pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
			if err != nil || pid <= 0 {
				break
			}
			r.note(pid, ws)
		}
	}
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

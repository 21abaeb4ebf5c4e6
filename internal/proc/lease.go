//go:build unix

package proc

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A process that may run commands only until a time, because another machine may do
// so from then on, sets it by Spawner.Lease, again and again. The shims keep it: they end
// their commands when it is over, also if this process has been halted and cannot.

// now is the time since boot, which is the same for this process and its shims. It goes
// on while the machine is suspended, where the system knows such a clock.
func now() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(leaseClock, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// Lease says that commands may run until a time, those that run and those to come. They
// are killed then, unless Lease was called again. Without a call there is no such time.
func (s *Spawner) Lease(until time.Time) {
	at := now() + time.Until(until)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = at
	for c := range s.running {
		c.extend(at)
	}
}

// track notes that a command runs, and returns until when it may.
func (s *Spawner) track(c *Command) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = make(map[*Command]struct{})
	}
	s.running[c] = struct{}{}
	return s.lease
}

func (s *Spawner) untrack(c *Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, c)
}

// extend passes a lease on. If an earlier one was not sent yet, it replaces it.
func (c *Command) extend(until time.Duration) {
	select {
	case <-c.leases:
	default:
	}
	c.leases <- until // there is room: callers hold the spawner's mutex
}

// A deadline is the lease as the shim knows it.
type deadline struct {
	until atomic.Int64 // as now; 0 if there is none
	over  atomic.Bool  // closed is closed
	once  sync.Once
	ended chan struct{} // closed when the lease is over
}

// leaseCheck is how often the clock is read: a timer alone would stand still while
// the machine is suspended.
const leaseCheck = 100 * time.Millisecond

func (d *deadline) set(until time.Duration) {
	if until == 0 {
		return
	}
	d.until.Store(int64(until))
	d.once.Do(func() { go d.watch() }) // ended by the end of this process
}

func (d *deadline) watch() {
	for {
		left := time.Duration(d.until.Load()) - now()
		if left <= 0 {
			d.over.Store(true)
			close(d.ended)
			return
		}
		time.Sleep(min(left, leaseCheck))
	}
}

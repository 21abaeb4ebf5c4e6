//go:build unix

package proc

import (
	"maps"
	"slices"
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

// leaseOver is the time of a lease that has ended.
const leaseOver time.Duration = 1

// leaseWait is how long Lease waits for commands to end.
const leaseWait = 2 * time.Second

// Lease says that commands may run until a time, those that run and those to come. They
// are killed then, unless Lease was called again. Without a call there is no such time.
//
// With a time that is over, all that were started before are killed, whatever is said later, and Lease returns
// when they are dead, or after leaseWait.
func (s *Spawner) Lease(until time.Time) {
	left := time.Until(until)
	if left <= 0 {
		s.endLease()
		return
	}
	at := now() + left
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = at
	for c := range s.running {
		c.extend(at)
	}
}

func (s *Spawner) endLease() {
	s.mu.Lock()
	s.lease = leaseOver
	ended := slices.Collect(maps.Keys(s.running))
	for _, c := range ended {
		c.overOnce.Do(func() { close(c.over) })
	}
	s.mu.Unlock()
	timer := time.NewTimer(leaseWait)
	defer timer.Stop()
	for _, c := range ended {
		select {
		case <-c.done:
		case <-timer.C:
			return // the shims go on killing
		}
	}
}

// track notes that a command runs, and returns until when it may. What is started when that is over is
// never released.
func (s *Spawner) track(c *Command) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = make(map[*Command]struct{})
	}
	s.running[c] = struct{}{}
	if s.lease != 0 && s.lease <= now() {
		c.overOnce.Do(func() { close(c.over) })
	}
	return s.lease
}

func (s *Spawner) untrack(c *Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, c)
}

// extend passes a lease on. If an earlier one was not sent yet, it replaces it. What was said
// to be over stays so: see send.
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
	over  atomic.Bool  // ended is closed, or about to be
	once  sync.Once    // begins to watch
	end   sync.Once
	ended chan struct{} // closed when the lease is over
}

// leaseCheck is how often the clock is read: a timer alone would stand still while
// the machine is suspended.
const leaseCheck = 100 * time.Millisecond

// set notes a new time. One that is over for good ends the lease at once: it must not be missed because
// another time follows.
func (d *deadline) set(until time.Duration) {
	switch until {
	case 0:
	case leaseOver:
		d.finish()
	default:
		d.until.Store(int64(until))
		d.once.Do(func() { go d.watch() }) // ended by the end of this process
	}
}

func (d *deadline) finish() {
	d.end.Do(func() {
		d.over.Store(true)
		close(d.ended)
	})
}

func (d *deadline) watch() {
	for {
		left := time.Duration(d.until.Load()) - now()
		if left <= 0 {
			d.finish()
			return
		}
		time.Sleep(min(left, leaseCheck))
	}
}

//go:build unix && !linux

package tree

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Group gives the process group of leader as one entry: Signal to it goes to the
// whole group.
func Group(leader int) ([]Process, error) {
	if errors.Is(unix.Kill(-leader, 0), unix.ESRCH) {
		return nil, nil
	}
	return []Process{{PID: leader, PGrp: leader}}, nil
}

// Signal signals the group of p.
func Signal(p Process, sig syscall.Signal) error { return unix.Kill(-p.PGrp, sig) }

// SignalGroup does nothing: Signal has done it.
func SignalGroup(int, syscall.Signal) error { return nil }

// KillAll does nothing: there are no PID namespaces.
func KillAll(bool) {}

// CanKillAll is false: see KillAll.
func CanKillAll(bool) bool { return false }

// SweepChildren finds nothing here.
func SweepChildren() []int { return nil }

// Identify cannot tell a process from a later one with the same number here, so
// the identity stays without a start time and Reclaim does nothing.
func Identify(*Identity) error { return nil }

// IdentifyLeader does nothing, for the same reason.
func IdentifyLeader(*Identity) error { return nil }

// EndOrphans does nothing: orphans do not fall to fermata here.
func EndOrphans(Identity, time.Duration, time.Duration) (killed, left int) { return 0, 0 }

// End cannot tell a process from a later one with the same number here.
func End(Identity) (bool, error) { return false, errors.ErrUnsupported }

// Running cannot either.
func Running(Identity) bool { return false }

// CommandPID is the number of the process that a command began with.
func CommandPID(id Identity) int { return id.Leader }

// NewMark returns none: nothing looks for it here.
func NewMark() uint64 { return 0 }

// SetMark does nothing.
func SetMark(uint64) error { return nil }

// Reclaim does nothing on this system: see Identify.
func Reclaim(Identity) (killed int, err error) { return 0, nil }

// Cgroup does not exist on this system: it is always nil.
type Cgroup struct{}

// NewCgroup returns nil.
func NewCgroup() *Cgroup { return nil }

// Dir returns nothing.
func (c *Cgroup) Dir() string { return "" }

// Kill does nothing.
func (c *Cgroup) Kill() {}

// Remove does nothing.
func (c *Cgroup) Remove() {}

// EndStorm does nothing.
func EndStorm(Identity) int { return 0 }

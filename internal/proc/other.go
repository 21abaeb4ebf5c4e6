//go:build unix && !linux

package proc

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What remains on systems without subreaper, /proc and PID namespaces: the
// lifeline, the wait before release, the stop ladder, and the command's process
// group as the tree. A daemon that leaves its session escapes; so do the orphans
// of a killed shim, and Reclaim finds none of them.

// canAdopt says that orphans do not fall to us: the reaper's word is not enough.
const canAdopt = false

func ownExecutable() (string, error) { return os.Executable() }

func becomeSubreaper() error { return nil }

func prepareShim() error { return nil }

func hideFromTracers() {}

func dup2(from, to int) error { return os.NewSyscallError("dup2", unix.Dup2(from, to)) }

func shimAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func namespaceAttr(*syscall.SysProcAttr) {}

// PIDNamespaces reports that there are none.
func PIDNamespaces() bool { return false }

func userNamespaceAttr(*syscall.SysProcAttr) error { return errors.ErrUnsupported }

func inheritNoRights() error { return nil }

func enterNamespace() error { return errors.ErrUnsupported }

// commandTree gives the command's process group as one entry: signals to it go to
// the whole group.
func commandTree(leader int) ([]process, error) {
	if errors.Is(unix.Kill(-leader, 0), unix.ESRCH) {
		return nil, nil
	}
	return []process{{pid: leader, pgrp: leader}}, nil
}

func signalProcess(p process, sig syscall.Signal) error { return unix.Kill(-p.pgrp, sig) }

func killAll() {}

func sweepChildren() []int { return nil }

func signalGroup(int, syscall.Signal) error { return nil }

// identifyShim cannot tell a process from a later one with the same number here,
// so the identity stays without a start time and Reclaim does nothing.
func identifyShim(*Identity) error { return nil }

func identifyLeader(*Identity) error { return nil }

func endOrphans(Identity, time.Duration, time.Duration) (killed, left int) { return 0, 0 }

// End cannot tell a process from a later one with the same number here.
func End(Identity) (bool, error) { return false, errors.ErrUnsupported }

// Running cannot either.
func Running(Identity) bool { return false }

// CommandPID is the number of the process that a command began with.
func CommandPID(id Identity) int { return id.Leader }

// Reclaim does nothing on this system: see Identity.
func Reclaim(Identity) (killed int, err error) { return 0, nil }

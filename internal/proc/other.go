//go:build unix && !linux

package proc

import (
	"errors"
	"os"
	"syscall"

	"github.com/fermata-agent/fermata/internal/proc/tree"
	"golang.org/x/sys/unix"
)

// What remains on systems without subreaper, /proc and PID namespaces: the
// lifeline, the wait before release, the stop ladder, and the command's process
// group as the tree. A daemon that leaves its session escapes; so do the orphans
// of a killed shim, and Reclaim finds none of them.

// canAdopt says that orphans do not fall to us: the reaper's word is not enough.
const canAdopt = false

// needsStage says that every command needs a stage: the tree is known by its leader, so that one must be there
// before the command is recorded.
const needsStage = true

// leaseClock is the clock of leases.
const leaseClock = unix.CLOCK_MONOTONIC

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

// commandTree gives the command's process group as one entry.
func commandTree(leader int) ([]tree.Process, error) { return tree.Group(leader) }

func reserveProcesses() {}

func reserveProcessesOf(int) {}

func withReserve(start func() error) error { return start() }

func hurry() {}

func scopeSignals() bool { return false }

func bornIn(*syscall.SysProcAttr, *tree.Cgroup) {}

package proc

import (
	"errors"
	"math"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"github.com/fermata-agent/fermata/internal/proc/tree"
	"golang.org/x/sys/unix"
)

// canAdopt says that orphans fall to the nearest subreaper, so that a shim without
// a child has no descendant.
const canAdopt = true

// needsStage says that every command needs a stage.
const needsStage = false

// leaseClock is the clock of leases.
const leaseClock = unix.CLOCK_BOOTTIME

// ownExecutable returns a path that still leads to this very program when the
// file on disk was replaced.
func ownExecutable() (string, error) { return "/proc/self/exe", nil }

// becomeSubreaper makes orphaned descendants our children.
func becomeSubreaper() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// prepareShim makes this process fit to supervise. Only the first step is
// needed, and it cannot fail on a kernel younger than 3.4.
func prepareShim() error {
	if err := becomeSubreaper(); err != nil {
		return err
	}

	// What fermata's parent left open by mistake is no business of the command.
	_ = unix.CloseRange(keptFDs, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	return nil
}

// hideFromTracers keeps other processes of the same user from looking into this
// one or steering it. It ends with exec. Where /proc shows no user what he may not
// trace (hidepid), fermata would not see us either, and must.
func hideFromTracers() {
	if _, err := tree.Read(1); err != nil {
		return
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

func dup2(from, to int) error {
	return os.NewSyscallError("dup3", unix.Dup3(from, to, 0))
}

// shimAttr says how a shim is started. It stays in our session, which is how its
// orphans are recognised (see orphans), but in a group of its own, so that a
// key pressed at the terminal does not reach it. The signal on our death wakes a
// halted shim; it is harmless when it comes too early, as it does when only the
// thread that started the shim ends.
func shimAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGCONT}
}

// commandTree lists the tree below the shim that calls it.
func commandTree(int) ([]tree.Process, error) { return tree.Below() }

// reserveProcesses lowers the limit of processes for the calling process and its
// descendants, so that the command cannot use up what shim and fermata need.
func reserveProcesses() { reserveProcessesOf(0) }

// reserveProcessesOf does it for a process that was just started, 0 for the calling one. Its
// limit is lower than this process's already if it was started by withReserve; now it cannot
// raise it again.
func reserveProcessesOf(pid int) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return
	}
	limit.Cur -= min(64, limit.Cur/8)
	limit.Max = limit.Cur
	_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil)
}

// limitMu is held while the limit of this process is lower than it was.
var limitMu sync.Mutex

// withReserve calls start, which makes a user namespace, with a lower limit of
// processes. What is in a user namespace can have, all together, no more than the limit
// of who made it (Linux 5.14): so a command in one cannot use up what those outside need.
func withReserve(start func() error) error {
	limitMu.Lock()
	defer limitMu.Unlock()
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return start()
	}
	lower := limit
	lower.Cur -= min(64, limit.Cur/8)
	_ = unix.Setrlimit(unix.RLIMIT_NPROC, &lower)
	err := start()
	_ = unix.Setrlimit(unix.RLIMIT_NPROC, &limit)
	if errors.Is(err, unix.EAGAIN) { // the user's other processes have taken the reserve
		return start()
	}
	return err
}

// hurry makes the calling thread come first, where the user may do so.
func hurry() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20) }

// scopeSignals limits the signals of the calling thread, and of what it starts from
// now on, to what it starts: with that one call kills the whole tree of a command
// (see tree.KillAll). It reports whether it is in force, and proves it on its own
// parent: the call would reach all of the user's processes otherwise.
func scopeSignals() bool {
	const landlockScopes = 6
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	parent := os.Getppid()
	if errno != 0 || version < landlockScopes || parent <= 1 || unix.Kill(parent, 0) != nil {
		return false
	}
	if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return false
	}
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_SIGNAL}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return false
	}
	defer unix.Close(int(fd))

	_, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
	return errno == 0 && errors.Is(unix.Kill(parent, 0), unix.EPERM)
}

// bornIn starts a process in a cgroup, if there is one.
func bornIn(attr *syscall.SysProcAttr, group *tree.Cgroup) {
	attr.CgroupFD, attr.UseCgroupFD = group.FD()
}

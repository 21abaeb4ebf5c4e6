package proc

import (
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// canAdopt says that orphans fall to the nearest subreaper, so that a shim without
// a child has no descendant.
const canAdopt = true

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
// one or steering it. It ends with exec. Where /proc shows nobody what he may not
// trace (hidepid), fermata would not see us either, and must.
func hideFromTracers() {
	if _, err := readProcess(1); err != nil {
		return
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

func dup2(from, to int) error {
	return os.NewSyscallError("dup3", unix.Dup3(from, to, 0))
}

// shimAttr says how a shim is started. It stays in our session, which is how its
// orphans are told from it (see orphans), but in a group of its own, so that a
// key pressed at the terminal does not reach it. The signal on our death wakes a
// halted shim; it is harmless when it comes too early, as it does when only the
// thread that started the shim ends.
func shimAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGCONT}
}

// commandTree lists the tree below the shim that calls it.
func commandTree(int) ([]process, error) { return treeBelow() }

// identifyShim fills in what names the shim for good.
func identifyShim(id *Identity) error {
	shim, err := readProcess(id.PID)
	if err != nil {
		return err
	}
	id.Start = shim.start
	id.Boot, err = bootID()
	return err
}

// identifyLeader does the same for the leader, if it is known, and makes sure
// that the shim still lives.
func identifyLeader(id *Identity) error {
	if len(shimOf(*id)) == 0 {
		return ErrShimLost
	}
	if id.Leader == 0 {
		return nil
	}

	leader, err := readProcess(id.Leader)
	if err != nil {
		return err
	}
	id.LeaderStart = leader.start
	return nil
}

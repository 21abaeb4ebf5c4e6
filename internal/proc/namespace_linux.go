package proc

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaceAttr adds a new PID namespace, and a mount namespace for its /proc.
// An ordinary user gets them inside a user namespace in which he keeps his ids.
func namespaceAttr(attr *syscall.SysProcAttr) {
	attr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	if os.Geteuid() == 0 {
		return
	}

	keepIDs(attr)
}

// userNamespaceAttr asks for what Spec.UserNamespace promises.
func userNamespaceAttr(attr *syscall.SysProcAttr) error {
	attr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	keepIDs(attr)
	return nil
}

// keepIDs adds a user namespace in which the process keeps its ids and may mount.
func keepIDs(attr *syscall.SysProcAttr) {
	uid, gid := os.Geteuid(), os.Getegid()
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // or exec would take the right to mount
}

// enterNamespace gives the new namespace its own /proc. Without it every look at
// the process table would show the wrong numbers.
func enterNamespace() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("process is number %d and not the first of its namespace", os.Getpid())
	}
	// Ours stay inside. Those of others still come and go: a spare waits for long,
	// must not hold their file systems busy, and its command shall see the new ones.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts inside: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	scatterNumbers()

	// The command must not inherit the right to mount. Rights belong to a thread,
	// and this one will start the stage.
	runtime.LockOSThread()
	if err := inheritNoRights(); err != nil {
		return fmt.Errorf("give up rights: %w", err)
	}
	return nil
}

// scatterNumbers lets the numbers of processes begin anywhere. Programs leave
// theirs in files, and later ones take whoever has such a number for them: small
// ones belong to something in every namespace, and in ours to the system. Not every
// kernel can do it.
func scatterNumbers() {
	const least, most = 300, 30_000 // what the system keeps for itself, and what all have
	_ = os.WriteFile("/proc/sys/kernel/ns_last_pid", strconv.AppendInt(nil, least+rand.Int64N(most-least), 10), 0)
}

// inheritNoRights empties the inheritable set of the calling thread, and with it
// the ambient one.
func inheritNoRights() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // 64 rights in two halves
	if err := unix.Capget(&head, &sets[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}

	sets[0].Inheritable, sets[1].Inheritable = 0, 0
	return os.NewSyscallError("capset", unix.Capset(&head, &sets[0]))
}

// PIDNamespaces tries whether this kernel and user can have a PID namespace. It
// starts a process.
func PIDNamespaces() bool {
	attr := shimAttr()
	namespaceAttr(attr)
	p, err := os.StartProcess("/proc/self/exe", []string{shimName, kind{pids: true}.part(partProbe)}, &os.ProcAttr{
		Env: shimEnv(), Files: []*os.File{nil, nil, nil}, Sys: attr,
	})
	if err != nil {
		return false
	}

	state, err := p.Wait()
	return err == nil && state.Success()
}

package sandbox

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Probe finds out what this machine can do. The first call takes a few
// milliseconds, the others nothing.
func Probe() Ability { return probe() }

var probe = sync.OnceValue(func() Ability {
	a := Ability{System: "linux", Landlock: landlockVersion(), Seccomp: haveFilter && seccompWorks()}
	a.Sockets = a.Seccomp && canServeSockets()
	a.outside, _ = mountNamespace()
	var why error
	if os.Geteuid() == 0 {
		why = tryNamespaces(0, unix.CLONE_NEWNS|unix.CLONE_NEWIPC)
		a.Mounts = why == nil
	}
	if !a.Mounts {
		why = tryNamespaces(unix.CLONE_NEWUSER, unix.CLONE_NEWNS|unix.CLONE_NEWIPC)
		a.Mounts, a.ByUser = why == nil, why == nil
	}
	if why != nil {
		a.MountsError = why.Error()
	}
	return a
})

// landlockVersion asks the kernel itself: the list of security modules is not
// always mounted, and a container may forbid the calls.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// seccompWorks asks whether a filter could end a process.
func seccompWorks() bool {
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// tryNamespaces forks into the first kind of namespaces and moves on into the
// second, which also makes a mount, as the real thing does: some systems hand out
// user namespaces in which nothing is allowed. What is then executed does not
// exist; to fail there is success.
func tryNamespaces(cloned, moved uintptr) error {
	attr := &syscall.SysProcAttr{Cloneflags: cloned, Unshareflags: moved}
	if cloned&unix.CLONE_NEWUSER != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
	_, err := syscall.ForkExec("/proc/self/nothing", []string{"nothing"}, &syscall.ProcAttr{Sys: attr})
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return err
}

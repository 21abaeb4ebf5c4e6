package sandbox

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// keptRights are the capabilities that root keeps: they concern files and ids, and
// files are confined by other means.
const keptRights = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
	1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE

// dropRights gives up all other capabilities, also for what is executed later: with
// no_new_privs no process can gain privileges; this applies to root too.
func dropRights() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // 64 rights in two halves
	if err := unix.Capget(&head, &sets[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}

	if sets[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
		if err := dropBounds(); err != nil {
			return err
		}
	}
	for i, keep := range []uint32{keptRights, 0} {
		sets[i].Effective &= keep
		sets[i].Permitted &= keep
		sets[i].Inheritable = 0 // and with it the ambient ones
	}
	if os.Geteuid() != 0 {
		sets = [2]unix.CapUserData{}
	}
	return os.NewSyscallError("capset", unix.Capset(&head, &sets[0]))
}

// dropBounds lowers the bound of what can be had by executing a file.
func dropBounds() error {
	for right := uintptr(0); right < 64; right++ {
		if keptRights&(1<<right) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return nil // the kernel knows no more of them
		}
		if err != nil {
			return os.NewSyscallError("prctl", err)
		}
	}
	return nil
}

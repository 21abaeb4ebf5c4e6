//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// haveFilter says that there is a filter for this architecture.
const haveFilter = true

// deniedCalls fail with EPERM. Confined programs have no business with them.
var deniedCalls = []uint32{
	// other processes
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	// mounts and namespaces
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_TREE,
	unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, sysOpenTreeAttr,
	// a file by its number goes around the mount that it is reached by
	unix.SYS_OPEN_BY_HANDLE_AT,
	// ways into the kernel that are often broken, or that do calls unseen
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_LSM_SET_SELF_ATTR,
	// the machine
	unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_NFSSERVCTL, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
}

const (
	sysOpenTreeAttr = 467
	lastCall        = 471 // what is younger does not exist for the command

	namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
)

// filterCalls installs the filter for the calling thread. It returns the file at
// which the shim serves calls, or nil: then there are no local sockets but pairs.
func (p *plan) filterCalls() (*os.File, error) {
	if p.Sockets {
		fd, err := install(filterProgram(p.Network, true), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
		if errors.Is(err, unix.EINVAL) { // Linux before 5.19
			fd, err = install(filterProgram(p.Network, true), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
		}
		if err == nil {
			return os.NewFile(uintptr(fd), "calls"), nil
		}
		if !errors.Is(err, unix.EBUSY) { // our own calls are served by another filter already
			return nil, os.NewSyscallError("seccomp", err)
		}
	}
	_, err := install(filterProgram(p.Network, false), 0)
	return nil, os.NewSyscallError("seccomp", err)
}

// install installs a filter for the calling thread.
func install(prog []unix.SockFilter, flags uintptr) (int, error) {
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(prog)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// filterProgram is the filter. What it does not name is allowed. served says that
// the shim serves the calls of local sockets; without it there are none.
func filterProgram(network, served bool) []unix.SockFilter {
	var f filter
	f.load(offsetArch)
	f.ifNotEqual(nativeArch, actKill) // its calls have other numbers
	f.load(offsetNr)
	f.ifAbove(lastCall, actMissing) // also the x32 calls, which have a high bit
	for _, nr := range slices.Concat(deniedCalls, deniedHere) {
		f.ifEqual(nr, actDeny)
	}

	// The flags of clone3 are in memory, where a filter cannot look. Everybody
	// falls back to clone.
	f.ifEqual(unix.SYS_CLONE3, actMissing)
	f.onCall(unix.SYS_CLONE, 0, func() { f.ifAny(namespaceFlags, actDeny) })
	f.onCall(unix.SYS_UNSHARE, 0, func() { f.ifAny(namespaceFlags|unix.CLONE_NEWTIME, actDeny) })
	f.onCall(unix.SYS_PRLIMIT64, 0, func() { f.ifNotEqual(0, actDeny) }) // other processes
	f.onCall(unix.SYS_IOCTL, 1, func() {
		f.ifEqual(unix.TIOCSTI, actDeny) // typing on behalf of the user
		f.ifEqual(tiocLinux, actDeny)
	})
	f.onCall(unix.SYS_SOCKETPAIR, 0, func() {
		f.ifNotEqual(unix.AF_UNIX, actDeny)
		f.ifNotConnected(actDeny)
	})
	f.onCall(unix.SYS_SOCKET, 0, func() {
		if network {
			for _, family := range []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
				f.ifEqual(family, actAllow)
			}
		}
		if !served {
			f.end(actDeny)
			return
		}
		f.ifNotEqual(unix.AF_UNIX, actDeny)
		f.ifNotConnected(actDeny)
	})
	f.onlyConnect()
	if served {
		f.ifEqual(unix.SYS_CONNECT, actServe)
		f.ifEqual(unix.SYS_LISTEN, actServe)
	}
	f.end(actAllow)
	return f.prog
}

// onlyConnect leaves connect as the one way to make a connection: TCP Fast Open would connect when
// something is sent, to an address that was not checked, or was checked long ago. Programs fall
// back to connect, as on a kernel without it.
func (f *filter) onlyConnect() {
	for _, call := range []struct{ nr, flags uint32 }{
		{unix.SYS_SENDTO, 3},
		{unix.SYS_SENDMSG, 2},
		{unix.SYS_SENDMMSG, 3},
	} {
		f.onCall(call.nr, call.flags, func() { f.ifAny(unix.MSG_FASTOPEN, actUnsupported) })
	}
	f.onCall(unix.SYS_SETSOCKOPT, 1, func() {
		f.ifNotEqual(unix.IPPROTO_TCP, actAllow)
		f.load(offsetArgs + 8*2)
		f.ifEqual(unix.TCP_FASTOPEN_CONNECT, actUnsupported)
	})
}

const tiocLinux = 0x541c // pastes into a console

// What a filter answers.
const (
	actAllow   = unix.SECCOMP_RET_ALLOW
	actKill    = unix.SECCOMP_RET_KILL_PROCESS
	actDeny    = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	actMissing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	actServe   = unix.SECCOMP_RET_USER_NOTIF

	actUnsupported = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
)

// Where the kernel puts what a filter can see.
const (
	offsetNr   = 0
	offsetArch = 4
	offsetArgs = 16 // eight bytes each, the low half first
)

// filter is a program in the making. Each test that succeeds ends it, so that
// nothing jumps further than the next test.
type filter struct{ prog []unix.SockFilter }

func (f *filter) add(code uint16, k uint32, jt, jf uint8) {
	f.prog = append(f.prog, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

// load gets a word to test.
func (f *filter) load(offset uint32) { f.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }

func (f *filter) end(action uint32) { f.add(unix.BPF_RET|unix.BPF_K, action, 0, 0) }

func (f *filter) ifEqual(k, action uint32) {
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k, 0, 1)
	f.end(action)
}

func (f *filter) ifNotEqual(k, action uint32) {
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k, 1, 0)
	f.end(action)
}

func (f *filter) ifAbove(k, action uint32) {
	f.add(unix.BPF_JMP|unix.BPF_JGT|unix.BPF_K, k, 0, 1)
	f.end(action)
}

// ifAny tests whether one of the bits is set.
func (f *filter) ifAny(bits, action uint32) {
	f.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, bits, 0, 1)
	f.end(action)
}

// ifNotConnected tests whether the second argument is a type of sockets that can
// send to any address, without connect.
func (f *filter) ifNotConnected(action uint32) {
	const types = 0xf // the other bits are flags
	f.load(offsetArgs + 8)
	f.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, types, 0, 0)
	f.ifEqual(unix.SOCK_STREAM, actAllow)
	f.ifEqual(unix.SOCK_SEQPACKET, actAllow)
	f.end(action)
}

// onCall tests an argument of one call, which is allowed if body does not end it.
// Only the low half is looked at: the arguments of these calls are ints.
func (f *filter) onCall(nr uint32, arg uint32, body func()) {
	at := len(f.prog)
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, nr, 0, 0)
	f.load(offsetArgs + 8*arg)
	body()
	f.end(actAllow)
	f.prog[at].Jf = uint8(len(f.prog) - at - 1)
}

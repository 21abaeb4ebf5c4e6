//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is a system call that a filter has handed to the shim: the struct
// seccomp_notif of the kernel.
type notification struct {
	id    uint64
	pid   uint32 // of the thread
	flags uint32
	data  struct {
		nr   int32
		arch uint32
		ip   uint64
		args [6]uint64
	}
}

// The kernel's other structs.
type (
	notificationAnswer struct {
		id    uint64
		val   int64
		errno int32
		flags uint32
	}
	notificationFile struct {
		id         uint64
		flags      uint32
		srcfd      uint32
		newfd      uint32
		newfdFlags uint32
	}
)

const (
	ioctlNotifValid = 0x40082102
	ioctlNotifAddFD = 0x40182103
)

func ioctl(fd int, request uintptr, arg unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
	if errno != 0 {
		return errno
	}
	return nil
}

// pollNotifications reports whether a call waits, or whether there will be none
// any more. It does not block, as receiving does.
func pollNotifications(listener int) (ready, end bool) {
	p := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	if _, err := unix.Poll(p, 0); err != nil && !errors.Is(err, unix.EINTR) {
		return false, true
	}
	ready = p[0].Revents&unix.POLLIN != 0
	return ready, !ready && p[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
}

func (n *notification) receive(listener int) error {
	*n = notification{}
	return ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n))
}

// valid reports whether the thread still waits for an answer. As long as it does
// its number is not used again.
func (n *notification) valid(listener int) bool {
	id := n.id
	return ioctl(listener, ioctlNotifValid, unsafe.Pointer(&id)) == nil
}

// answer ends the call. If the thread is gone there is no one to report to.
func (n *notification) answer(listener int, err error) {
	a := notificationAnswer{id: n.id}
	var errno unix.Errno
	switch {
	case errors.As(err, &errno):
		a.errno = -int32(errno)
	case err != nil:
		a.errno = -int32(unix.EACCES)
	}
	_ = ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a))
}

// socket returns a duplicate of the socket that the call is about.
func (n *notification) socket(listener int) (int, error) {
	pid := int(n.pid)
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil { // it is not the first thread of its process
		if pid, err = tgid(pid); err != nil {
			return -1, unix.EACCES
		}
		if process, err = unix.PidfdOpen(pid, 0); err != nil {
			return -1, unix.EACCES
		}
	}
	defer unix.Close(process)
	if !n.valid(listener) {
		return -1, unix.EINTR // the number may belong to another process now
	}

	fd, err := unix.PidfdGetfd(process, int(int32(n.data.args[0])), 0)
	if err != nil {
		return -1, err
	}
	if kind, err := kindOf(fd); err != nil || kind != unix.S_IFSOCK {
		_ = unix.Close(fd)
		return -1, unix.ENOTSOCK
	}
	return fd, nil
}

// address reads the address of a connect.
func (n *notification) address() ([]byte, error) {
	size := int(int32(n.data.args[2]))
	if size < 0 || size > unix.SizeofSockaddrAny+16 { // the kernel's sockaddr_storage
		return nil, unix.EINVAL
	}
	if size == 0 {
		return nil, nil
	}
	b := make([]byte, size)
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(size)
	remote := []unix.RemoteIovec{{Base: uintptr(n.data.args[1]), Len: size}}
	got, err := unix.ProcessVMReadv(int(n.pid), local, remote, 0)
	if err == nil && got < size {
		err = unix.EFAULT
	}
	return b, err
}

// replace puts fd in the place of the call's socket, with the same flag.
func (n *notification) replace(listener, fd int) error {
	f := notificationFile{
		id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD,
		srcfd: uint32(fd), newfd: uint32(n.data.args[0]), newfdFlags: n.closeOnExec(),
	}
	return ioctl(listener, ioctlNotifAddFD, unsafe.Pointer(&f))
}

// closeOnExec returns O_CLOEXEC if the call's socket has it.
func (n *notification) closeOnExec() uint32 {
	name := "/proc/" + strconv.Itoa(int(n.pid)) + "/fdinfo/" + strconv.Itoa(int(int32(n.data.args[0])))
	text, _ := os.ReadFile(name)
	for line := range strings.Lines(string(text)) {
		value, ok := strings.CutPrefix(line, "flags:")
		if !ok {
			continue
		}
		flags, err := strconv.ParseUint(strings.TrimSpace(value), 8, 32)
		if err == nil {
			return uint32(flags) & unix.O_CLOEXEC
		}
	}
	return 0
}

// rawConnect is connect with an address that was not parsed.
func rawConnect(socket int, address []byte) error {
	if len(address) == 0 {
		return unix.EINVAL
	}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)))
	runtime.KeepAlive(address)
	if errno != 0 {
		return errno
	}
	return nil
}

// canServeSockets tries whether a filter can hand calls to another process, which
// only one of the filters of a process can, and whether that may then look into
// the caller.
func canServeSockets() bool {
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil {
		switch strings.TrimSpace(string(scope)) {
		case "2":
			if os.Geteuid() != 0 {
				return false
			}
		case "3":
			return false
		}
	}
	works := make(chan bool)
	go func() {
		runtime.LockOSThread() // and it ends with this goroutine, with its filter
		works <- tryListener()
	}()
	return <-works
}

// tryListener installs a filter that allows everything.
func tryListener() bool {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return false
	}
	fd, err := install([]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: actAllow}}, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

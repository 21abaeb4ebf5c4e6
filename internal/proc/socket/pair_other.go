//go:build unix && !linux

package socket

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// newPair holds the lock that keeps others from forking before the two are
// closed on exec.
func newPair() ([2]int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	return fds, err
}

const receiveFlags = 0

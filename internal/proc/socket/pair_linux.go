package socket

import "golang.org/x/sys/unix"

func newPair() ([2]int, error) {
	return unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}

const receiveFlags = unix.MSG_CMSG_CLOEXEC

package remote

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// peer returns the number of the process at the other end, 0 if that is not known. The error is ErrUser unless it has our user.
func peer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil {
		return 0, cerr
	}
	if err != nil {
		return 0, err
	}
	if int(cred.Uid) != os.Geteuid() {
		return 0, ErrUser
	}
	return int(cred.Pid), nil
}

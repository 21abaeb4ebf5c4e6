package remote

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sameUser returns ErrUser unless the process at the other end has our user.
func sameUser(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil {
		return cerr
	}
	if err != nil {
		return err
	}
	if int(cred.Uid) != os.Geteuid() {
		return ErrUser
	}
	return nil
}

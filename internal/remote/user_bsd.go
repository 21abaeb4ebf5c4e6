//go:build darwin || freebsd

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
	var cred *unix.Xucred
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptXucred(int(fd), 0, unix.LOCAL_PEERCRED)
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

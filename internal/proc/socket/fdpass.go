//go:build unix

package socket

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Pair is like os.Pipe, and can also carry files.
func Pair() (ours, theirs *os.File, err error) {
	fds, err := newPair()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	_ = unix.SetNonblock(fds[0], true) // so that waiting for it takes no thread
	return os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs"), nil
}

// Send sends bytes, and a file unless it is nil, over a socket.
func Send(socket int, b []byte, f *os.File) error {
	var rights []byte
	if f != nil {
		rights = unix.UnixRights(int(f.Fd()))
	}
	for {
		err := unix.Sendmsg(socket, b, rights, nil, 0)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("sendmsg", err)
		}
	}
}

// Receive returns the next bytes from a socket, none at the end, and a file if one
// came with them.
func Receive(socket *os.File) (b []byte, f *os.File, err error) {
	conn, err := socket.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	buf, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	var n, used int
	waitErr := conn.Read(func(fd uintptr) bool {
		n, used, _, _, err = unix.Recvmsg(int(fd), buf, rights, receiveFlags)
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	if err = errors.Join(waitErr, err); err != nil {
		return nil, nil, err
	}
	return buf[:n], fileIn(rights[:used]), nil
}

// fileIn returns the file in a control message, or nil.
func fileIn(control []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) == 0 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil
	}
	for _, fd := range fds[1:] { // a command can send more than one
		_ = unix.Close(fd)
	}
	unix.CloseOnExec(fds[0])
	_ = unix.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "served")
}

//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"

	"github.com/fermata-agent/fermata/internal/secrets"
	"golang.org/x/sys/unix"
)

// connectOther connects a socket of another family, which only commands with
// network access have.
func (s *socketServer) connectOther(socket int, address []byte) error {
	if s.refuses(socket, address) {
		return unix.EACCES
	}
	err := connectWaiting(socket, address)
	if s.refuses(socket, address) { // it was registered meanwhile
		_ = unix.Shutdown(socket, unix.SHUT_RDWR)
		return unix.EACCES
	}
	return err
}

// refuses reports whether a socket must not be connected to an address: a server of
// fermata listens there.
func (s *socketServer) refuses(socket int, address []byte) bool {
	kind, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TYPE)
	to, ok := parseAddress(address)
	if err != nil || kind != unix.SOCK_STREAM || !ok {
		return false
	}
	return slices.ContainsFunc(s.homes, func(home path) bool { return secrets.Home(home).Refuses(to, isOwn) })
}

// parseAddress reads an address of the Internet as the kernel does.
func parseAddress(b []byte) (secrets.Address, bool) {
	if len(b) < 4 {
		return secrets.Address{}, false
	}
	const shortestV6 = 24 // without the scope
	port := binary.BigEndian.Uint16(b[2:])
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_INET && len(b) >= 8:
		return secrets.Address{IP: b[4:8], Port: port}, true
	case family == unix.AF_INET6 && len(b) >= shortestV6:
		return secrets.Address{IP: secrets.Plain(b[8:24]), Port: port}, true
	}
	return secrets.Address{}, false
}

// isOwn reports whether an IP address is one of this machine: it can be bound to. An IPv6
// address that needs a scope counts as one.
func isOwn(ip []byte) bool {
	var family int
	var at unix.Sockaddr
	switch len(ip) {
	case 4:
		family, at = unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte(ip)}
	case 16:
		if ip[0] == 0xfe && ip[1]&0xc0 == 0x80 {
			return true
		}
		family, at = unix.AF_INET6, &unix.SockaddrInet6{Addr: [16]byte(ip)}
	default:
		return false
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return !errors.Is(err, unix.EAFNOSUPPORT) // unknown is refused
	}
	defer unix.Close(fd)
	return !errors.Is(unix.Bind(fd, at), unix.EADDRNOTAVAIL)
}

// connectWaiting connects a socket, and waits if the command would.
func connectWaiting(socket int, address []byte) error {
	flags, err := unix.FcntlInt(uintptr(socket), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	if flags&unix.O_NONBLOCK != 0 {
		return rawConnect(socket, address)
	}

	// Waiting must not take a thread. The flag is seen by the command, too, but
	// only by threads that use the socket before it is connected.
	if err := unix.SetNonblock(socket, true); err != nil {
		return err
	}
	defer func() { _ = unix.SetNonblock(socket, false) }()
	if err := rawConnect(socket, address); !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	if err := awaitWritable(socket); err != nil {
		return err
	}
	status, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && status != 0 {
		err = unix.Errno(status)
	}
	return err
}

// awaitWritable waits until a connection is made, or has failed.
func awaitWritable(socket int) error {
	fd, err := unix.FcntlInt(uintptr(socket), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()

	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Write(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(p, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
}

// Package sockdiag asks the kernel who listens on local sockets, without connecting to them.
package sockdiag

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Listener is a local socket that is listened on.
type Listener struct {
	Inode uint32 // of the socket itself
	File  File   // that it is bound to; zero if its name is abstract
	Name  string // that it was bound with; an abstract one begins with a zero byte
}

// A File is a file as the kernel reports it here.
type File struct{ Device, Inode uint32 }

// FileOf returns the File of an open file.
func FileOf(fd int) (File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return File{}, os.NewSyscallError("fstat", err)
	}
	const minorBits = 20 // in the kernel
	return File{unix.Major(st.Dev)<<minorBits | unix.Minor(st.Dev), uint32(st.Ino)}, nil
}

// The messages of the kernel: unix_diag_req, and unix_diag_msg with attributes.
const (
	byFamily    = 20 // SOCK_DIAG_BY_FAMILY
	listening   = 1 << 10
	showName    = 1
	showFile    = 2
	attrName    = 0
	attrFile    = 1
	answerSize  = 16
	requestSize = unix.SizeofNlMsghdr + 24
)

// Listeners lists the local sockets of this network namespace that are listened on.
func Listeners() ([]Listener, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	e := binary.NativeEndian
	request := e.AppendUint32(nil, requestSize)
	request = e.AppendUint16(request, byFamily)
	request = e.AppendUint16(request, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request = append(request, make([]byte, 8)...) // number, process
	request = append(request, unix.AF_UNIX, 0, 0, 0)
	request = e.AppendUint32(request, listening)
	request = e.AppendUint32(request, 0) // all inodes
	request = e.AppendUint32(request, showName|showFile)
	request = append(request, make([]byte, 8)...) // cookie
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	var list []Listener
	for b := make([]byte, 64<<10); ; {
		n, _, err := unix.Recvfrom(fd, b, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("recvfrom", err)
		}
		messages, err := syscall.ParseNetlinkMessage(b[:n])
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return list, nil
			case unix.NLMSG_ERROR:
				return nil, unix.ENOTSUP
			case byFamily:
				if len(m.Data) >= answerSize {
					list = append(list, parse(m.Data))
				}
			}
		}
	}
}

// parse reads an answer.
func parse(b []byte) Listener {
	e := binary.NativeEndian
	l := Listener{Inode: e.Uint32(b[4:])}
	for b = b[answerSize:]; len(b) >= unix.SizeofRtAttr; {
		size := int(e.Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			break
		}
		value := b[unix.SizeofRtAttr:size]
		switch e.Uint16(b[2:]) {
		case attrName:
			l.Name = string(value)
		case attrFile:
			if len(value) >= 8 {
				l.File = File{Inode: e.Uint32(value), Device: e.Uint32(value[4:])}
			}
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return l
}

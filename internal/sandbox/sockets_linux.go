//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/fermata-agent/fermata/internal/sandbox/sockdiag"
	"golang.org/x/sys/unix"
)

// Behind local sockets are programs that run what they are asked to: container
// engines, service managers, editors, terminal multiplexers, fermata itself. A
// confined command may therefore connect only to sockets of its own processes. No
// file permission says so, and a filter of system calls cannot look at addresses;
// so the filter hands connect and listen to the shim, which does them itself:
//
//   - listen: on a duplicate of the command's socket. The kernel notes the shim as
//     the process that listens, and that note cannot be forged by anybody else.
//   - connect: on a new socket that the command cannot reach. If the kernel says
//     that the process at the other end is this shim, the new socket takes the
//     place of the command's; otherwise it is closed and the call fails. So that
//     others do not notice, the kernel is asked first whether the socket at that
//     file or name is one of ours (see sockdiag.Own); where it does not know, or
//     another one takes that place meanwhile, a listener sees a connection that
//     is closed at once.
//
// What counts is who listens, not the name: it makes no difference whether a
// socket was bound later, renamed, linked, is abstract, or is reached through a
// relative name or /proc. Every argument is read once and nothing of it is left to
// the kernel to read again, so that changing memory or descriptors meanwhile gains
// nothing. Datagram sockets would need the same for each message; the filter
// refuses them.
//
// With network access a command may connect to other machines, and to servers on this
// one, but not to those of fermata (see package secrets): whoever can read a token or find
// a hole there would leave the sandbox. So the shim makes these connections, too.
type socketServer struct {
	calls chan struct{} // holds a place for each call that is being served
	homes []path        // whose servers must not be reached
	own   sockdiag.Own
}

// maxSocketCalls bounds how many calls are served at once; others wait.
const maxSocketCalls = 128

// serveSockets answers the calls that come from f until no process of the command
// is left.
func serveSockets(raw json.RawMessage, f *os.File) {
	var p plan
	if json.Unmarshal(raw, &p) != nil {
		return
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	s := &socketServer{calls: make(chan struct{}, maxSocketCalls), homes: p.Homes, own: sockdiag.NewOwn()}
	for {
		var n notification
		var end bool
		err := conn.Read(func(fd uintptr) bool {
			var ready bool
			ready, end = pollNotifications(int(fd))
			if ready {
				err = n.receive(int(fd))
			}
			return ready || end
		})
		if err != nil && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ENOENT) || end {
			return
		}
		if n.id == 0 {
			continue // who made the call was killed meanwhile
		}
		s.calls <- struct{}{}
		go func() {
			defer func() { <-s.calls }()
			_ = conn.Control(func(fd uintptr) { n.answer(int(fd), s.serve(int(fd), &n)) })
		}()
	}
}

// serve carries one call out and returns its error.
func (s *socketServer) serve(listener int, n *notification) error {
	socket, err := n.socket(listener)
	if err != nil {
		return err
	}
	defer unix.Close(socket)

	if n.data.nr == unix.SYS_LISTEN {
		s.own.Add(socket) // before others can find it
		return unix.Listen(socket, int(int32(n.data.args[1])))
	}
	address, err := n.address()
	if err != nil {
		return err
	}
	family, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err
	}
	if family != unix.AF_UNIX {
		return s.connectOther(socket, address)
	}
	return s.connectLocal(listener, n, socket, address)
}

// connectLocal connects to a socket of the command's own processes.
func (s *socketServer) connectLocal(listener int, n *notification, old int, address []byte) error {
	const head = 2 // the family
	if len(address) <= head || len(address) > unix.SizeofSockaddrUnix || binary.NativeEndian.Uint16(address) != unix.AF_UNIX {
		return unix.EINVAL
	}
	if err := connectable(old); err != nil {
		return err
	}

	name := address[head:]
	if name[0] != 0 { // a path, else an abstract name
		path, _, _ := bytes.Cut(name, []byte{0})
		fd, err := n.open(string(path))
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if file, err := sockdiag.FileOf(fd); err == nil && s.own.OthersListen(func(l sockdiag.Listener) bool { return l.File == file }) {
			return unix.EACCES
		}
		address = append(address[:head:head], "/proc/self/fd/"+strconv.Itoa(fd)+"\x00"...)
	}

	if name[0] == 0 && s.own.OthersListen(func(l sockdiag.Listener) bool { return l.Name == string(name) }) {
		return unix.EACCES
	}

	flags, err := unix.FcntlInt(uintptr(old), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	fresh, err := freshSocket(old)
	if err != nil {
		return err
	}
	defer unix.Close(fresh)
	if err := n.connectSoon(listener, fresh, address, flags&unix.O_NONBLOCK != 0); err != nil {
		return err
	}
	if !peerIsOurs(fresh) {
		return unix.EACCES
	}
	if err := unix.SetNonblock(fresh, flags&unix.O_NONBLOCK != 0); err != nil {
		return err
	}
	return n.replace(listener, fresh)
}

// connectable reports what the kernel would about a socket that cannot be
// connected. One that has a name of its own would lose it, so it is refused.
func connectable(socket int) error {
	if _, err := unix.Getpeername(socket); err == nil {
		return unix.EISCONN
	}
	if listens, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || listens != 0 {
		return unix.EINVAL
	}
	own, err := unix.Getsockname(socket)
	if u, ok := own.(*unix.SockaddrUnix); err != nil || ok && u.Name != "" && u.Name != "@" { // what no name looks like
		return unix.EACCES
	}
	return nil
}

// freshSocket makes a socket like another one.
func freshSocket(like int) (int, error) {
	kind, err := unix.GetsockoptInt(like, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if v, err := unix.GetsockoptInt(like, unix.SOL_SOCKET, unix.SO_PASSCRED); err == nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, v)
	}
	if v, err := unix.GetsockoptInt(like, unix.SOL_SOCKET, unix.SO_SNDBUF); err == nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, v/2) // the kernel doubles it
	}
	for _, option := range []int{unix.SO_SNDTIMEO, unix.SO_RCVTIMEO} {
		if v, err := unix.GetsockoptTimeval(like, unix.SOL_SOCKET, option); err == nil {
			_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, v)
		}
	}
	return fd, nil
}

// connectSoon connects a socket that does not block. While the other end has no
// room it tries again, if the command would wait, for as long as its caller does.
func (n *notification) connectSoon(listener, socket int, address []byte, once bool) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := rawConnect(socket, address)
		if once || !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if !n.valid(listener) {
			return unix.EINTR
		}
		time.Sleep(wait)
	}
}

// peerIsOurs reports whether the socket at the other end was made to listen by
// this shim, for its command.
func peerIsOurs(socket int) bool {
	peer, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	return err == nil && int(peer.Pid) == os.Getpid()
}

// open opens, as a place, what the command means by a path. Links such as those
// in /proc/PID/fd, which lead to open files, are not followed.
func (n *notification) open(name string) (int, error) {
	base := "/proc/" + strconv.Itoa(int(n.pid))
	if !filepath.IsAbs(name) {
		cwd, err := os.Readlink(base + "/cwd")
		if err != nil {
			return -1, unix.EACCES
		}
		name = cwd + "/" + name
	}
	root, err := unix.Open(base+"/root", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, unix.EACCES
	}
	defer unix.Close(root)

	fd, err := unix.Openat2(root, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EAGAIN) {
		err = unix.EACCES
	}
	if err != nil {
		return -1, err
	}
	if kind, err := kindOf(fd); err != nil || kind != unix.S_IFSOCK {
		_ = unix.Close(fd)
		return -1, unix.ECONNREFUSED // as the kernel has it
	}
	return fd, nil
}

// tgid returns the process that a thread belongs to.
func tgid(tid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte("Tgid:")); ok {
			return strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	return 0, unix.ESRCH
}

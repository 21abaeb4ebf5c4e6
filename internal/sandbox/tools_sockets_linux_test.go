package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// localTool is one end of a conversation over local sockets: it serves once, dials,
// or waits until somebody serves.
func localTool(args []string) error {
	what, kind := args[0], unix.SOCK_STREAM
	if what == "wait" {
		for {
			if _, err := os.Lstat(args[1]); err == nil {
				return nil
			}
			<-time.After(time.Millisecond)
		}
	}
	if args[1] == "seqpacket" {
		kind = unix.SOCK_SEQPACKET
	}
	switch what {
	case "serve":
		return serveOnce(kind, args[2])
	case "threads":
		return dialFromThreads(args[2])
	case "full":
		return dialWhatIsFull(args[2])
	}
	if args[1] == "nonblock" {
		kind |= unix.SOCK_NONBLOCK
	}
	return dialOnce(kind, args[2])
}

func address(name string) unix.Sockaddr {
	return &unix.SockaddrUnix{Name: name}
}

// serveOnce accepts one connection only: a second one would be one too many.
func serveOnce(kind int, name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, kind, 0)
	if err != nil {
		return err
	}
	// Under its name when it listens, since others wait for that.
	early := name
	if !strings.HasPrefix(name, "@") {
		early = name + ".new"
	}
	if err := errors.Join(unix.Bind(fd, address(early)), unix.Listen(fd, 1)); err != nil {
		return err
	}
	if early != name {
		if err := os.Rename(early, name); err != nil {
			return err
		}
	}
	conn, _, err := unix.Accept(fd)
	if err != nil {
		return err
	}
	_ = unix.Close(fd)
	b := make([]byte, 8)
	n, err := unix.Read(conn, b)
	if err != nil || string(b[:n]) != "ping" {
		return fmt.Errorf("read %q, %w", b[:n], err)
	}
	_, err = unix.Write(conn, []byte("pong"))
	return err
}

func dialOnce(kind int, name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for { // an abstract name has no file to wait for
		err = unix.Connect(fd, address(name))
		if !strings.HasPrefix(name, "@") || !errors.Is(err, unix.ECONNREFUSED) {
			break
		}
		<-time.After(time.Millisecond)
	}
	if err != nil {
		return os.NewSyscallError("connect", err)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		return fmt.Errorf("the socket is not closed on exec any more: %w", err)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != kind&unix.SOCK_NONBLOCK {
		return fmt.Errorf("the socket has flags %#x: %w", flags, err)
	}
	if err := unix.Connect(fd, address(name)); !errors.Is(err, unix.EISCONN) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("connecting again: %w", err)
	}
	_ = unix.SetNonblock(fd, false)
	if _, err := unix.Write(fd, []byte("ping")); err != nil {
		return err
	}
	b := make([]byte, 8)
	n, err := unix.Read(fd, b)
	if err != nil || string(b[:n]) != "pong" {
		return fmt.Errorf("read %q, %w", b[:n], err)
	}
	return nil
}

// dialFromThreads connects from many threads at once.
func dialFromThreads(name string) error {
	l, err := net.Listen("unix", name)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("x"))
			_ = conn.Close()
		}
	}()
	var all sync.WaitGroup
	problems := make([]error, 50)
	for i := range problems {
		all.Go(func() {
			runtime.LockOSThread()
			conn, err := net.Dial("unix", name)
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			problems[i] = err
		})
	}
	all.Wait()
	return errors.Join(problems...)
}

// dialWhatIsFull waits in connect until the other end has room.
func dialWhatIsFull(name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Bind(fd, address(name)), unix.Listen(fd, 0)); err != nil {
		return err
	}
	dial := func(flags int) error {
		c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|flags, 0)
		if err != nil {
			return err
		}
		return unix.Connect(c, address(name))
	}
	if err := dial(0); err != nil { // fills it
		return err
	}
	if err := dial(unix.SOCK_NONBLOCK); !errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("a full socket: %w", err)
	}
	go func() {
		for range 2 {
			_, _, _ = unix.Accept(fd)
		}
	}()
	return dial(0)
}

// pairSendTool sends a datagram from one of a pair to another address.
func pairSendTool(args []string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fds[0], []byte("hello"), 0, address(args[0]))
}

// flipTool connects to a socket of its own while another thread changes the
// address to get at another one.
func flipTool(args []string) error {
	own := args[0] + "-own"
	_ = os.Remove(own) // of an earlier try
	l, err := net.Listen("unix", own)
	if err != nil {
		return err
	}
	go func() {
		for {
			if conn, err := l.Accept(); err == nil {
				_ = conn.Close()
			}
		}
	}()
	good, bad := rawAddress(own), rawAddress(args[0])
	memory := good
	stop := make(chan struct{})
	defer close(stop)
	go flipMemory(&memory, &good, &bad, stop)
	tries, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	for range tries {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		_, _, errno := syscall.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&memory)), unsafe.Sizeof(memory))
		if peer, err := unix.Getpeername(fd); errno == 0 && err == nil && peer.(*unix.SockaddrUnix).Name == args[0] {
			_, err := unix.Write(fd, []byte("hello"))
			return err
		}
		_ = unix.Close(fd)
	}
	return errors.New("it did not get there")
}

func flipMemory(to, a, b *unix.RawSockaddrUnix, stop <-chan struct{}) {
	runtime.LockOSThread()
	for {
		select {
		case <-stop:
			return
		default:
			*to = *b
			*to = *a
		}
	}
}

func rawAddress(name string) unix.RawSockaddrUnix {
	raw := unix.RawSockaddrUnix{Family: unix.AF_UNIX}
	for i, c := range []byte(name) {
		raw.Path[i] = int8(c)
	}
	return raw
}

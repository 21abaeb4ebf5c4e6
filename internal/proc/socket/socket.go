//go:build unix

// Package socket lets the processes of a command ask the program that runs it, over a
// descriptor that they inherit: see [Ask] and [Open]. It also passes files between
// processes ([Send], [Receive]).
package socket

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Variable names, in the environment of a command that is served, the descriptor
// that Ask uses.
const Variable = "FERMATA_SOCKET"

const (
	// leastSocket is the smallest number that the descriptor gets in a command:
	// scripts use small ones themselves.
	leastSocket = 100

	// MaxConns is how many connections of one command are served at a time.
	MaxConns = 16

	maxAnswer = 1 << 20
)

// MaxPatch is the largest patch that the command apply_patch sends: a directory, a
// null byte and the patch.
const MaxPatch = 4 << 20

// PatchAnswer is what became of it, which comes back as JSON.
type PatchAnswer struct {
	ExitCode int    `json:"exit_code"`
	Text     string `json:"text"`
}

// ErrNotServed is returned by Ask in a process without a server: it belongs to no
// command that is served, or the descriptor was closed on the way.
var ErrNotServed = errors.New("this process has no server")

// Ask sends a request to whoever serves the command that this process belongs to,
// and returns the answer. The descriptor is shared by all processes of the command,
// so only a socket is sent over it, and that one carries request and answer.
func Ask(request []byte) ([]byte, error) {
	n, err := strconv.Atoi(os.Getenv(Variable))
	if err != nil || n < 0 {
		return nil, ErrNotServed
	}
	ours, theirs, err := Pair()
	if err != nil {
		return nil, err
	}
	defer ours.Close()

	err = Send(n, []byte(" "), theirs)
	_ = theirs.Close()
	if err != nil {
		return nil, fmt.Errorf("%w (%v)", ErrNotServed, err)
	}
	if _, err := ours.Write(request); err != nil {
		return nil, fmt.Errorf("send the request: %w", err)
	}
	if err := shutdownWrite(ours); err != nil {
		return nil, fmt.Errorf("send the request: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(ours, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return answer, nil
}

func shutdownWrite(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var shutErr error
	err = raw.Control(func(fd uintptr) { shutErr = unix.Shutdown(int(fd), unix.SHUT_WR) })
	return errors.Join(err, os.NewSyscallError("shutdown", shutErr))
}

// Pass makes the socket in this process one that the command inherits, and
// adds its number to the environment. It returns both.
func Pass(fd int, env []string) (number int, with []string, err error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, leastSocket)
	if err != nil { // the limit may be lower
		n, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD, fd+1)
	}
	if err != nil {
		return 0, nil, os.NewSyscallError("fcntl", err)
	}
	return n, append(env, Variable+"="+strconv.Itoa(n)), nil
}

// A Desk serves the processes of one command. What they send is not trusted: whatever
// is not a stream socket ends the service for this command, and connections beyond
// the limit are closed.
type Desk struct {
	socket *os.File
	serve  func(*os.File)
	ended  chan struct{} // closed when no more connections are taken

	mu     sync.Mutex
	open   map[*os.File]struct{} // guarded by mu; nil after close
	served sync.WaitGroup
}

// Open begins to serve: each connection in a goroutine of its own. Close must follow.
func Open(socket *os.File, serve func(*os.File)) *Desk {
	d := &Desk{socket: socket, serve: serve, ended: make(chan struct{}), open: map[*os.File]struct{}{}}
	go d.run()
	return d
}

// run takes connections until the socket is closed or carries something else.
func (d *Desk) run() {
	defer close(d.ended)
	defer d.socket.Close()
	for {
		b, f, err := Receive(d.socket)
		if err != nil || len(b) == 0 || f == nil {
			if f != nil {
				_ = f.Close()
			}
			return
		}
		conn, err := streamConn(f)
		if err != nil {
			return
		}
		if !d.add(conn) {
			_ = conn.Close()
			continue
		}
		go func() {
			defer d.remove(conn)
			d.serve(conn)
		}()
	}
}

// streamConn takes over a file that must be a connected local stream socket:
// anything else could make its reader wait, or act. It is a file, not a *os.File: package
// net is initialised late, and every shim would wait for that.
func streamConn(f *os.File) (*os.File, error) {
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var own int
	var ownErr error
	if err := raw.Control(func(fd uintptr) { own, ownErr = dupStream(int(fd)) }); err != nil || ownErr != nil {
		return nil, errors.Join(err, ownErr)
	}
	return os.NewFile(uintptr(own), "socket"), nil
}

// dupStream returns another descriptor of a local stream socket, which does not block.
func dupStream(fd int) (int, error) {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return 0, err
	}
	listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return 0, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	if _, local := name.(*unix.SockaddrUnix); !local || kind != unix.SOCK_STREAM || listens != 0 {
		return 0, errors.New("not a local stream socket")
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := unix.SetNonblock(own, true); err != nil {
		return 0, errors.Join(err, unix.Close(own))
	}
	return own, nil
}

// add notes a connection that is about to be served, if there is room for it.
func (d *Desk) add(conn *os.File) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil || len(d.open) >= MaxConns {
		return false
	}
	d.open[conn] = struct{}{}
	d.served.Add(1)
	return true
}

func (d *Desk) remove(conn *os.File) {
	_ = conn.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, conn)
	d.served.Done()
}

// Close ends all connections and returns when no request is served. Nil is fine.
func (d *Desk) Close() {
	if d == nil {
		return
	}
	_ = d.socket.Close()
	<-d.ended
	d.mu.Lock()
	for conn := range d.open {
		_ = conn.Close()
	}
	d.open = nil
	d.mu.Unlock()
	d.served.Wait()
}

package remote

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fermata-agent/fermata/internal/regular"
)

// maxSocketName is how long the name of a socket may be: the least that systems
// allow.
const maxSocketName = 100

// ErrUser says that the process at the other end of a connection is not one of ours.
var ErrUser = errors.New("the process at the other end belongs to another user")

// A Listener accepts processes of the same user at a socket in a directory of its own.
type Listener struct {
	ln      *net.UnixListener
	address string
	serving sync.WaitGroup
}

// sockets counts those that this process listened on.
var sockets atomic.Int64

// Listen listens at a new socket in dir, which it makes, and removes those of
// processes that have ended without removing theirs.
func Listen(dir string) (*Listener, error) {
	l, err := listen(dir)
	if err != nil {
		return nil, fmt.Errorf("listen for other processes: %w", err)
	}
	return l, nil
}

func listen(dir string) (*Listener, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	removeDead(dir)
	name := fmt.Sprintf("%s-%d-%d%s", machine(), os.Getpid(), sockets.Add(1), suffix)
	fresh, address := filepath.Join(dir, "."+name), filepath.Join(dir, name)
	_ = os.Remove(fresh) // of a process with our number that has died
	var ln net.Listener
	err := withShortName(fresh, func(short string) (err error) {
		ln, err = net.Listen("unix", short)
		return err
	})
	if err != nil {
		return nil, err
	}
	unixListener, _ := ln.(*net.UnixListener)
	unixListener.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(fresh, 0o600), os.Rename(fresh, address)); err != nil { // so that no client finds one that is not listened on yet
		ln.Close()
		os.Remove(fresh)
		return nil, err
	}
	return &Listener{ln: unixListener, address: address}, nil
}

// private refuses a directory of another user, or one that others can use.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", dir)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if info.Mode().Perm() != 0o700 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

const suffix = ".sock"

// machine tells machines that share a home apart: a socket of another one looks dead.
func machine() string {
	host, _ := os.Hostname() // not known if that fails
	h := fnv.New32a()
	h.Write([]byte(host))
	return fmt.Sprintf("%08x", h.Sum32())
}

// removeDead removes the sockets that no process listens on.
func removeDead(dir string) {
	entries, _ := regular.ReadDir(dir) // what cannot be read stays
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		ours := strings.HasPrefix(e.Name(), machine()+"-") && strings.HasSuffix(e.Name(), suffix)
		if !ours || e.Type()&fs.ModeSocket == 0 {
			continue
		}
		conn, err := dial(name)
		if err == nil {
			conn.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(name)
		}
	}
}

// withShortName calls f with a name for the socket that is not too long.
func withShortName(name string, f func(string) error) error {
	if len(name) <= maxSocketName {
		return f(name)
	}
	dir, err := os.MkdirTemp("/tmp", "fermata-") // only we can use it
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	link := filepath.Join(dir, "run")
	if err := os.Symlink(filepath.Dir(name), link); err != nil {
		return err
	}
	return f(filepath.Join(link, filepath.Base(name)))
}

// Address is where other processes find the socket.
func (l *Listener) Address() string { return l.address }

// Serve serves every client of this user, until Close. Others are refused.
func (l *Listener) Serve(ctx context.Context, s *Server) {
	for {
		conn, err := l.ln.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			break
		}
		if err != nil { // too many files are open
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-ctx.Done():
			}
			break
		}
		l.serving.Go(func() {
			if _, err := peer(conn); err != nil {
				conn.Close()
				return
			}
			_ = s.ServeConn(ctx, conn) // how a connection ends is its client's affair
		})
	}
	l.serving.Wait()
}

// Close removes the socket. Connections stay: see Server.Close.
func (l *Listener) Close() {
	_ = os.Remove(l.address)
	l.ln.Close()
}

// Dial connects to a process that listens at an address.
func Dial(ctx context.Context, address string, o Options) (*Engine, error) {
	conn, err := dial(address)
	if err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	pid, err := peer(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("join: %w", err)
	}
	return connect(ctx, conn, pid, o)
}

// dial never waits: if the other process accepts no client, that is an error.
func dial(address string) (conn *net.UnixConn, err error) {
	err = withShortName(address, func(short string) error {
		conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	return conn, err
}

// Addresses returns where processes of this machine listen in dir. It removes the sockets of those that have ended
// without removing theirs.
func Addresses(dir string) []string {
	removeDead(dir)
	var list []string
	entries, _ := regular.ReadDir(dir) // what cannot be read has no process
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), machine()+"-") && strings.HasSuffix(e.Name(), suffix) {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	return list
}

// PIDOf returns which process listens at an address, by its name; 0 if that is none of ours.
func PIDOf(address string) int {
	parts := strings.Split(filepath.Base(address), "-")
	if len(parts) != 3 {
		return 0
	}
	pid, _ := strconv.Atoi(parts[1]) // 0 then
	return pid
}

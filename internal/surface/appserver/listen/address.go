// Package listen lets clients of the app-server come by a unix socket or by TCP. Either way a client upgrades an HTTP request to a
// WebSocket, and each of its text frames is one message.
//
// A unix socket is the user's own: no other process can open it. TCP needs a bearer token, whatever the address, because every
// user of a machine can connect to it. A request that names an Origin comes from a web page and is refused.
package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// An Address is where to listen.
type Address struct {
	Stdio bool
	Path  string // of a unix socket
	TCP   string // IP:PORT
}

// Parse reads stdio://, unix://PATH or ws://IP:PORT. A socket without a path is the default one.
func Parse(text, defaultSocket string) (Address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case ok && scheme == "stdio" && rest == "":
		return Address{Stdio: true}, nil
	case ok && scheme == "unix":
		if rest == "" {
			rest = defaultSocket
		}
		path, err := filepath.Abs(rest)
		return Address{Path: path}, err
	case ok && scheme == "ws":
		at, err := netip.ParseAddrPort(rest)
		if err != nil {
			return Address{}, fmt.Errorf("listen at %q: want ws://IP:PORT", text)
		}
		return Address{TCP: at.String()}, nil
	}
	return Address{}, fmt.Errorf("listen at %q: want stdio://, unix://PATH or ws://IP:PORT", text)
}

// ErrInUse says that a process listens at an address.
var ErrInUse = errors.New("already in use")

// Open listens at a unix socket or at a TCP address.
func (a Address) Open(ctx context.Context) (net.Listener, error) {
	if a.Path == "" {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", a.TCP)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("listen at ws://%s: %w", a.TCP, ErrInUse)
		}
		return l, err
	}
	l, err := openSocket(ctx, a.Path)
	if err != nil {
		return nil, fmt.Errorf("listen at unix://%s: %w", a.Path, err)
	}
	return l, nil
}

// openSocket listens at a path. What a server left there that was killed is replaced.
func openSocket(ctx context.Context, path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := lockDir(dir) // two that start at once look one after the other
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	fresh := path + ".new"
	_ = os.Remove(fresh) // of a server that was killed here
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", fresh)
	if err != nil {
		return nil, err
	}
	u, _ := l.(*net.UnixListener)
	u.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(fresh, 0o600), os.Rename(fresh, path)); err != nil { // no client can connect before
		l.Close()
		os.Remove(fresh)
		return nil, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, err
	}
	return &socket{u, path, info}, nil
}

func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// removeStale removes a socket that no process listens on.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return errors.New("there is a file that is not a socket")
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
		return ErrInUse
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// A socket removes its file when it is closed, unless another server has taken its place.
type socket struct {
	*net.UnixListener
	path string
	info os.FileInfo
}

func (s *socket) Close() error {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.info) {
		_ = os.Remove(s.path) // if it stays it is stale, and replaced
	}
	return s.UnixListener.Close()
}

package remote_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

// listen serves e at a socket in dir.
func listen(t *testing.T, dir string, e engine.Engine) *remote.Listener {
	t.Helper()
	l, err := remote.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := remote.NewServer(e, "test")
	done := make(chan struct{})
	go func() { l.Serve(context.WithoutCancel(t.Context()), s); close(done) }() // ends with the test
	t.Cleanup(func() {
		l.Close()
		s.Close()
		<-done
	})
	return l
}

func dial(t *testing.T, address string) *remote.Engine {
	t.Helper()
	c, err := remote.Dial(t.Context(), address, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestTurnOverASocket(t *testing.T) {
	for name, dir := range map[string]string{
		"short": "run",
		"long":  filepath.Join(strings.Repeat("a-long-name/", 20), "run"),
	} {
		t.Run(name, func(t *testing.T) {
			e := enginetest.New(t, enginetest.Options{})
			l := listen(t, filepath.Join(t.TempDir(), dir), e)
			c := dial(t, l.Address())
			if c.PID() != os.Getpid() {
				t.Errorf("pid %d", c.PID())
			}
			id, err := c.Create(t.Context(), p.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			go func() { e.Request().Answer("hello") }()
			end, err := engine.RunTurn(t.Context(), c, id, p.UserTurn{Content: p.Text("hi")}, nil)
			if err != nil || end.Message != "hello" || end.End.Reason != p.Completed {
				t.Errorf("%+v, %v", end, err)
			}
		})
	}
}

func TestSocketIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	l := listen(t, dir, enginetest.New(t, enginetest.Options{}))
	for name, want := range map[string]os.FileMode{dir: 0o700, l.Address(): 0o600} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// The socket of a process that died is removed by the next one, and by who looks for all; those of others
// stay.
func TestDeadSocketsAreRemoved(t *testing.T) {
	for name, look := range map[string]func(*testing.T, string){
		"listen":    func(t *testing.T, dir string) { listen(t, dir, enginetest.New(t, enginetest.Options{})) },
		"addresses": func(_ *testing.T, dir string) { remote.Addresses(dir) },
	} {
		t.Run(name, func(t *testing.T) { deadSocketIsRemoved(t, look) })
	}
}

func deadSocketIsRemoved(t *testing.T, look func(*testing.T, string)) {
	t.Helper()
	short, err := os.MkdirTemp("/tmp", "fermata-test-") // the name of a test's own may be too long for a socket in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	dir := filepath.Join(short, "run")
	alive := listen(t, dir, enginetest.New(t, enginetest.Options{}))
	dead := filepath.Join(dir, strings.Replace(filepath.Base(alive.Address()), "-", "-9", 1))
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	elsewhere := filepath.Join(dir, "another-1-1.sock") // of another machine
	ln, err = net.ListenUnix("unix", &net.UnixAddr{Name: elsewhere, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()

	look(t, dir)
	if _, err := os.Lstat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the dead one is there: %v", err)
	}
	for _, name := range []string{alive.Address(), elsewhere} {
		if _, err := os.Lstat(name); err != nil {
			t.Error(err)
		}
	}
	alive.Close()
	if _, err := os.Lstat(alive.Address()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Close left the socket: %v", err)
	}
}

func TestDirectoryOfAnotherKind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	if l, err := remote.Listen(dir); err == nil {
		l.Close()
		t.Error("it listens through a symbolic link")
	}
}

package remote_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/enginetest"
)

// Another user is refused even if the modes would let it in.
func TestAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	dir, err := os.MkdirTemp("/tmp", "fermata-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := listen(t, filepath.Join(dir, "run"), enginetest.New(t, enginetest.Options{}))
	for _, name := range []string{dir, filepath.Dir(l.Address()), l.Address()} {
		if err := os.Chmod(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := greetAs(t, 0, l.Address()); err != nil {
		t.Errorf("the same user: %v", err)
	}
	if err := greetAs(t, 65534, l.Address()); err == nil || errors.Is(err, unix.EACCES) {
		t.Errorf("another user: %v, want a connection that ends", err)
	}
}

// greetAs connects as a user, says hello, and returns nil if that is answered.
func greetAs(t *testing.T, user int, address string) error {
	t.Helper()
	result := make(chan error, 1)
	go func() { // its thread ends with it: it has another user
		runtime.LockOSThread()
		result <- func() error {
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(user), uintptr(user), uintptr(user)); errno != 0 {
				return errno
			}
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if err := unix.Connect(fd, &unix.SockaddrUnix{Name: address}); err != nil {
				return err
			}
			if _, err := unix.Write(fd, []byte(`{"id":1,"method":"hello","params":{"oldest":1,"newest":1}}`+"\n")); err != nil {
				return err
			}
			n, err := unix.Read(fd, make([]byte, 1))
			if n == 0 && err == nil {
				return io.EOF
			}
			return err
		}()
	}()
	return <-result
}

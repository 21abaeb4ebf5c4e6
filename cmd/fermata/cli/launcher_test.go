package cli

import (
	"io"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Programs that we start, such as an editor, do not hold the launcher's pipe open.
func TestLauncherPipeIsNotInherited(t *testing.T) {
	fds := make([]int, 2)
	if err := unix.Pipe(fds); err != nil { // its other end stays open: its end would stop this process
		t.Fatal(err)
	}
	t.Setenv(LauncherVariable, strconv.Itoa(fds[0]))
	FollowLauncher(io.Discard)
	if flags, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %b, error %v: programs that we start have the pipe, too", flags, err)
	}
}

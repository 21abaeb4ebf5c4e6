//go:build unix

package proc

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

var errNoTerminal = errors.New("command has no terminal")

// terminal is a pseudo-terminal. Its slave is kept open for as long as the
// command runs: the master reads an error while no process has it open, which is how
// output ends, but a command may close its terminal and go on.
type terminal struct {
	master *os.File
	path   string

	slaveOnce sync.Once
	slave     *os.File
}

// openTerminal opens a pseudo-terminal of the given size.
func openTerminal(size Winsize) (*terminal, error) {
	blocking, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("open terminal: %w", err)
	}
	defer blocking.Close()

	master, err := pollable(blocking)
	if err != nil {
		_ = slave.Close()
		return nil, fmt.Errorf("open terminal: %w", err)
	}
	t := &terminal{master: master, slave: slave, path: slave.Name()}
	if err := t.resize(size); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// pollable returns a copy of f whose Close ends a pending Read. What the pty
// package returns is in blocking mode: there a Read would never end, and the
// session never be hung up.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}

	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// resize sets the size. It does not use File.Fd, which would make the file
// blocking again.
func (t *terminal) resize(w Winsize) error {
	raw, err := t.master.SyscallConn()
	if err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}

	var ioctlErr error
	err = raw.Control(func(fd uintptr) {
		ioctlErr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: w.Rows, Col: w.Cols})
	})
	if err := errors.Join(err, ioctlErr); err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}

// closeSlave lets reading come to its end. Nil is fine.
func (t *terminal) closeSlave() {
	if t == nil {
		return
	}
	t.slaveOnce.Do(func() { _ = t.slave.Close() })
}

// close hangs the session up. Nil is fine.
func (t *terminal) close() {
	if t == nil {
		return
	}
	t.closeSlave()
	_ = t.master.Close()
}

//go:build unix

package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/fermata-agent/fermata/internal/journal"
)

// A lockFile is an advisory lock on a file beside the journal. It falls when
// its owner dies. The file is opened close-on-exec, like everything that package
// os opens, so children do not keep it.
type lockFile struct {
	file *os.File
	path string
}

// lock takes the lock at once or returns a *LockedError.
func lock(path string, self journal.Owner) (*lockFile, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		l, err := lockOpened(f, path, self)
		if l != nil {
			return l, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

// lockOpened takes the lock of a file that was found at path. It returns nothing
// if it is not there any more: the owner before us removes it when it ends, and
// then others lock the next file of that name.
func lockOpened(f *os.File, path string, self journal.Owner) (*lockFile, error) {
	err := flock(f)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &journal.LockedError{Owner: readOwner(f)}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !isAt(f, path) {
		return nil, nil
	}
	writeOwner(f, self)
	return &lockFile{f, path}, nil
}

func flock(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = conn.Control(func(fd uintptr) {
		for {
			lockErr = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
			if lockErr != syscall.EINTR {
				return
			}
		}
	})
	return errors.Join(err, lockErr)
}

func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// writeOwner says whose lock it is. If that fails, it is a lock all the same.
func writeOwner(f *os.File, self journal.Owner) {
	b, err := json.Marshal(self)
	if err != nil {
		return
	}
	f.Truncate(0)
	f.WriteAt(append(b, '\n'), 0)
}

// readOwner returns the zero Owner if it is not known. Earlier versions wrote
// nothing but the process's number.
func readOwner(f *os.File) (o journal.Owner) {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
		return journal.Owner{PID: pid}
	}
	if json.Unmarshal(b, &o) != nil {
		return journal.Owner{}
	}
	return o
}

// release removes the file while the lock is still held, so that nobody can
// have locked a file that is then removed under them without noticing.
func (l *lockFile) release() {
	os.Remove(l.path)
	l.file.Close()
}

// abandon lets the lock fall as the death of the process would.
func (l *lockFile) abandon() { l.file.Close() }

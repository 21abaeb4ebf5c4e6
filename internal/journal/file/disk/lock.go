package disk

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

// A LockFile is a locked file beside the journal that says whose it is. The
// lock is free when its owner has died.
type LockFile struct {
	fs   FS
	file File
	path string
}

// LockTries is how often a file is opened that is not at its path any more when it is locked. Others who lock
// it and remove it cause a few of them.
const LockTries = 1000

// TakeLock takes the lock at once or returns a *LockedError.
func TakeLock(fsys FS, path string, self journal.Owner) (*LockFile, error) {
	for range LockTries {
		f, err := OpenBeside(fsys, path, os.O_RDWR|os.O_APPEND)
		if err != nil {
			return nil, err
		}
		l, err := lockOpened(fsys, f, path, self)
		if l != nil {
			return l, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return nil, ReplacedError(path)
}

// ReplacedError says that a file is never the one that was opened: another program replaces it all the time, or the file system
// gives it no identity.
func ReplacedError(path string) error {
	return fmt.Errorf("lock %s: it was replaced %d times meanwhile", path, LockTries)
}

// lockOpened takes the lock of a file that was found at path. It returns nothing
// if it is not there any more: the owner before us removes it when it ends, and
// then others lock the next file of that name.
func lockOpened(fsys FS, f File, path string, self journal.Owner) (*LockFile, error) {
	err := f.Lock()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &journal.LockedError{Owner: ReadOwner(f)}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !IsAt(fsys, f, path) {
		return nil, nil
	}
	writeOwner(f, self)
	return &LockFile{fsys, f, path}, nil
}

// writeOwner says whose lock it is. If that fails, it is a lock all the same.
func writeOwner(f File, self journal.Owner) {
	b, err := json.Marshal(self)
	if err != nil {
		return
	}
	f.Truncate(0)
	f.Write(append(b, '\n'))
}

// ReadOwner returns the zero Owner if it is not known. Earlier versions wrote
// nothing but the process's number.
func ReadOwner(f File) (o journal.Owner) {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
		return journal.Owner{PID: pid}
	}
	if json.Unmarshal(b, &o) != nil {
		return journal.Owner{}
	}
	return o
}

// Release removes the file while the lock is still held, so that no process can
// have locked a file that is then removed under them without noticing.
func (l *LockFile) Release() {
	l.fs.Remove(l.path)
	l.file.Close()
}

// Abandon releases the lock as the death of the process would: the file stays.
func (l *LockFile) Abandon() { l.file.Close() }

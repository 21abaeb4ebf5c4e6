package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file/disk"
)

// A lockFile is a locked file beside the journal that says whose it is. The
// lock is free when its owner has died.
type lockFile struct {
	fs   FS
	file File
	path string
}

// lockTries is how often a file is opened that is not at its path any more when it is locked. Others who lock
// it and remove it cause a few of them.
const lockTries = 1000

// lock takes the lock at once or returns a *LockedError.
func lock(fsys FS, path string, self journal.Owner) (*lockFile, error) {
	for range lockTries {
		f, err := disk.OpenBeside(fsys, path, os.O_RDWR|os.O_APPEND)
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
	return nil, replacedError(path)
}

// replacedError says that a file is never the one that was opened: another program replaces it all the time, or the file system
// gives it no identity.
func replacedError(path string) error {
	return fmt.Errorf("lock %s: it was replaced %d times meanwhile", path, lockTries)
}

// lockOpened takes the lock of a file that was found at path. It returns nothing
// if it is not there any more: the owner before us removes it when it ends, and
// then others lock the next file of that name.
func lockOpened(fsys FS, f File, path string, self journal.Owner) (*lockFile, error) {
	err := f.Lock()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &journal.LockedError{Owner: readOwner(f)}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !disk.IsAt(fsys, f, path) {
		return nil, nil
	}
	writeOwner(f, self)
	return &lockFile{fsys, f, path}, nil
}

// held is a conversation that we have locked: the file beside it, which says who
// we are and which earlier versions lock, and the journal itself, which nobody can
// remove by mistake together with other lock files.
type held struct {
	id   string
	path string
	lock *lockFile
	file File
}

// hold locks a journal whose lock file we have. It returns nothing if it is not
// at its path any more.
func (s *Store) hold(id, path string, l *lockFile) (*held, error) {
	f, err := disk.Open(s.fs, path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = f.Lock()
	if err == nil && disk.IsAt(s.fs, f, path) {
		return &held{id, path, l, f}, nil
	}
	defer f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &journal.LockedError{Owner: journal.Owner{PID: disk.Holder(f)}} // its lock file was removed
	}
	return nil, err
}

// release gives a conversation back that was not opened.
func (h *held) release() {
	h.file.Close()
	h.lock.release()
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

// readOwner returns the zero Owner if it is not known. Earlier versions wrote
// nothing but the process's number.
func readOwner(f File) (o journal.Owner) {
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
	l.fs.Remove(l.path)
	l.file.Close()
}

// abandon releases the lock as the death of the process would: the file stays.
func (l *lockFile) abandon() { l.file.Close() }

package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file/disk"
)

// held is a conversation that we have locked: the file beside it, which says who
// we are and which earlier versions lock, and the journal itself, which no process can
// remove by mistake together with other lock files.
type held struct {
	id   string
	path string
	lock *disk.LockFile
	file File
}

// hold locks a journal whose lock file we have. It returns nothing if it is not
// at its path any more.
func (s *Store) hold(id, path string, l *disk.LockFile) (*held, error) {
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
	h.lock.Release()
}

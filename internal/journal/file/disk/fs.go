// Package disk is the file system as a file store uses it. It opens regular files and nothing else: a named
// pipe, a device or a symbolic link in the place of one is an error, and never something to wait for.
package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/fermata-agent/fermata/internal/regular"
)

// FS is all that a file store needs of a file system, so that tests can bring
// their own.
type FS interface {
	// OpenFile opens a regular file. It follows no symbolic link in the last component of the name, and
	// never waits: whatever else is there is an error.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Mkdir(name string, perm fs.FileMode) error
	Rename(from, to string) error
	Remove(name string) error
	Lstat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Readlink(name string) (string, error)
	// IsEmpty reports whether there is nothing in a directory. It takes the same
	// time for a large one.
	IsEmpty(dir string) (bool, error)
	SameFile(a, b fs.FileInfo) bool
	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error
}

// A File is an open file of an FS.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Truncate(size int64) error
	// Sync makes the data and the length durable.
	Sync() error
	Stat() (fs.FileInfo, error)
	// Lock takes the advisory lock of the file, at once or not at all: the error
	// is syscall.EWOULDBLOCK if another open file has it. It lasts until the file is
	// closed or the process has ended.
	Lock() error
}

// OS is the file system of the operating system.
type OS struct{}

var _ FS = OS{}

// OpenFile implements FS. Files are opened close-on-exec, like everything that
// package os opens, so that children do not keep a lock.
func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := regular.OpenFile(name, flag|syscall.O_NOFOLLOW, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Mkdir implements FS.
func (OS) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// Lstat implements FS.
func (OS) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// ReadDir implements FS.
func (OS) ReadDir(name string) ([]fs.DirEntry, error) { return regular.ReadDir(name) }

// Readlink implements FS.
func (OS) Readlink(name string) (string, error) { return os.Readlink(name) }

// IsEmpty implements FS.
func (OS) IsEmpty(dir string) (bool, error) {
	d, err := regular.OpenDir(dir)
	if err != nil {
		return false, err
	}
	defer d.Close()
	_, err = d.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}

// SameFile implements FS.
func (OS) SameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) }

// SyncDir implements FS. It is a full fsync: for a directory, fdatasync may
// leave out just the names.
func (OS) SyncDir(dir string) error {
	d, err := regular.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

type osFile struct{ *os.File }

// Sync implements File.
func (f osFile) Sync() error { return datasync(f.File) }

// Lock implements File.
func (f osFile) Lock() error {
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

// ReadFile returns the content of a file, at most limit bytes of it.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := Open(fsys, name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, 0, limit))
}

// IsAt reports whether the open file is what the name refers to.
func IsAt(fsys FS, f File, name string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := fsys.Lstat(name)
	return err == nil && fsys.SameFile(mine, there)
}

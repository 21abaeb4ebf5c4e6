package file

import (
	"io"
	"io/fs"
	"os"
)

// FS is what a file store needs of the file system in order to write, so that
// tests can make it fail.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Rename(from, to string) error
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
}

// OS is the file system of the operating system.
type OS struct{}

// OpenFile implements FS.
func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// SyncDir implements FS. It is a full fsync: for a directory, fdatasync may
// leave out just the names.
func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

type osFile struct{ *os.File }

// Sync implements File.
func (f osFile) Sync() error { return datasync(f.File) }

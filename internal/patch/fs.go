package patch

import (
	"errors"
	"io/fs"
	"os"

	"github.com/fermata-agent/fermata/internal/rootfs"
)

// FS is all that this package needs of a file system. Paths are absolute, and
// none but the last component of a path may be a symbolic link: everything fails
// with rootfs.ErrLink then. Errors satisfy errors.Is with fs.ErrNotExist and
// fs.ErrExist where that is what happened.
type FS interface {
	Lstat(path string) (fs.FileInfo, error)
	Readlink(path string) (string, error)
	ReadFile(path string) ([]byte, error)

	// Create makes a new file and fails if there is something at the path. The
	// data is durable when it returns; the name need not be. Mode 0 leaves the
	// mode to the system's default. The owner is taken, where permitted, from
	// the file like, if that is not empty. After an error there is no file.
	Create(path string, data []byte, mode fs.FileMode, like string) error
	Symlink(target, path string) error
	Link(path, link string) error // a second name for the same file
	Mkdir(path string) error
	Rename(from, to string) error // within one directory, atomic
	Remove(path string) error     // a file, a link or an empty directory
	SyncDir(path string) error    // makes the names in a directory durable
}

// OS is the file system of the machine. It follows no symbolic link on the way to
// a file: if a directory was replaced by one since the path was resolved,
// everything fails with rootfs.ErrLink.
type OS struct{}

var _ FS = OS{}

// Lstat describes what is at a path.
func (OS) Lstat(path string) (fs.FileInfo, error) { return rootfs.Lstat(path) }

// Readlink returns where a symbolic link points.
func (OS) Readlink(path string) (string, error) { return rootfs.Readlink(path) }

// ReadFile reads a regular file, unless it is too large for a patch.
func (OS) ReadFile(path string) ([]byte, error) { return rootfs.ReadFile(path, maxFile) }

// Symlink makes a symbolic link.
func (OS) Symlink(target, path string) error { return rootfs.Symlink(target, path) }

// Link gives a file a second name.
func (OS) Link(path, link string) error { return rootfs.Link(path, link) }

// Mkdir makes a directory.
func (OS) Mkdir(path string) error { return rootfs.Mkdir(path) }

// Rename renames a file.
func (OS) Rename(from, to string) error { return rootfs.Rename(from, to) }

// Remove removes a file, a link or an empty directory.
func (OS) Remove(path string) error { return rootfs.Remove(path) }

// SyncDir syncs the directory itself.
func (OS) SyncDir(path string) error { return rootfs.SyncDir(path) }

// Create writes the file and syncs it.
func (OS) Create(path string, data []byte, mode fs.FileMode, like string) error {
	// Until its mode is set the file is not readable by other users.
	open := fs.FileMode(0o600)
	if mode == 0 {
		open = 0o666
	}
	f, err := rootfs.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, open)
	if err != nil {
		return err
	}
	if err := fill(f, data, mode, like); err != nil {
		return errors.Join(err, f.Close(), rootfs.Remove(path))
	}
	if err := f.Close(); err != nil {
		return errors.Join(err, rootfs.Remove(path))
	}
	return nil
}

func fill(f *os.File, data []byte, mode fs.FileMode, like string) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if like != "" {
		rootfs.CopyOwner(f, like)
	}
	if mode != 0 {
		// After the owner: a change of owner may clear bits of the mode.
		if err := f.Chmod(mode.Perm()); err != nil {
			return err
		}
	}
	return f.Sync()
}

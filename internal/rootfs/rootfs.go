//go:build unix

// Package rootfs reaches files by their real paths: from the root directory,
// following no symbolic link.
//
// Fermata works on files that commands of a model may change at the same time.
// A path that was checked and is then opened by its name can mean another place
// by then, because a directory on the way was replaced by a link. Here each
// operation opens the directory first, in one step that fails with ErrLink if any
// component of its path is a link, and then works on a name in that directory. So
// what is read or written is at the path that was checked, or nowhere.
//
// Paths are absolute. Resolve them first (filepath.EvalSymlinks), check the result,
// and use it here. Open a file that a person or a model names with OpenRegular.
package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrLink means that a directory in the path is a symbolic link.
var ErrLink = errors.New("a directory in the path is a symbolic link")

// ErrNotRegular means that something is a directory, a device, a pipe or a socket.
var ErrNotRegular = errors.New("not a regular file")

// A place is a name in a directory that is open.
type place struct {
	dir  int
	name string
	path string
}

// at opens the directory that a path is in. Close the place.
func at(path string) (place, error) {
	if !filepath.IsAbs(path) {
		return place{}, &fs.PathError{Op: "open", Path: path, Err: errors.New("the path is not absolute")}
	}
	path = filepath.Clean(path)
	p := place{name: filepath.Base(path), path: path}
	if path == "/" {
		p.name = "."
	}
	var err error
	p.dir, err = openDir(filepath.Dir(path), forNames)
	return p, err
}

func (p place) close() { _ = unix.Close(p.dir) } // nothing was written to it

// retry repeats a system call that a signal cut short.
func retry(op, path string, call func() error) error {
	for {
		err := call()
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: op, Path: path, Err: err}
		}
		return nil
	}
}

// do runs a system call on a name in the directory that a path is in.
func do(op, path string, call func(dir int, name string) error) error {
	p, err := at(path)
	if err != nil {
		return err
	}
	defer p.close()
	return retry(op, path, func() error { return call(p.dir, p.name) })
}

// do2 runs a system call on two names.
func do2(op, from, to string, call func(dir int, name string, dir2 int, name2 string) error) error {
	a, err := at(from)
	if err != nil {
		return err
	}
	defer a.close()
	if filepath.Dir(from) == filepath.Dir(to) {
		return retry(op, to, func() error { return call(a.dir, a.name, a.dir, filepath.Base(to)) })
	}
	b, err := at(to)
	if err != nil {
		return err
	}
	defer b.close()
	return retry(op, to, func() error { return call(a.dir, a.name, b.dir, b.name) })
}

// Lstat describes what is at a path.
func Lstat(path string) (fs.FileInfo, error) {
	var st unix.Stat_t
	err := do("lstat", path, func(dir int, name string) error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return nil, err
	}
	return newInfo(filepath.Base(path), &st), nil
}

// Readlink returns where the symbolic link at a path points.
func Readlink(path string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n := 0
	err := do("readlink", path, func(dir int, name string) (err error) {
		n, err = unix.Readlinkat(dir, name, buf)
		return err
	})
	return string(buf[:max(n, 0)]), err
}

// Mkdir makes a directory.
func Mkdir(path string) error {
	return do("mkdir", path, func(dir int, name string) error { return unix.Mkdirat(dir, name, 0o777) })
}

// Remove removes a file, a link or an empty directory.
func Remove(path string) error {
	return do("remove", path, func(dir int, name string) error {
		err := unix.Unlinkat(dir, name, 0)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return err
		}
		// Systems differ in what they say of a directory.
		if dirErr := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); !errors.Is(dirErr, unix.ENOTDIR) {
			return dirErr
		}
		return err
	})
}

// Rename renames what is at a path. What was at the other is replaced.
func Rename(from, to string) error { return do2("rename", from, to, unix.Renameat) }

// Link gives a file, or a symbolic link, a second name.
func Link(path, link string) error {
	return do2("link", path, link, func(d int, n string, d2 int, n2 string) error { return unix.Linkat(d, n, d2, n2, 0) })
}

// Symlink makes a symbolic link.
func Symlink(target, path string) error {
	return do("symlink", path, func(dir int, name string) error { return unix.Symlinkat(target, dir, name) })
}

// OpenFile opens a file as os.OpenFile does, and waits for nothing: not for
// the other end of a pipe, and not for a device. A link is not followed.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	fd := -1
	err := do("open", path, func(dir int, name string) (err error) {
		fd, err = unix.Openat(dir, name, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Open opens a regular file for reading. Anything else fails with ErrNotRegular,
// if it can be, without being opened: that is all that some devices wait for.
func Open(path string) (*os.File, error) {
	fd, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openRegular is Open without a File. It returns the size, too.
func openRegular(path string) (fd int, size int64, err error) {
	p, err := at(path)
	if err != nil {
		return -1, 0, err
	}
	defer p.close()
	var st unix.Stat_t
	if err := retry("open", path, func() error { return unix.Fstatat(p.dir, p.name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return -1, 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return -1, 0, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err := retry("open", path, func() (err error) {
		fd, err = unix.Openat(p.dir, p.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		return err
	}); err != nil {
		return -1, 0, err
	}
	err = unix.Fstat(fd, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG { // it was replaced meanwhile
		err = ErrNotRegular
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, st.Size, nil
}

// OpenRegular opens the regular file that a path means, with its symbolic links
// followed, for reading. check, which may be nil, says whether the real path
// may be read; what it was asked about is what is opened.
func OpenRegular(path string, check func(real string) error) (*os.File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if check != nil {
		if err := check(real); err != nil {
			return nil, err
		}
	}
	return Open(real)
}

// A TooLargeError means that a file has more bytes than were wanted.
type TooLargeError struct {
	Path string
	Max  int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes", e.Path, e.Max)
}

// ReadFile reads a regular file of at most limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	fd, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	// One more byte, so that a file of the expected size needs one read.
	buf := make([]byte, 0, min(size, limit)+1)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n := 0
		err := retry("read", path, func() (err error) {
			n, err = unix.Read(fd, buf[len(buf):cap(buf)])
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case n == 0:
			return buf, nil
		}
		if buf = buf[:len(buf)+n]; int64(len(buf)) > limit {
			return nil, &TooLargeError{Path: path, Max: limit}
		}
	}
}

// SyncDir makes the names in a directory durable.
func SyncDir(path string) error {
	fd, err := openDir(filepath.Clean(path), forSync)
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(fd), path)
	err = d.Sync()
	// Some file systems cannot sync a directory and need not.
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// CopyOwner gives an open file the owner and group of what is at a path. That
// may not be permitted; then at least the group, and else the file is ours, as
// with every editor that replaces files.
func CopyOwner(f *os.File, path string) {
	info, err := Lstat(path)
	if err != nil {
		return
	}
	st, ok := info.Sys().(*unix.Stat_t)
	if !ok {
		return
	}
	if f.Chown(int(st.Uid), int(st.Gid)) != nil {
		_ = f.Chown(-1, int(st.Gid))
	}
}

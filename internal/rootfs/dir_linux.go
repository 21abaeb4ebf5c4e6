package rootfs

import (
	"errors"
	"io/fs"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// What a directory is opened for.
const (
	forNames = unix.O_PATH
	forSync  = unix.O_RDONLY
)

// walks is set when the kernel cannot follow a path without its links in one
// step: it is older than 5.6, or a filter does not know the call.
var walks atomic.Bool

// openDir opens a directory, none of whose components is a symbolic link.
func openDir(path string, purpose int) (int, error) {
	if !walks.Load() {
		how := unix.OpenHow{Flags: uint64(purpose | unix.O_DIRECTORY | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_SYMLINKS}
		fd := -1
		err := retry("open", path, func() (err error) {
			fd, err = unix.Openat2(unix.AT_FDCWD, path, &how)
			if errors.Is(err, unix.EAGAIN) {
				err = unix.EINTR // something was renamed meanwhile
			}
			return err
		})
		switch {
		case errors.Is(err, unix.ELOOP):
			return -1, &fs.PathError{Op: "open", Path: path, Err: ErrLink}
		case errors.Is(err, unix.ENOSYS):
			walks.Store(true)
		case errors.Is(err, unix.EPERM): // perhaps the filter of a container
		case err != nil:
			return -1, err
		default:
			return fd, nil
		}
	}
	return walkDir(path, purpose)
}

package rootfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// What a directory is opened for.
const (
	forNames = unix.O_SEARCH
	forSync  = unix.O_RDONLY
)

// openDir opens a directory, none of whose components is a symbolic link.
func openDir(path string, purpose int) (int, error) {
	fd := -1
	err := retry("open", path, func() (err error) {
		fd, err = unix.Open(path, purpose|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW_ANY, 0)
		return err
	})
	switch {
	case errors.Is(err, unix.ELOOP):
		return -1, &fs.PathError{Op: "open", Path: path, Err: ErrLink}
	case errors.Is(err, unix.EINVAL): // a version that does not know the flag
		return walkDir(path, purpose)
	}
	return fd, err
}

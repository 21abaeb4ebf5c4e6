//go:build unix

package rootfs

import (
	"errors"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// walkDir opens a directory one component after the other.
func walkDir(path string, purpose int) (int, error) {
	at, err := openStep(unix.AT_FDCWD, "/", "/", purpose)
	if err != nil {
		return -1, err
	}
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if part == "" {
			continue
		}
		next, err := openStep(at, part, path, purpose)
		_ = unix.Close(at)
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

func openStep(dir int, name, path string, purpose int) (int, error) {
	fd := -1
	err := retry("open", path, func() (err error) {
		fd, err = unix.Openat(dir, name, purpose|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err == nil {
		return fd, nil
	}
	// Systems have different errors for a link here.
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return -1, &fs.PathError{Op: "open", Path: path, Err: errors.Join(ErrLink, err)}
	}
	return -1, err
}

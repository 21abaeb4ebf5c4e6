//go:build unix && !linux && !darwin

package rootfs

import "golang.org/x/sys/unix"

// What a directory is opened for.
const (
	forNames = unix.O_RDONLY
	forSync  = unix.O_RDONLY
)

// openDir opens a directory, none of whose components is a symbolic link.
func openDir(path string, purpose int) (int, error) { return walkDir(path, purpose) }

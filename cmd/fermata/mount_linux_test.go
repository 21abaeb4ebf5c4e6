package main

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// canMount reports whether disks can be mounted here, which needs root.
var canMount = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp("", "fermata-mount")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	undo, err := mountTmpfs(dir, "64k")
	if err != nil {
		return false
	}
	undo()
	return true
})

func mountTmpfs(dir, size string) (undo func(), err error) {
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size="+size); err != nil {
		return nil, &os.PathError{Op: "mount tmpfs", Path: dir, Err: err}
	}
	return unmount(dir), nil
}

// makeReadonly makes a directory read-only, for root too.
func makeReadonly(dir string) (undo func(), err error) {
	if os.Geteuid() != 0 {
		return func() { _ = chmodDirs(dir, 0o755) }, chmodDirs(dir, 0o555)
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return nil, &os.PathError{Op: "mount", Path: dir, Err: err}
	}
	undo = unmount(dir)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		undo()
		return nil, &os.PathError{Op: "remount", Path: dir, Err: err}
	}
	return undo, nil
}

func unmount(dir string) func() {
	return func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }
}

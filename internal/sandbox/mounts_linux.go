package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// mount makes everything read-only but the writable binds.
func (p *plan) mount() error {
	if p.Mounts == mountsNone {
		return nil
	}
	cwd, err := unix.Getwd()
	if err != nil {
		return os.NewSyscallError("getcwd", err)
	}

	if p.Mounts == mountsOwn {
		if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWIPC); err != nil {
			return os.NewSyscallError("unshare", err)
		}
	}
	if here, err := mountNamespace(); err != nil || p.Outside == "" || here == p.Outside {
		return fmt.Errorf("still among the mounts of others: %w", errors.Join(err, ErrUnable))
	}
	if err := setTree(unix.AT_FDCWD, "/", &unix.MountAttr{Propagation: unix.MS_PRIVATE}); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}

	// Copies of the writable parts are taken while they still are writable.
	trees, err := cloneTrees(p.Binds)
	if err != nil {
		return err
	}
	if err := setTree(unix.AT_FDCWD, "/", &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make everything read-only: %w", err)
	}
	for i, b := range p.Binds {
		if err := attach(trees[i], string(b.Path)); err != nil {
			return err
		}
	}
	if err := p.mountOwnDevices(); err != nil {
		return err
	}
	for _, name := range p.Secret {
		if err := hide(string(name)); err != nil {
			return fmt.Errorf("hide: %w", err)
		}
	}

	// We still stand on the old mounts, below the new ones.
	if err := unix.Chdir(cwd); err != nil {
		return &os.PathError{Op: "chdir", Path: cwd, Err: err}
	}
	return nil
}

// mountNamespace names the mount namespace of the calling thread.
func mountNamespace() (string, error) { return os.Readlink("/proc/thread-self/ns/mnt") }

// setTree changes a mount and all below it.
func setTree(dirfd int, name string, attr *unix.MountAttr) error {
	return os.NewSyscallError("mount_setattr", unix.MountSetattr(dirfd, name, unix.AT_RECURSIVE|unix.AT_EMPTY_PATH, attr))
}

// cloneTrees returns an unattached copy of each bind, with the mounts below it.
func cloneTrees(binds []bind) ([]int, error) {
	trees := make([]int, len(binds))
	for i, b := range binds {
		tree, err := cloneTree(string(b.Path), b.Write)
		if err != nil {
			return nil, err
		}
		// Devices are reached through /dev alone, which is not writable.
		attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV}
		if !b.Write {
			attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
		}
		if err := setTree(tree, "", attr); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Path, err)
		}
		trees[i] = tree
	}
	return trees, nil
}

// cloneTree copies what is at name. What shall be written must not be a link: it
// was none when the plan was made.
func cloneTree(name string, write bool) (int, error) {
	fd, err := openPath(name)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)

	if kind, err := kindOf(fd); err != nil || write && kind == unix.S_IFLNK {
		return -1, &os.PathError{Op: "write", Path: name, Err: errors.Join(err, unix.ELOOP)}
	}
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, &os.PathError{Op: "open_tree", Path: name, Err: err}
	}
	return tree, nil
}

// attach puts a tree at its place and closes it.
func attach(tree int, name string) error {
	defer unix.Close(tree)
	fd, err := openPath(name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)

	err = unix.MoveMount(tree, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return &os.PathError{Op: "move_mount", Path: name, Err: err}
	}
	return nil
}

// mountOwnDevices gives the command its own terminals, so that it can make some
// and yet not reach those of the user, and its own shared memory.
func (p *plan) mountOwnDevices() error {
	err := mountNew("devpts", devPts, unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	if err == nil && p.Shm {
		err = mountNew("tmpfs", devShm, unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	}
	return err
}

// mountNew mounts a new file system, if there is a place for it.
func mountNew(kind, where string, flags uintptr, options string) error {
	err := unix.Mount(kind, where, kind, flags, options)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return &os.PathError{Op: "mount", Path: where, Err: err}
}

const (
	devPts = "/dev/pts"
	devShm = "/dev/shm"
)

// hide mounts an empty directory over a directory, and /dev/null over a file. What
// is gone needs no cover.
func hide(name string) error {
	fd, err := openPath(name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)

	kind, err := kindOf(fd)
	if err != nil {
		return err
	}
	if kind == unix.S_IFDIR {
		where := "/proc/self/fd/" + strconv.Itoa(fd)
		err := unix.Mount("tmpfs", where, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=0555")
		if err != nil {
			return &os.PathError{Op: "mount", Path: name, Err: err}
		}
		return nil
	}

	tree, err := cloneTree(os.DevNull, false)
	if err != nil {
		return err
	}
	return attach(tree, name)
}

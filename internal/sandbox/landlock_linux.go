package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights that are taken away wherever no rule gives them. Reading is not among
// them.
const (
	fileRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	treeRights = fileRights |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	deviceRights = fileRights | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	// nobodysRights are given nowhere: making device files.
	nobodysRights = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// devices may be written in every mode.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// knownRights are those of a version of Landlock.
func knownRights(version int) uint64 {
	var all uint64 = treeRights | deviceRights | nobodysRights
	for _, late := range []struct {
		version int
		rights  uint64
	}{
		{landlockRefer, unix.LANDLOCK_ACCESS_FS_REFER},
		{landlockTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{landlockDevices, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	} {
		if version < late.version {
			all &^= late.rights
		}
	}
	return all
}

// ruleset is a set of Landlock rules that is being made.
type ruleset struct {
	fd      int
	handled uint64 // rights that it is about
}

// restrictFiles takes the rights to write from the calling thread.
func (p *plan) restrictFiles() error {
	version := landlockVersion()
	if version < landlockFiles {
		return ErrUnable
	}

	attr := p.rulesetAttr(version)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_create_ruleset", errno)
	}
	defer unix.Close(int(fd))

	r := &ruleset{fd: int(fd), handled: attr.Handled_access_fs}
	if err := errors.Join(p.allowDevices(r), p.allowRoots(r), p.allowReading(r)); err != nil {
		return err
	}
	_, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}

func (p *plan) rulesetAttr(version int) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: knownRights(version)}
	if p.readsWithRules() {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_READ_FILE
	}
	if version >= landlockScopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if p.Network {
		return attr
	}
	if version >= landlockNetwork {
		// A socket may have come from elsewhere, so it is not enough to forbid
		// making one.
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	return attr
}

func (p *plan) allowDevices(r *ruleset) error {
	names := slices.Clone(devices)
	if p.Mounts != mountsNone {
		names = append(names, "/dev/ptmx", devPts) // its own ones
	}
	for _, name := range names {
		if err := r.allowPath(name, deviceRights); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}

	// The command's own terminal, which may be of another family than /dev/pts.
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		return r.allow(0, "terminal", deviceRights)
	}
	return nil
}

func (p *plan) allowRoots(r *ruleset) error {
	if p.Mounts != mountsNone && p.Shm {
		if err := r.allowPath(devShm, treeRights); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, root := range p.Roots {
		allow := r.allowPath
		if p.Mounts == mountsNone && p.holdsProtected(string(root)) {
			allow = func(name string, rights uint64) error { return p.allowEntries(r, name, rights) }
		}
		if err := allow(string(root), treeRights); err != nil {
			return err
		}
	}
	return nil
}

// holdsProtected reports whether something in name, or name itself, is protected.
func (p *plan) holdsProtected(name string) bool {
	return slices.ContainsFunc(p.Protected, func(q path) bool { return within(string(q), name) })
}

// allowEntries allows what is in dir without the protected paths. Landlock cannot
// take back what it gave to a directory, so dir itself gets nothing.
func (p *plan) allowEntries(r *ruleset, dir string, rights uint64) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case slices.Contains(p.Protected, path(name)) || e.Type()&os.ModeSymlink != 0:
			continue
		case p.holdsProtected(name):
			err = p.allowEntries(r, name, rights)
		default:
			err = r.allowPath(name, rights)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// readsWithRules reports whether reading is by rules: when there is a secret, and
// no mount can hide it.
func (p *plan) readsWithRules() bool { return p.Mounts == mountsNone && len(p.Secret) > 0 }

// allowReading allows to read all files but the secrets.
func (p *plan) allowReading(r *ruleset) error {
	if !p.readsWithRules() {
		return nil
	}
	return p.allowReadingIn(r, "/")
}

// allowReadingIn allows to read what is in dir now. Landlock cannot take back what
// it gave to a directory; so files that are made later right beside a secret, or
// beside a directory on the way to it, cannot be read.
func (p *plan) allowReadingIn(r *ruleset, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // then nothing in it can be read, which is less, not more
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case slices.Contains(p.Secret, path(name)) || e.Type()&os.ModeSymlink != 0:
			continue
		case slices.ContainsFunc(p.Secret, func(s path) bool { return within(string(s), name) }):
			err = p.allowReadingIn(r, name)
		default:
			err = r.allowPath(name, unix.LANDLOCK_ACCESS_FS_READ_FILE)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	return nil
}

func (r *ruleset) allowPath(name string, rights uint64) error {
	fd, err := openPath(name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return r.allow(fd, name, rights)
}

// allow gives rights to an open file and, if it is a directory, to all below.
func (r *ruleset) allow(fd int, name string, rights uint64) error {
	kind, err := kindOf(fd)
	if err != nil {
		return fmt.Errorf("allow %s: %w", name, err)
	}
	switch kind {
	case unix.S_IFDIR:
	case unix.S_IFLNK:
		return nil
	default:
		rights &= deviceRights | unix.LANDLOCK_ACCESS_FS_READ_FILE // the others are about directories
	}

	if rights &= r.handled; rights == 0 {
		return nil
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("allow %s: %w", name, os.NewSyscallError("landlock_add_rule", errno))
	}
	return nil
}

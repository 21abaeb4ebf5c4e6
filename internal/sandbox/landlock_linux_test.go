package sandbox

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestKnownRights has each version of Landlock know what it brought, and nothing
// younger: the kernel refuses rights that it does not know.
func TestKnownRights(t *testing.T) {
	for _, c := range []struct {
		version int
		last    uint64 // the highest right of that version
	}{
		{1, unix.LANDLOCK_ACCESS_FS_MAKE_SYM},
		{2, unix.LANDLOCK_ACCESS_FS_REFER},
		{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{4, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		{8, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		{9, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
		{99, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
	} {
		reading := uint64(unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR)
		if got, want := knownRights(c.version), (2*c.last-1)&^reading; got != want {
			t.Errorf("version %d: got %#x, want %#x", c.version, got, want)
		}
	}
}

func TestRulesetOfOldKernels(t *testing.T) {
	for _, c := range []struct {
		version     int
		network     bool
		net, scoped uint64
		sockets     bool
	}{
		{1, false, 0, 0, false},
		{4, false, 3, 0, false},
		{4, true, 0, 0, false},
		{6, false, 3, 3, false},
		{6, true, 0, 3, false},
		{9, false, 3, 3, true},
		{9, true, 0, 3, false},
	} {
		p := plan{Network: c.network}
		got := p.rulesetAttr(c.version)
		if got.Handled_access_net != c.net || got.Scoped != c.scoped || got.Handled_access_fs&socketRights != 0 != c.sockets {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
}

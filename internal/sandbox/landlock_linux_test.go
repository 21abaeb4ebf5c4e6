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
		{99, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
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
	}{
		{1, false, 0, 0},
		{4, false, 3, 0},
		{4, true, 0, 0},
		{6, false, 3, 3},
		{6, true, 0, 3},
	} {
		p := plan{Network: c.network}
		got := p.rulesetAttr(c.version)
		if got.Handled_access_net != c.net || got.Scoped != c.scoped {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
}

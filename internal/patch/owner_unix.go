//go:build unix

package patch

import (
	"os"
	"syscall"
)

// keepOwner gives a new file the owner and group of the file it replaces. That
// may not be permitted; then at least the group, and else the file is ours, as
// with every editor that replaces files.
func keepOwner(f *os.File, like string) {
	old, err := os.Stat(like)
	if err != nil {
		return
	}
	from, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	if f.Chown(int(from.Uid), int(from.Gid)) != nil {
		_ = f.Chown(-1, int(from.Gid))
	}
}

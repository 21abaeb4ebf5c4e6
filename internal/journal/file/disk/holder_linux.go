package disk

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Holder returns the process that has locked the file, or 0 if that is not known.
func Holder(f File) int {
	st, err := f.Stat()
	if err != nil {
		return 0
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close()
	inode := fmt.Sprintf(":%d", sys.Ino) // behind the device, whose form differs between file systems
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		var pid int
		var kind, mode, access, file string
		_, err := fmt.Sscan(lines.Text(), new(string), &kind, &mode, &access, &pid, &file)
		if err == nil && kind == "FLOCK" && strings.HasSuffix(file, inode) {
			return pid
		}
	}
	return 0
}

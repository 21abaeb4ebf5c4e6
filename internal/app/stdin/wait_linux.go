package stdin

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// fed reports whether a process other than us and those that started us can
// write to a pipe. Processes that we may not look at do not count.
func fed(pipe *os.File) bool {
	end, err := pipe.Stat()
	if err != nil || end.Mode()&os.ModeNamedPipe == 0 {
		return false // a socket: no shell puts one between two commands
	}
	ours := ancestors()
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err == nil && !ours[pid] && writes(proc, end) {
			return true
		}
	}
	return false
}

// writes reports whether a process has a pipe open for writing.
func writes(proc string, pipe os.FileInfo) bool {
	fds, _ := os.ReadDir(proc + "/fd")
	for _, fd := range fds {
		info, err := os.Stat(proc + "/fd/" + fd.Name())
		if err == nil && os.SameFile(info, pipe) && forWriting(proc+"/fdinfo/"+fd.Name()) {
			return true
		}
	}
	return false
}

func forWriting(fdinfo string) bool {
	b, err := os.ReadFile(fdinfo)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if flags, ok := strings.CutPrefix(line, "flags:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(flags), 8, 64)
			return err == nil && n&uint64(os.O_WRONLY|os.O_RDWR) != 0
		}
	}
	return false
}

// ancestors are we, who started us, who started them, and so on.
func ancestors() map[int]bool {
	pids := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !pids[pid]; pid = parent(pid) {
		pids[pid] = true
	}
	return pids
}

func parent(pid int) (ppid int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	b = b[bytes.LastIndexByte(b, ')')+1:] // the name may have anything in it
	var state string
	_, _ = fmt.Sscan(string(b), &state, &ppid)
	return ppid
}

package remote

import (
	"bytes"
	"fmt"
	"os"
)

// runs reports whether a process is known to be neither stopped (SIGSTOP, Ctrl-Z, a debugger) nor dead.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	state := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name before it may have brackets, too
	return len(state) > 0 && !bytes.ContainsAny(state[:1], "TtZXx")
}

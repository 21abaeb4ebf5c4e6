package tree

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Halt halts what is below the calling shim, generation by generation, until nobody
// new is found or the limit is over. Who is halted does not fork, and keeps his
// place among the processes that the user may have: so a storm at that limit comes
// to a standstill, as long as nobody waits for its dead. To kill at once would make
// room for new ones.
func Halt(limit time.Duration) {
	h := halter{done: make(map[int]bool)}
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		before := len(h.done)
		h.haltBelow(os.Getpid(), deadline)
		if len(h.done) > before {
			continue
		}
		if !h.haltRest() {
			return
		}
	}
}

// halter knows whom it has halted: their numbers are not used again while their
// parents are halted, or do not wait for them.
type halter struct{ done map[int]bool }

// haltBelow halts the children of a process, then theirs. The lists of children
// are quicker to read than the process table, and one that was read after its
// owner was halted is complete.
func (h *halter) haltBelow(root int, deadline time.Time) {
	parents := []int{root}
	for len(parents) > 0 && time.Now().Before(deadline) {
		parent := parents[0]
		parents = parents[1:]
		for _, pid := range childrenOf(parent) {
			if h.done[pid] {
				continue
			}
			h.done[pid] = true
			if haltChild(pid, parent) {
				parents = append(parents, pid)
			}
		}
	}
}

// haltRest halts what only the process table tells: children of other threads than
// the first, and all where the kernel keeps no lists. It reports whether there was
// somebody.
func (h *halter) haltRest() bool {
	table, err := Table()
	if err != nil {
		return false
	}
	found := false
	for _, p := range alive(Descendants(table, os.Getpid())) {
		if !h.done[p.PID] && Signal(p, syscall.SIGSTOP) == nil {
			h.done[p.PID], found = true, true
		}
	}
	return found
}

// childrenOf lists the children of the first thread of a process, to which orphans
// fall as well.
func childrenOf(pid int) []int {
	n := strconv.Itoa(pid)
	text, err := os.ReadFile("/proc/" + n + "/task/" + n + "/children")
	if err != nil {
		return nil
	}
	var list []int
	for field := range bytes.FieldsSeq(text) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// haltChild halts a process if it is a child of parent, or has just become ours. It
// reports whether it lives.
func haltChild(pid, parent int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)

	p, err := Read(pid)
	if err != nil || p.Dead() || (p.PPID != parent && p.PPID != os.Getpid()) {
		return false
	}
	return unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0) == nil
}

package tree

import "slices"

// Process is one row of the system's process table. Number and start time
// together name a process for good.
type Process struct {
	PID, PPID, PGrp, Session int
	State                    byte // a letter, as in /proc/PID/stat
	Threads                  int
	Start                    uint64 // in clock ticks after boot
}

// Dead reports whether p only waits for its parent to notice. A process whose
// first thread has ended while others run looks like a zombie but is none.
func (p Process) Dead() bool {
	return (p.State == 'Z' && p.Threads <= 1) || p.State == 'X'
}

// Descendants returns those processes of table that descend from one of roots,
// without the roots themselves.
func Descendants(table []Process, roots ...int) []Process {
	children := make(map[int][]Process, len(table))
	for _, p := range table {
		children[p.PPID] = append(children[p.PPID], p)
	}

	var found []Process
	seen := make(map[int]bool, len(roots))
	for _, r := range roots {
		seen[r] = true
	}
	for len(roots) > 0 {
		next := roots[0]
		roots = roots[1:]
		for _, p := range children[next] {
			if seen[p.PID] {
				continue
			}
			seen[p.PID] = true
			found = append(found, p)
			roots = append(roots, p.PID)
		}
	}
	return found
}

// alive returns list without the dead, in place.
func alive(list []Process) []Process {
	return slices.DeleteFunc(list, Process.Dead)
}

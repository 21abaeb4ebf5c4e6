package tree

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// lookFor returns a function that lists the leftovers of id and notes them in
// found. What was found once stays on the list while it lives, also when those
// who proved that it belongs here are dead.
func lookFor(id Identity, found map[int]Process) func() ([]Process, error) {
	return func() ([]Process, error) {
		table, err := Table()
		if err != nil {
			return nil, err
		}
		for _, p := range leftovers(table, id, belongs) {
			found[p.PID] = p
		}
		var list []Process
		for _, p := range table {
			if known, ok := found[p.PID]; ok && known.Start == p.Start {
				list = append(list, p)
			}
		}
		return alive(list), nil
	}
}

// leftovers picks the command's living processes out of table, but not the shim:
// it must live longest, because orphans fall to it and stay known. marked looks at
// what processes inherit: environment and limits.
func leftovers(table []Process, id Identity, marked func(Process, Identity) bool) []Process {
	proven := make(map[int]bool)
	var roots []int
	sessionIsOurs := false
	for _, p := range table {
		switch {
		case p.PID == id.PID && p.Start == id.Start:
			roots = append(roots, p.PID)
		case p.PID == id.Leader && p.Start == id.LeaderStart:
			proven[p.PID], sessionIsOurs = true, true
		case p.Start >= id.Start && marked(p, id):
			proven[p.PID] = true
			// The number of a session is not given away while it has members.
			sessionIsOurs = sessionIsOurs || p.Session == id.Leader
		}
	}
	for _, p := range table {
		if sessionIsOurs && id.Leader != 0 && p.Session == id.Leader {
			proven[p.PID] = true
		}
	}
	for pid := range proven {
		roots = append(roots, pid)
	}
	for _, p := range Descendants(table, roots...) {
		proven[p.PID] = true
	}

	excludeSelf(proven, table)
	var found []Process
	for _, p := range table {
		if proven[p.PID] {
			found = append(found, p)
		}
	}
	return alive(found)
}

// excludeSelf takes this process and its ancestors out: fermata may have been started
// again from what its predecessor left.
func excludeSelf(proven map[int]bool, table []Process) {
	parent := make(map[int]int, len(table))
	for _, p := range table {
		parent[p.PID] = p.PPID
	}
	for pid := os.Getpid(); pid > 0; pid = parent[pid] {
		delete(proven, pid)
	}
}

// belongs reports whether p has inherited what marks the processes of a command.
func belongs(p Process, id Identity) bool { return hasMark(p, id.Mark) || carriesToken(p, id.Token) }

// carriesToken reports whether p has the token in its environment. That of
// another user's process can be read by root only.
func carriesToken(p Process, token string) bool {
	if token == "" {
		return false
	}

	env, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/environ")
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		value, found := strings.CutPrefix(string(kv), TokenVariable+"=")
		if found && hasToken(value, token) {
			return true
		}
	}
	return false
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A row is a process of the system. Number and start time name it for good.
type row struct {
	pid, ppid int
	start     string
	state     string
	threads   string
	name      string
}

func (r row) String() string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.pid))
	return fmt.Sprintf("\n%d, parent %d, %s, %s: %q", r.pid, r.ppid, r.state, r.name, line)
}

// dead reports whether a process only waits for its parent to notice.
func (r row) dead() bool {
	return r.state == "X" || r.state == "Z" && r.threads == "1" || r.threads == "0"
}

// readRow reads /proc/PID/stat; see proc_pid_stat(5).
func readRow(pid int) (row, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if err != nil || open < 0 || end < open {
		return row{}, false
	}
	f := strings.Fields(string(text[end+1:]))
	if len(f) < 20 {
		return row{}, false
	}
	ppid, err := strconv.Atoi(f[1])
	return row{pid, ppid, f[19], f[0], f[17], string(text[open+1 : end])}, err == nil
}

// processes lists what lives.
func processes() []row {
	names, _ := filepath.Glob("/proc/[0-9]*")
	var list []row
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if r, ok := readRow(pid); ok && !r.dead() {
			list = append(list, r)
		}
	}
	return list
}

// below lists what lives below a process.
func below(pid int) []row {
	all := processes()
	parents := []int{pid}
	var found []row
	for len(parents) > 0 {
		var next []int
		for _, r := range all {
			if slices.Contains(parents, r.ppid) {
				found = append(found, r)
				next = append(next, r.pid)
			}
		}
		parents = next
	}
	return found
}

// traces lists what lives and has to do with a directory: it runs a program of
// it, works in it, or has its name in its arguments or environment.
func traces(dir string) []row {
	var found []row
	for _, r := range processes() {
		if r.pid != os.Getpid() && touches(r.pid, dir) {
			found = append(found, r)
		}
	}
	return found
}

func touches(pid int, dir string) bool {
	for _, link := range []string{"exe", "cwd"} {
		to, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", pid, link))
		if err == nil && strings.HasPrefix(to, dir+"/") {
			return true
		}
	}
	for _, name := range []string{"cmdline", "environ"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err == nil && bytes.Contains(text, []byte(dir)) {
			return true
		}
	}
	return false
}

// lives reports whether that very process lives.
func lives(r row) bool {
	now, ok := readRow(r.pid)
	return ok && now.start == r.start && !now.dead()
}

// noneLeft waits until nothing that has to do with the place lives, nor any of
// those that did.
func (pl *place) noneLeft(t testing.TB, did []row) {
	t.Helper()
	var left []row
	defer func() {
		if t.Failed() && len(left) > 0 {
			t.Logf("alive: %v", left)
		}
	}()
	eventually(t, "nothing of it is alive", func() bool {
		left = traces(pl.dir)
		for _, r := range did {
			if lives(r) {
				left = append(left, r)
			}
		}
		return len(left) == 0
	})
}

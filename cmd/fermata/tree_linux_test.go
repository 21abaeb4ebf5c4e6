package main

import (
	"bytes"
	"errors"
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
	start     int64 // in ticks since the system was booted
	state     string
	threads   string
	flags     uint64 // of its first thread
	name      string
}

func (r row) String() string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.pid))
	return fmt.Sprintf("\n%d, parent %d, %s, %s: %q", r.pid, r.ppid, r.state, r.name, line)
}

// dead reports whether a process will not run another instruction of its own: it only waits for its parent to notice, or
// the kernel takes it down, which takes a moment on a busy machine.
func (r row) dead() bool {
	return r.ended() || r.ends() && !slices.ContainsFunc(r.tasks(), func(thread row) bool { return !thread.ends() })
}

// ended reports whether a process has nothing left but its number: its files and locks are free.
func (r row) ended() bool {
	return r.state == "X" || r.state == "Z" && r.threads == "1" || r.threads == "0"
}

// ends reports whether a thread has begun to end: PF_EXITING of the kernel's sched.h.
func (r row) ends() bool { return r.flags&4 != 0 }

// tasks are the threads of a process.
func (r row) tasks() []row {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", r.pid))
	var list []row
	for _, name := range names {
		if thread, ok := readStat(name); ok {
			list = append(list, thread)
		}
	}
	return list
}

func readRow(pid int) (row, bool) { return readStat(fmt.Sprintf("/proc/%d/stat", pid)) }

// readStat reads /proc/PID/stat; see proc_pid_stat(5).
func readStat(file string) (row, bool) {
	text, err := os.ReadFile(file)
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if err != nil || open < 0 || end < open {
		return row{}, false
	}
	f := strings.Fields(string(text[end+1:]))
	if len(f) < 20 {
		return row{}, false
	}
	pid, err1 := strconv.Atoi(strings.TrimSpace(string(text[:open])))
	ppid, err2 := strconv.Atoi(f[1])
	flags, err3 := strconv.ParseUint(f[6], 10, 64)
	start, err4 := strconv.ParseInt(f[19], 10, 64)
	return row{pid, ppid, start, f[0], f[17], flags, string(text[open+1 : end])}, errors.Join(err1, err2, err3, err4) == nil
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
	self, _ := readRow(os.Getpid())
	var found []row
	for _, r := range processes() {
		if r.pid != self.pid && r.start >= self.start && touches(r.pid, dir) { // what is older than the test has nothing to do with it
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

// hasEnded reports whether that very process has ended.
func hasEnded(r row) bool {
	now, ok := readRow(r.pid)
	return !ok || now.start != r.start || now.ended()
}

// isStopped reports whether no thread of a process runs any more since a SIGSTOP, which takes a moment on a busy machine.
func isStopped(pid int) bool {
	threads := row{pid: pid}.tasks()
	return len(threads) > 0 && !slices.ContainsFunc(threads, func(thread row) bool { return thread.state != "T" })
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

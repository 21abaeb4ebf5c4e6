package tree

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// Cgroup is a control group of the kernel that holds the processes of one command:
// they are in it from birth, and are killed all at once. It can be had by root, and
// by users to whom a part of the hierarchy was delegated. A nil Cgroup works and
// does nothing.
type Cgroup struct{ dir *os.File }

const cgroupPrefix = "fermata-"

// NewCgroup makes a cgroup below that of this process, or returns nil.
func NewCgroup() *Cgroup {
	parent := ownCgroup()
	if parent == "" {
		return nil
	}
	name := filepath.Join(parent, cgroupPrefix+rand.Text())
	if err := os.Mkdir(name, 0o755); err != nil {
		return nil
	}
	dir, err := os.Open(name)
	if _, statErr := os.Stat(filepath.Join(name, "cgroup.kill")); err != nil || statErr != nil { // Linux before 5.14
		_ = os.Remove(name)
		return nil
	}
	return &Cgroup{dir}
}

// ownCgroup returns the directory of this process in the unified hierarchy, or
// nothing. If the process is moved later, its commands begin where it was.
var ownCgroup = sync.OnceValue(func() string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(own)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok || strings.Contains(name, "..") { // outside of our namespace
			continue
		}
		for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
			dir := filepath.Join(mount, name)
			if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil && isUnified(mount) {
				return dir
			}
		}
	}
	return ""
})

// isUnified reports whether a mount is the unified hierarchy.
func isUnified(mount string) bool {
	_, err := os.Stat(filepath.Join(mount, "cgroup.controllers"))
	return err == nil
}

// Dir names the cgroup for Identity.
func (c *Cgroup) Dir() string {
	if c == nil {
		return ""
	}
	return c.dir.Name()
}

// FD is for starting a process in it.
func (c *Cgroup) FD() (fd int, ok bool) {
	if c == nil {
		return -1, false
	}
	return int(c.dir.Fd()), true
}

// Kill kills all that is in it.
func (c *Cgroup) Kill() { killCgroup(c.Dir()) }

// Remove removes it, if it is empty.
func (c *Cgroup) Remove() { removeCgroup(c.Dir()) }

// isCgroup makes sure that dir is one that NewCgroup has made.
func isCgroup(dir string) bool {
	return filepath.IsAbs(dir) && strings.HasPrefix(filepath.Base(dir), cgroupPrefix)
}

func killCgroup(dir string) {
	if isCgroup(dir) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
	}
}

func removeCgroup(dir string) {
	if isCgroup(dir) {
		_ = os.Remove(dir)
	}
}

// inCgroup lists the processes in a cgroup.
func inCgroup(dir string) []Process {
	var list []Process
	for _, pid := range pidsIn(dir) {
		if p, err := Read(pid); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// pidsIn returns the numbers of the processes in a cgroup.
func pidsIn(dir string) []int {
	if !isCgroup(dir) {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for field := range bytes.FieldsSeq(text) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// EndStorm kills a command that has a cgroup and many processes, without SIGTERM, if so many want to run on
// this machine that its shim would get a processor too late. It returns how many it killed.
func EndStorm(id Identity) int {
	load, err := os.ReadFile("/proc/loadavg")
	if id.Cgroup == "" || err != nil {
		return 0
	}
	own := len(pidsIn(id.Cgroup))
	if !isStorm(string(load), own) {
		return 0
	}
	killCgroup(id.Cgroup)
	return own
}

// isStorm reports whether far more threads want to run than there are processors, and a command with so many
// processes may be the cause: one with few can be ended politely, however busy others are.
func isStorm(loadavg string, own int) bool {
	return own >= Many && runnable(loadavg) > 64+16*runtime.NumCPU()
}

// runnable finds the number of threads that want to run in the text of
// /proc/loadavg.
func runnable(loadavg string) int {
	fields := strings.Fields(loadavg)
	if len(fields) < 4 {
		return 0
	}
	running, _, _ := strings.Cut(fields[3], "/")
	n, _ := strconv.Atoi(running)
	return n
}

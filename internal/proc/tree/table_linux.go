package tree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Read reads one row of the process table.
func Read(pid int) (Process, error) {
	var buf [1024]byte // a row has at most 52 numbers
	n, err := readFile("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return Process{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return parseStat(pid, buf[:n])
}

// readFile fills buf from a file of /proc without the cost of an os.File.
func readFile(name string, buf []byte) (int, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)

	for {
		n, err := unix.Read(fd, buf)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}

// Positions in /proc/PID/stat after the name, see proc_pid_stat(5).
const (
	statPPID    = 1
	statPgrp    = 2
	statSession = 3
	statThreads = 17
	statStart   = 19
)

// parseStat reads the text of /proc/PID/stat. The name stands in parentheses and
// may itself contain any of them, so the last one counts.
func parseStat(pid int, text []byte) (Process, error) {
	i := bytes.LastIndexByte(text, ')')
	fields := bytes.Fields(text[i+1:])
	if i < 0 || len(fields) <= statStart {
		return Process{}, fmt.Errorf("read process %d: unexpected form of its status", pid)
	}

	p := Process{PID: pid, State: fields[0][0]}
	for _, f := range [...]struct {
		at int
		to *int
	}{{statPPID, &p.PPID}, {statPgrp, &p.PGrp}, {statSession, &p.Session}, {statThreads, &p.Threads}} {
		v, err := strconv.Atoi(string(fields[f.at]))
		if err != nil {
			return Process{}, fmt.Errorf("read process %d: %w", pid, err)
		}
		*f.to = v
	}
	start, err := strconv.ParseUint(string(fields[statStart]), 10, 64)
	if err != nil {
		return Process{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	p.Start = start
	return p, nil
}

// Table reads all rows that can be read. Processes that end meanwhile are
// left out.
func Table() ([]Process, error) { return tableUntil(time.Time{}) }

// tableUntil is Table that returns what it has at the deadline, if there is one. It
// begins with the highest numbers: what a process has started is mostly younger than it is.
func tableUntil(deadline time.Time) ([]Process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()

	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	table := make([]Process, 0, len(names))
	for i, name := range slices.Backward(names) {
		if (len(names)-i)%64 == 0 && !deadline.IsZero() && time.Now().After(deadline) {
			break
		}
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := Read(pid); err == nil {
			table = append(table, p)
		}
	}
	return table, nil
}

// lookLimit bounds a look at the tree of a command. In a fork storm we get so
// little of a processor that it would take seconds, and nothing is killed meanwhile.
const lookLimit = 250 * time.Millisecond

// Below returns the processes below this one, the dead too. On a machine that is
// very busy these are not all.
func Below() ([]Process, error) {
	table, err := tableUntil(time.Now().Add(lookLimit))
	if err != nil {
		return nil, err
	}
	return Descendants(table, os.Getpid()), nil
}

// Signal signals p and no other: the descriptor holds the process
// fast, then the start time proves that the number was not used again.
func Signal(p Process, sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	if err == nil {
		defer unix.Close(fd)
	}

	now, statErr := Read(p.PID)
	if statErr != nil || now.Start != p.Start {
		return unix.ESRCH
	}

	if err != nil { // Linux before 5.3
		return unix.Kill(p.PID, sig)
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// SignalGroup signals a process group, but never our own.
func SignalGroup(pgrp int, sig syscall.Signal) error {
	if pgrp == unix.Getpgrp() {
		return nil
	}
	return unix.Kill(-pgrp, sig)
}

// KillAll kills all others at once, which only the first process of a namespace
// can do. It needs no list of them, which a fork storm makes long.
func KillAll(scoped bool) {
	if CanKillAll(scoped) {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
}

// CanKillAll reports whether KillAll reaches the command's processes and no other.
func CanKillAll(scoped bool) bool { return os.Getpid() == 1 || scoped }

// SweepChildren kills what is right below the calling shim: there the orphans of
// a fork storm land. They are gone before the process table is read, but not
// before this list is, which the kernel keeps.
func SweepChildren() []int {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var hit []int
	for _, t := range threads {
		list, err := os.ReadFile("/proc/self/task/" + t.Name() + "/children")
		if err != nil {
			continue // not every kernel has it
		}
		for field := range bytes.FieldsSeq(list) {
			pid, err := strconv.Atoi(string(field))
			if err == nil && !hasEnded(pid) && unix.Kill(pid, unix.SIGKILL) == nil {
				hit = append(hit, pid)
			}
		}
	}
	return hit
}

// hasEnded reports whether a child has ended or was killed by us before.
func hasEnded(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err != nil || info.Signo != 0
}

// BootID names this run of the kernel, and the PID namespace, in which process
// numbers have their meaning.
func BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}

	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", fmt.Errorf("read process namespace: %w", err)
	}
	return strings.TrimSpace(string(id)) + "/" + ns, nil
}

package tree

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// NewMark draws a mark for a command of this process, or returns zero if it cannot
// have one. If this process belongs to a command itself, its own mark stays the
// hard limit, so that whoever looks for that one finds the new command as well.
func NewMark() uint64 {
	const least, most = 1 << 32, 1 << 62 // no limit that is set by chance; fits a signed number
	limit, err := fileLocks()
	if err != nil || limit.Max <= least {
		return 0
	}
	return least + rand.Uint64N(min(limit.Max, most)-least)
}

// SetMark marks the calling process, and what it starts from now on.
func SetMark(mark uint64) error {
	if mark == 0 {
		return nil
	}
	limit, err := fileLocks()
	if err != nil {
		return err
	}
	limit.Cur = mark
	if limit.Max == unix.RLIM_INFINITY {
		limit.Max = mark
	}
	return os.NewSyscallError("setrlimit", unix.Setrlimit(unix.RLIMIT_LOCKS, &limit))
}

func fileLocks() (limit unix.Rlimit, err error) {
	err = os.NewSyscallError("getrlimit", unix.Getrlimit(unix.RLIMIT_LOCKS, &limit))
	return limit, err
}

// hasMark reports whether p has the mark. Anybody may read the limits of a process.
func hasMark(p Process, mark uint64) bool {
	if mark == 0 {
		return false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/limits")
	return err == nil && markIn(text, mark)
}

// markIn looks for a mark in the text of /proc/PID/limits.
func markIn(text []byte, mark uint64) bool {
	want := strconv.FormatUint(mark, 10)
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("Max file locks"))
		if !ok {
			continue
		}
		for field := range bytes.FieldsSeq(rest) {
			if string(field) == want {
				return true
			}
		}
	}
	return false
}

// Package stdin reads a prompt, or text beside one, from a pipe: as long as a writer may still
// write to it, and no longer.
package stdin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Pace is the unit of the times below. The tests make it shorter before they call main, or build a binary
// with -ldflags "-X …/internal/app/stdin.Pace=200ms", so that they need not wait.
var Pace = "1s"

var pace = sync.OnceValue(func() time.Duration {
	d, err := time.ParseDuration(Pace)
	if err != nil || d <= 0 {
		return time.Second
	}
	return d
})

// stdinNotice is after how long people learn that we wait for stdin.
func stdinNotice() time.Duration { return 2 * pace() }

// stdinPatience is how long we wait, beside a prompt, for something to come from whoever
// started us.
func stdinPatience() time.Duration { return 5 * pace() }

// stdinGlance is how often we look who could still write.
func stdinGlance() time.Duration { return pace() }

// Read reads all of stdin, without white space around it. waiting is called if that takes a while.
func Read(in io.Reader, waiting func()) (string, error) {
	defer time.AfterFunc(stdinNotice(), waiting).Stop()
	return readAll(in)
}

// ReadBeside reads all of stdin beside a prompt. It reports false if nothing came.
func ReadBeside(in io.Reader, waiting func()) (string, bool, error) {
	defer time.AfterFunc(stdinNotice(), waiting).Stop()
	if !isComing(in) {
		return "", false, nil
	}
	text, err := readAll(in)
	return text, true, err
}

// promptMax is far more than any model reads. Without it a stream that does not
// end would fill the memory. The tests make it smaller.
var promptMax int64 = 64 << 20

func readAll(in io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(in, promptMax+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the prompt from stdin: %w", err)
	case int64(len(b)) > promptMax:
		return "", fmt.Errorf("the prompt on stdin is larger than %d MiB", promptMax>>20)
	}
	return decodeText(b)
}

// isComing waits for something on stdin beside a prompt, or for its end.
//
// Many who start a program leave it an open pipe into which no writer ever writes; we
// must not wait for those. But the slow command before us in a pipeline may take minutes
// to its first byte, and that must not be lost. So we go on without stdin after a while,
// unless a process other than those that started us can write to it. Nothing is read
// meanwhile: what is not for us is left for whoever comes next.
func isComing(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return true
	}
	if ready(f, stdinPatience()) {
		return true
	}
	for fed(f) {
		if ready(f, stdinGlance()) {
			return true
		}
	}
	return ready(f, 0) // who could write may have done so and ended
}

// ready waits until there is something to read, or the end, and reports whether
// that came in time. What cannot be waited for is ready.
func ready(f *os.File, limit time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	for deadline := time.Now().Add(limit); ; {
		left := max(time.Until(deadline), 0)
		n, err := unix.Poll(fds, int(left/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || n > 0:
			return true
		case left == 0:
			return false
		}
	}
}

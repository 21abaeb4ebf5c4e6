package main

import (
	"io"

	"github.com/fermata-agent/fermata/internal/surface/exec"
)

// toPeople is w for people who read what others wrote. A terminal only ever obeys
// us, so it does not get what would steer it; a pipe and a file get every byte.
func toPeople(w io.Writer) io.Writer {
	if terminal(w) {
		return harmless{w}
	}
	return w
}

type harmless struct{ w io.Writer }

// Write expects whole characters.
func (c harmless) Write(b []byte) (int, error) {
	if _, err := io.WriteString(c.w, exec.Clean(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

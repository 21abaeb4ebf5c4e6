//go:build unix

package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// source is one pipe or terminal to read from. It is in non-blocking mode, so
// that a deadline ends a pending read.
type source struct {
	stream Stream
	file   *os.File
}

const (
	chunkSize = 32 << 10

	// lateReads is more than any pipe or terminal holds. A stranger that holds
	// one open may write to it for ever.
	lateReads = 64
)

// rest delivers what is already there when the time to wait for more is over. A
// slow machine, or a slow sink, must not cost the last words of a command.
func (s source) rest(buf []byte, sink Sink) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return
	}
	for range lateReads {
		n := 0
		err := raw.Control(func(fd uintptr) { n, _ = unix.Read(int(fd), buf) })
		if err != nil || n <= 0 {
			return // closed, at its end, or empty
		}
		if sink != nil {
			sink(s.stream, buf[:n])
		}
	}
}

package proc

import "os"

// source is one pipe or terminal to read from. It is in non-blocking mode, so
// that a deadline ends a pending read.
type source struct {
	stream Stream
	file   *os.File
}

const chunkSize = 32 << 10

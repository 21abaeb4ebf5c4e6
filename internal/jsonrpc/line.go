package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync/atomic"
)

// errLong says that a line was longer than allowed; it was skipped.
var errLong = errors.New("the line is too long")

// A lineReader gives the lines of a stream, of any length up to a bound.
type lineReader struct {
	in   *bufio.Reader
	most int
	room *Room // nil is no bound
	used int   // of room

	bounds func() (most int, room *Room) // what most and room are from now on; may be nil
}

func newLineReader(in io.Reader, most int, room *Room) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 64<<10), most: most, room: room}
}

// A Room bounds how many bytes the long lines of all connections that share it may take
// together. Lines of up to 1 MiB count as nothing.
type Room struct{ left atomic.Int64 }

// NewRoom makes a room for so many bytes.
func NewRoom(bytes int64) *Room {
	r := &Room{}
	r.left.Store(bytes)
	return r
}

// roomStep is how much is taken of a Room at once.
const roomStep = 1 << 20

// fits reports whether there is room for a line of so many bytes.
func (r *lineReader) fits(n int) bool {
	if r.bounds != nil && r.used == 0 { // what was taken is given back to the same room
		r.most, r.room = r.bounds()
	}
	if n > r.most {
		return false
	}
	for r.room != nil && n > roomStep+r.used {
		if r.room.left.Add(-roomStep) < 0 {
			r.room.left.Add(roomStep)
			return false
		}
		r.used += roomStep
	}
	return true
}

// release gives the room of a line back.
func (r *lineReader) release() {
	if r.used > 0 {
		r.room.left.Add(int64(r.used))
		r.used = 0
	}
}

// maxBatch is how many lines are taken together at most.
const maxBatch = 32

// batch returns the next line and those that came together with it. An error is in the last one.
func (r *lineReader) batch() []readLine {
	var lines []readLine
	for {
		line, err := r.next()
		lines = append(lines, readLine{line, err})
		if err != nil || r.used > 0 || len(lines) == maxBatch || !r.ready() {
			return lines
		}
	}
}

// ready reports whether the next line has come already.
func (r *lineReader) ready() bool {
	next, _ := r.in.Peek(r.in.Buffered()) // so much is there
	return bytes.IndexByte(next, '\n') >= 0
}

// next returns the next line without its end. The last one may lack an end;
// after it the error is io.EOF. errLong is not the end.
func (r *lineReader) next() ([]byte, error) {
	r.release() // of the line before, which was taken
	var line []byte
	long := false
	for {
		part, err := r.in.ReadSlice('\n')
		if long = long || !r.fits(len(line)+len(part)); long {
			line = nil
			r.release()
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || len(part) > 0):
			return nil, errLong
		case err == nil:
			return line[:len(line)-1], nil
		case len(line) > 0:
			return line, nil // the error comes again
		}
		return nil, err
	}
}

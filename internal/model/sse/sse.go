// Package sse reads server-sent events. It knows nothing of what they mean.
//
// Events may be of any size up to [MaxEvent], their data may span several lines of
// up to [MaxLine] each, lines may end in LF, CRLF or CR, and comments and fields other than data are skipped. The memory of an event is
// reused by the next one, so that reading a long stream costs no allocations.
package sse

import (
	"bytes"
	"errors"
	"io"
)

// The largest event and the longest line that are accepted, in bytes.
const (
	MaxEvent = 64 << 20
	MaxLine  = 16 << 20
)

// ErrTooLong means that an event is larger than MaxEvent, or a line, be it a
// comment, longer than MaxLine.
var ErrTooLong = errors.New("event too long")

// A Reader reads events from a stream. Use [NewReader] to make one.
type Reader struct {
	src   io.Reader
	buf   []byte
	start int   // of the line being looked at
	scan  int   // up to here there is no line end
	end   int   // of what was read
	err   error // of src, once it failed
	limit int   // of an event
	most  int   // of a line

	data    []byte // the data lines of the event so far, joined by LF
	hasData bool
	begun   bool // the first line was looked at
	sawCR   bool // the line before ended in CR: a LF that follows belongs to it
}

// NewReader returns a Reader of the events in src.
func NewReader(src io.Reader) *Reader {
	return &Reader{src: src, buf: make([]byte, 4096), limit: MaxEvent, most: MaxLine}
}

// Next returns the data of the next event that has any. The bytes are only
// valid until Next is called again. When the source ends, an event whose closing empty
// line is missing is still returned (a caller that needs whole JSON will see whether
// it is), and then the error of the source, which is io.EOF at its end.
func (r *Reader) Next() ([]byte, error) {
	r.data, r.hasData = r.data[:0], false
	for {
		line, err := r.line()
		if err != nil {
			return r.rest(err)
		}
		if len(line) == 0 {
			if r.hasData {
				return r.data, nil
			}
			continue
		}
		if err := r.field(line); err != nil {
			return nil, err
		}
	}
}

// rest is the event that the end of the source left open, or else the error.
func (r *Reader) rest(err error) ([]byte, error) {
	if err != io.EOF {
		return nil, err
	}
	if tail := r.buf[r.start:r.end]; len(tail) > 0 {
		r.start, r.scan = r.end, r.end
		if err := r.field(tail); err != nil {
			return nil, err
		}
	}
	if r.hasData {
		return r.data, nil
	}
	return nil, io.EOF
}

// field takes one line of an event. A byte order mark may stand before the first.
func (r *Reader) field(line []byte) error {
	if !r.begun {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
		r.begun = true
	}
	value, ok := bytes.CutPrefix(line, []byte("data"))
	if !ok {
		return nil
	}
	if len(value) > 0 {
		if value[0] != ':' {
			return nil
		}
		value = value[1:]
	}
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	if len(r.data)+len(value) > r.limit {
		return ErrTooLong
	}

	if r.hasData {
		r.data = append(r.data, '\n')
	}
	r.data, r.hasData = append(r.data, value...), true
	return nil
}

// line returns the next line without its end, valid until it is called again.
func (r *Reader) line() ([]byte, error) {
	for {
		if r.sawCR && r.start < r.end {
			if r.buf[r.start] == '\n' {
				r.start++
			}
			r.sawCR = false
		}
		r.scan = max(r.scan, r.start)
		if i := lineEnd(r.buf[r.scan:r.end]); i >= 0 {
			line := r.buf[r.start : r.scan+i]
			if len(line) > r.most {
				return nil, ErrTooLong
			}
			r.sawCR = r.buf[r.scan+i] == '\r'
			r.start = r.scan + i + 1
			r.scan = r.start
			return line, nil
		}
		r.scan = r.end
		if r.err != nil {
			return nil, r.err
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// lineEnd is where the first line of b ends, or -1.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// fill reads more of the source behind what is kept of it.
func (r *Reader) fill() error {
	if r.start > 0 {
		copy(r.buf, r.buf[r.start:r.end])
		r.end -= r.start
		r.scan -= r.start
		r.start = 0
	}
	if r.end == len(r.buf) {
		if r.end > r.most {
			return ErrTooLong
		}
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	for tries := 0; tries < 100; tries++ {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.err = err
		if n > 0 || err != nil {
			return nil
		}
	}
	return io.ErrNoProgress
}

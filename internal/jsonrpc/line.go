package jsonrpc

import (
	"bufio"
	"errors"
	"io"
)

// errLong says that a line was longer than allowed; it was skipped.
var errLong = errors.New("the line is too long")

// A lineReader gives the lines of a stream, of any length up to a bound.
type lineReader struct {
	in   *bufio.Reader
	most int
}

func newLineReader(in io.Reader, most int) *lineReader {
	return &lineReader{bufio.NewReaderSize(in, 64<<10), most}
}

// next returns the next line without its end. The last one may lack an end;
// after it the error is io.EOF. errLong is not the end.
func (r *lineReader) next() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > r.most; long {
			line = nil
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

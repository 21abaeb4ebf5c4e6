package foreign

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/fermata-agent/fermata/internal/regular"
)

const (
	// maxLine is the longest line that is read; a longer one is left out.
	maxLine = 64 << 20
	// maxText is how much of one file is read at most, decompressed.
	maxText = 2 << 30
	// headBytes is how much is read of a file to list it.
	headBytes = 256 << 10
)

// A line is one line of a file that is not empty.
type line struct {
	number int // 1-based
	data   []byte
	bad    string // why it cannot be read; data is empty then
}

// errEnough ends a walk over lines early.
var errEnough = errors.New("enough")

// eachLine calls f for every line of a file, compressed or not, until limit bytes were read. The line's data is
// only valid during the call. An error of f ends it, and is returned unless it is errEnough.
func eachLine(ctx context.Context, path string, limit int64, f func(line) error) error {
	file, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var r io.Reader = file
	if strings.HasSuffix(path, ".zst") {
		d, err := zstd.NewReader(file, zstd.WithDecoderMaxMemory(256<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return err
		}
		defer d.Close()
		r = d
	}
	in := bufio.NewReaderSize(io.LimitReader(r, limit), 64<<10)
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		data, long, err := readLine(in)
		if err != nil && err != io.EOF {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if ferr := giveLine(n, data, long, f); ferr != nil {
			if ferr == errEnough {
				return nil
			}
			return ferr
		}
		if err == io.EOF {
			return nil
		}
	}
}

func giveLine(n int, data []byte, long int64, f func(line) error) error {
	if n == 1 {
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	l := line{number: n, data: bytes.TrimSpace(data)}
	switch {
	case long > 0:
		l.data, l.bad = nil, fmt.Sprintf("it is %d bytes long", long)
	case len(l.data) == 0:
		return nil
	case len(bytes.Trim(l.data, "\x00")) == 0:
		l.data, l.bad = nil, "it is filled with zero bytes"
	case l.data[0] == 0 || l.data[len(l.data)-1] == 0: // a whole line can stand behind a hole
		l.data = bytes.Trim(l.data, "\x00")
	case !utf8.Valid(l.data):
		l.data = bytes.ToValidUTF8(l.data, []byte("\ufffd"))
	}
	return f(l)
}

// readLine reads one line without its end. Of a line that is too long it returns the length instead.
func readLine(r *bufio.Reader) (data []byte, long int64, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if long == 0 && len(data)+len(piece) > maxLine {
			long, data = int64(len(data)), nil
		}
		if long > 0 {
			long += int64(len(piece))
		} else {
			data = append(data, piece...)
		}
		if err != bufio.ErrBufferFull {
			return data, long, err
		}
	}
}

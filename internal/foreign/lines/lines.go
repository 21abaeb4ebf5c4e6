// Package lines reads files of lines that other programs wrote: compressed or not, in bounded pieces, with what is damaged marked as such.
package lines

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
	// MaxLine is the longest line that is read; a longer one is left out.
	MaxLine = 64 << 20
	// MaxText is how much of one file is read at most, decompressed.
	MaxText = 2 << 30
	// HeadBytes is how much is read of a file to list it.
	HeadBytes = 256 << 10
)

// A Line is one line of a file that is not empty.
type Line struct {
	Number int // 1-based
	Data   []byte
	Bad    string // why it cannot be read; Data is empty then
}

// ErrEnough ends a walk over lines early.
var ErrEnough = errors.New("enough")

// Each calls f for every line of a file, compressed or not, until limit bytes were read. The line's data is
// only valid during the call. An error of f ends it, and is returned unless it is ErrEnough.
func Each(ctx context.Context, path string, limit int64, f func(Line) error) error {
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
			if ferr == ErrEnough {
				return nil
			}
			return ferr
		}
		if err == io.EOF {
			return nil
		}
	}
}

func giveLine(n int, data []byte, long int64, f func(Line) error) error {
	if n == 1 {
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	l := Line{Number: n, Data: bytes.TrimSpace(data)}
	switch {
	case long > 0:
		l.Data, l.Bad = nil, fmt.Sprintf("it is %d bytes long", long)
	case len(l.Data) == 0:
		return nil
	case len(bytes.Trim(l.Data, "\x00")) == 0:
		l.Data, l.Bad = nil, "it is filled with zero bytes"
	case l.Data[0] == 0 || l.Data[len(l.Data)-1] == 0: // a whole line can stand behind a hole
		l.Data = bytes.Trim(l.Data, "\x00")
	case !utf8.Valid(l.Data):
		l.Data = bytes.ToValidUTF8(l.Data, []byte("\ufffd"))
	}
	return f(l)
}

// readLine reads one line without its end. Of a line that is too long it returns the length instead.
func readLine(r *bufio.Reader) (data []byte, long int64, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if long == 0 && len(data)+len(piece) > MaxLine {
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

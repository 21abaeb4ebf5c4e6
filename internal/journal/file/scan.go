package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sort"
)

// A span is a stretch of a journal's file: a line, or bytes that are none.
type span struct {
	line
	off   int64
	size  int64
	data  []byte // without the line break; valid until the next span is asked for
	ended bool   // there is a line break
}

// scanBuffer is how much is read at a time.
const scanBuffer = 256 << 10

// A scanner takes a file apart into spans that follow each other without a gap.
// A run of zero bytes, which a power cut may leave, is a span of its own.
type scanner struct {
	file io.ReaderAt
	of   uint32 // sum of the id of the conversation whose lines are wanted
	off  int64  // of what is read next from the file
	end  int64
	buf  []byte // read and not yet given out
	all  []byte // what buf is a part of
	rest []span // of a bad line that was taken apart further
}

func newScanner(file io.ReaderAt, of uint32, off, end int64) *scanner {
	return &scanner{file: file, of: of, off: off, end: end, all: make([]byte, min(scanBuffer, max(end-off, 1)))}
}

// next returns io.EOF at the end.
func (s *scanner) next() (span, error) {
	if len(s.rest) > 0 {
		sp := s.rest[0]
		s.rest = s.rest[1:]
		return sp, nil
	}
	data, ended, err := s.raw()
	if err != nil {
		return span{}, err
	}

	sp := span{off: s.off - int64(len(s.buf)) - int64(len(data)), size: int64(len(data)), data: data, ended: ended}
	if ended {
		sp.off--
		sp.size++
	}
	sp.line = parseLine(data)
	if sp.kind == badLine {
		s.rest = salvage(sp)
		for i := range s.rest {
			s.rest[i].disown(s.of)
		}
		return s.next()
	}
	sp.disown(s.of)
	return sp, nil
}

// disown notes that a line is of another conversation than the given one.
func (l *line) disown(of uint32) {
	if l.linked && l.of != of {
		l.kind = foreignLine
		return
	}
	if id := l.started(); !l.linked && id != "" && idSum(id) != of {
		l.kind = foreignLine
	}
}

// started returns the id of the conversation that begins with a record, or nothing if none does.
func (l *line) started() string {
	if l.kind == badLine || l.seq != 1 || string(l.name) != kindStarted {
		return ""
	}
	var body struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(l.body, &body) // no id if it is something else
	return body.ID
}

// raw takes the bytes up to a line break or the beginning or end of a run of zeros.
func (s *scanner) raw() (data []byte, ended bool, err error) {
	looked := 0
	for {
		if len(s.buf) > 0 && s.buf[0] == 0 {
			n := len(s.buf) - len(bytes.TrimLeft(s.buf, "\x00"))
			return s.take(n, 0), false, nil
		}
		if i := bytes.IndexByte(s.buf[looked:], '\n'); i >= 0 {
			i += looked
			if z := bytes.IndexByte(s.buf[:i], 0); z >= 0 {
				return s.take(z, 0), false, nil
			}
			return s.take(i, 1), true, nil
		}
		if z := bytes.IndexByte(s.buf[looked:], 0); z >= 0 {
			return s.take(looked+z, 0), false, nil
		}
		looked = len(s.buf)
		err := s.fill()
		if errors.Is(err, io.EOF) && len(s.buf) > 0 {
			return s.take(len(s.buf), 0), false, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

func (s *scanner) take(n, skip int) []byte {
	data := s.buf[:n]
	s.buf = s.buf[n+skip:]
	return data
}

// fill reads more behind what is in buf, making room if necessary.
func (s *scanner) fill() error {
	if s.off >= s.end {
		return io.EOF
	}
	if len(s.buf) > len(s.all)/2 {
		s.all = make([]byte, 2*len(s.all))
	}
	n := copy(s.all, s.buf)
	room := s.all[n:]
	if left := s.end - s.off; int64(len(room)) > left {
		room = room[:left]
	}
	m, err := s.file.ReadAt(room, s.off)
	s.buf = s.all[:n+m]
	s.off += int64(m)
	if m > 0 {
		return nil
	}
	if errors.Is(err, io.EOF) {
		s.end = s.off // it was made shorter
	}
	return err
}

// salvage looks for whole lines within a bad one, as there are when a line break
// was lost, and returns spans that together are the bad one.
func salvage(sp span) []span {
	for _, from := range starts(sp.data) {
		for _, to := range ends(sp.data[from:]) {
			l := parseLine(sp.data[from : from+to])
			if l.kind == badLine {
				continue
			}
			var spans []span
			if from > 0 {
				spans = append(spans, span{off: sp.off, size: int64(from), data: sp.data[:from]})
			}
			good := span{line: l, off: sp.off + int64(from), size: int64(to), data: sp.data[from : from+to]}
			rest := span{off: good.off + good.size, data: sp.data[from+to:], ended: sp.ended}
			rest.size = sp.off + sp.size - rest.off
			if len(rest.data) == 0 {
				good.size, good.ended = good.size+rest.size, sp.ended
				return append(spans, good)
			}
			return append(append(spans, good), salvage(rest)...)
		}
	}
	return []span{sp}
}

// tries bounds the work that a long line of garbage can cause.
const tries = 8

// starts returns where in a bad line a good one may begin.
func starts(b []byte) []int {
	found := []int{0}
	for _, head := range []string{`{"n":`, `{"item":`} {
		for at, n := 0, 0; n < tries; n++ {
			i := bytes.Index(b[at:], []byte(head))
			if i < 0 {
				break
			}
			found = append(found, at+i)
			at += i + 1
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// ends returns where in it that may end.
func ends(b []byte) []int {
	var found []int
	for at, n := 0, 0; n < tries; n++ {
		i := bytes.Index(b[at:], []byte(sumPrefix))
		if i < 0 {
			break
		}
		if end := at + i + sumBytes; end <= len(b) {
			found = append(found, end)
		}
		at += i + 1
	}
	return found
}

// An index knows the offsets of some records' lines, so that a record is found
// without reading everything before it.
type index []indexEntry

type indexEntry struct {
	seq uint64
	off int64
}

// indexEvery is how far apart they are.
const indexEvery = 64 << 10

func (x *index) add(seq uint64, off int64) {
	if n := len(*x); n == 0 || off-(*x)[n-1].off >= indexEvery {
		*x = append(*x, indexEntry{seq, off})
	}
}

// before returns an offset at or before the record's line.
func (x index) before(seq uint64) int64 {
	i := sort.Search(len(x), func(i int) bool { return x[i].seq > seq })
	if i == 0 {
		return 0
	}
	return x[i-1].off
}

package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sort"
)

// A Span is a stretch of a journal's file: a line, or bytes that are none.
type Span struct {
	Line
	Off   int64
	Size  int64
	Data  []byte // without the line break; valid until the next span is asked for
	Ended bool   // there is a line break
}

// scanBuffer is how much is read at a time.
const scanBuffer = 256 << 10

// A Scanner takes a file apart into spans that follow each other without a gap.
// A run of zero bytes, which a power cut may leave, is a span of its own.
type Scanner struct {
	file io.ReaderAt
	of   uint32 // sum of the id of the conversation whose lines are wanted
	off  int64  // of what is read next from the file
	end  int64
	buf  []byte // read and not yet given out
	All  []byte // what buf is a part of
	rest []Span // of a bad line that was taken apart further
}

func NewScanner(file io.ReaderAt, of uint32, off, end int64) *Scanner {
	return &Scanner{file: file, of: of, off: off, end: end, All: make([]byte, min(scanBuffer, max(end-off, 1)))}
}

// Next returns io.EOF at the end.
func (s *Scanner) Next() (Span, error) {
	if len(s.rest) > 0 {
		sp := s.rest[0]
		s.rest = s.rest[1:]
		return sp, nil
	}
	data, ended, err := s.raw()
	if err != nil {
		return Span{}, err
	}

	sp := Span{Off: s.off - int64(len(s.buf)) - int64(len(data)), Size: int64(len(data)), Data: data, Ended: ended}
	if ended {
		sp.Off--
		sp.Size++
	}
	sp.Line = ParseLine(data)
	if sp.Kind == BadLine {
		s.rest = salvage(sp)
		for i := range s.rest {
			s.rest[i].disown(s.of)
		}
		return s.Next()
	}
	sp.disown(s.of)
	return sp, nil
}

// disown notes that a line is of another conversation than the given one.
func (l *Line) disown(of uint32) {
	if l.Linked && l.Of != of {
		l.Kind = ForeignLine
		return
	}
	if id := l.Started(); !l.Linked && id != "" && IDSum(id) != of {
		l.Kind = ForeignLine
	}
}

// Started returns the id of the conversation that begins with a record, or nothing if none does.
func (l *Line) Started() string {
	if l.Kind == BadLine || l.Seq != 1 || string(l.Name) != kindStarted {
		return ""
	}
	var body struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(l.body, &body) // no id if it is something else
	return body.ID
}

// raw takes the bytes up to a line break or the beginning or end of a run of zeros.
func (s *Scanner) raw() (data []byte, ended bool, err error) {
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

func (s *Scanner) take(n, skip int) []byte {
	data := s.buf[:n]
	s.buf = s.buf[n+skip:]
	return data
}

// fill reads more behind what is in buf, making room if necessary.
func (s *Scanner) fill() error {
	if s.off >= s.end {
		return io.EOF
	}
	if len(s.buf) > len(s.All)/2 {
		s.All = make([]byte, 2*len(s.All))
	}
	n := copy(s.All, s.buf)
	room := s.All[n:]
	if left := s.end - s.off; int64(len(room)) > left {
		room = room[:left]
	}
	m, err := s.file.ReadAt(room, s.off)
	s.buf = s.All[:n+m]
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
func salvage(sp Span) []Span {
	for _, from := range starts(sp.Data) {
		for _, to := range ends(sp.Data[from:]) {
			l := ParseLine(sp.Data[from : from+to])
			if l.Kind == BadLine {
				continue
			}
			var spans []Span
			if from > 0 {
				spans = append(spans, Span{Off: sp.Off, Size: int64(from), Data: sp.Data[:from]})
			}
			good := Span{Line: l, Off: sp.Off + int64(from), Size: int64(to), Data: sp.Data[from : from+to]}
			rest := Span{Off: good.Off + good.Size, Data: sp.Data[from+to:], Ended: sp.Ended}
			rest.Size = sp.Off + sp.Size - rest.Off
			if len(rest.Data) == 0 {
				good.Size, good.Ended = good.Size+rest.Size, sp.Ended
				return append(spans, good)
			}
			return append(append(spans, good), salvage(rest)...)
		}
	}
	return []Span{sp}
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

// An Index knows the offsets of some records' lines, so that a record is found
// without reading everything before it.
type Index []IndexEntry

type IndexEntry struct {
	Seq uint64
	Off int64
}

// IndexEvery is how far apart they are.
const IndexEvery = 64 << 10

func (x *Index) Add(seq uint64, off int64) {
	if n := len(*x); n == 0 || off-(*x)[n-1].Off >= IndexEvery {
		*x = append(*x, IndexEntry{seq, off})
	}
}

// Before returns an offset at or before the record's line.
func (x Index) Before(seq uint64) int64 {
	i := sort.Search(len(x), func(i int) bool { return x[i].Seq > seq })
	if i == 0 {
		return 0
	}
	return x[i-1].Off
}

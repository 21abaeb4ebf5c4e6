package file_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/journal/journaltest"
	"github.com/fermata-agent/fermata/internal/longtest"
)

const sampleID = "01997f3a-5b2c-7d4e-8f90-123456789abc"

// A sample is the file of a journal that was closed in good order.
type sample struct {
	*journaltest.FileStore
	path  string
	data  []byte
	lines [][]byte // with line breaks
	recs  []journal.Record
	items []journal.Chunk
}

// newSample writes a conversation with records of many kinds, items that were
// closed and items that are open.
func newSample(t testing.TB) *sample {
	t.Helper()
	s := &sample{FileStore: journaltest.OnDisk(memoryDir(t), &journaltest.Disk{FS: file.OS{}}, 0)}
	j, err := s.Create(t.Context(), sampleID, time.Date(2025, 9, 24, 23, 59, 1, 0, time.UTC))
	must(t, err)
	text, cmd := j.Open("text"), j.Open("cmd")
	for i := range 4 {
		body := fmt.Sprintf(`{"i":%d,"text":"%s"}`, i, strings.Repeat("é\\n", i*i))
		j.Append(journal.Entry{Turn: 1, Kind: "plain", Body: json.RawMessage(body)})
		text.Write(fmt.Sprint("1.1.", i), "message", "text ü")
		cmd.Write("1.2.0", "stdout", fmt.Sprint("line ", i, "\n"))
		reopen(t, s, &j, &text, &cmd) // closing flushes what is open
		j.Append(journal.Entry{Turn: 1, Kind: "closing", Body: json.RawMessage(`null`), Closes: fmt.Sprint("1.1.", i)})
	}
	must(t, j.Close())
	s.path = s.Path(sampleID)
	s.data, err = os.ReadFile(s.path)
	must(t, err)
	s.lines = slices.Collect(bytes.Lines(s.data))
	s.recs, s.items = s.content(t)
	if len(s.recs) != 8 || len(s.lines) != 16 {
		t.Fatalf("sample has %d lines, %d records", len(s.lines), len(s.recs))
	}
	return s
}

// memoryDir is a temporary directory that is not on a disk, if there is such a
// thing: thousands of small files are replaced in these tests.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "journal")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func reopen(t testing.TB, s *sample, j *journal.Journal, scopes ...*journal.Scope) {
	t.Helper()
	must(t, (*j).Close())
	k, err := s.Open(t.Context(), sampleID)
	must(t, err)
	*j = k
	for i, sc := range scopes {
		*sc = k.Open(fmt.Sprint(i))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// same is cmp.Equal, and much faster for what is the same.
func same(a, b any) bool { return reflect.DeepEqual(a, b) || cmp.Equal(a, b) }

// content opens the conversation, which must find nothing to repair.
func (s *sample) content(t testing.TB) ([]journal.Record, []journal.Chunk) {
	t.Helper()
	rec, recs, items := s.open(t)
	if rec.Torn != 0 || len(rec.Damaged) != 0 {
		t.Errorf("opening repaired something again: %+v", rec)
	}
	v, err := s.View(t.Context(), sampleID)
	must(t, err)
	defer v.Close()
	if faults, err := v.Check(t.Context()); len(faults) != 0 || err != nil {
		t.Errorf("Check = %v, %v", faults, err)
	}
	if got, err := v.Read(t.Context(), 0, 1<<20); !same(got, recs) || err != nil {
		t.Errorf("View.Read differs: %s, %v", cmp.Diff(recs, got), err)
	}
	if got, err := v.Tail(t.Context(), 3); !same(got, recs[max(len(recs)-3, 0):]) && len(got)+len(recs) > 0 || err != nil {
		t.Errorf("View.Tail = %v, %v", got, err)
	}
	if got := openItems(t, v); !same(got, items) {
		t.Errorf("View.OpenItems differs: %s", cmp.Diff(items, got))
	}
	return recs, items
}

// open opens the conversation and returns all there is.
func (s *sample) open(t testing.TB) (journal.Recovery, []journal.Record, []journal.Chunk) {
	t.Helper()
	j, err := s.Open(t.Context(), sampleID)
	must(t, err)
	defer j.Close()
	rec := j.Recovery()
	recs, err := j.Read(t.Context(), 0, 1<<20)
	must(t, err)
	if n, err := j.Durable(); n != rec.Last || len(recs) != int(n) || err != nil {
		t.Errorf("Durable = %d, %v, Recovery.Last = %d, %d records", n, err, rec.Last, len(recs))
	}
	for i, r := range recs {
		if r.Seq != uint64(i+1) {
			t.Fatalf("record %d has number %d", i+1, r.Seq)
		}
	}
	return rec, recs, openItems(t, j)
}

// replace puts other bytes in the journal's place, and nothing beside it.
func (s *sample) replace(t testing.TB, data []byte) {
	t.Helper()
	for _, suffix := range []string{"", ".damaged", ".ckpt"} {
		os.Remove(s.path + suffix)
	}
	must(t, os.WriteFile(s.path, data, 0o600))
}

func (s *sample) damaged() []byte {
	b, _ := os.ReadFile(s.path + ".damaged")
	return b
}

// offset returns where the line of a record begins, and its length.
func (s *sample) lineOf(seq uint64) (off, size int) {
	for _, l := range s.lines {
		if bytes.HasPrefix(l, fmt.Appendf(nil, `{"n":%d,`, seq)) {
			return off, len(l)
		}
		off += len(l)
	}
	panic("no such record")
}

// setAside sums up what a recovery says.
func setAside(rec journal.Recovery) (size int64, records int) {
	size = rec.Torn
	for _, d := range rec.Damaged {
		size += d.Bytes
		records += d.Records
	}
	return size, records
}

// stride is the distance of the bytes that are tried.
func stride() int {
	switch {
	case testing.Short():
		return 7
	case longtest.On():
		return 1
	}
	return 5
}

func TestCutAtEveryByte(t *testing.T) {
	s := newSample(t)
	for cut := 0; cut < len(s.data); cut += stride() {
		s.replace(t, s.data[:cut])
		rec, recs, _ := s.open(t)
		whole := 0
		for off, i := 0, 0; i < len(s.lines); i++ {
			off += len(s.lines[i])
			if off-1 <= cut && s.lines[i][2] == 'n' {
				whole++
			}
		}
		if whole+len(recs) > 0 && !same(s.recs[:whole], recs) {
			t.Fatalf("cut at %d: %s", cut, cmp.Diff(s.recs[:whole], recs))
		}
		torn := s.data[bytes.LastIndexByte(s.data[:cut], '\n')+1 : cut]
		if cut < len(s.data) && s.data[cut] == '\n' {
			torn = nil // only the line break is missing
		}
		if rec.Torn != int64(len(torn)) || len(rec.Damaged) != 0 || !bytes.Equal(s.damaged(), torn) {
			t.Fatalf("cut at %d: %+v, set aside %q, want %q", cut, rec, s.damaged(), torn)
		}
		s.content(t)
	}
}

func TestHoleAtEveryLine(t *testing.T) {
	s := newSample(t)
	off := 0
	for i, line := range s.lines {
		for _, hole := range []struct{ from, to int }{
			{off, off + len(line)},                   // the line with its break
			{off, off + len(line) - 1},               // without
			{off + 10, off + 20},                     // within it
			{off + len(line) - 1, off + len(line)},   // only the break
			{off - min(off, 5), off + len(line)},     // and the end of the one before
			{off, min(len(s.data), off+3000)},        // and all that follow
			{off, min(len(s.data), off+2*len(line))}, // and some
		} {
			s.punch(t, i, hole.from, hole.to)
		}
		off += len(line)
	}
}

// punch zeroes a hole and checks that all that is outside it is kept.
func (s *sample) punch(t *testing.T, line, from, to int) {
	t.Helper()
	data := bytes.Clone(s.data)
	clear(data[from:to])
	s.replace(t, data)
	rec, recs, _ := s.open(t)

	lost, last, off := map[uint64]bool{}, uint64(0), 0
	var seq uint64
	kept := 0
	for _, l := range s.lines {
		hit := from < off+len(l)-1 && to > off // a line break alone is no loss
		if l[2] == 'n' {
			seq++
			lost[seq] = hit
			if !hit {
				last = seq
			}
		}
		if !hit {
			kept += len(l)
		}
		off += len(l)
	}
	if rec.Last != last {
		t.Fatalf("hole %d-%d in line %d: last record is %d, want %d", from, to, line, rec.Last, last)
	}
	for i, r := range recs {
		if lost[r.Seq] != (r.Kind == "damaged") || !lost[r.Seq] && !same(r, s.recs[i]) {
			t.Fatalf("hole %d-%d in line %d: record %d is %+v", from, to, line, r.Seq, r)
		}
		if lost[r.Seq] {
			checkDamaged(t, r, s.path)
		}
	}
	size, records := setAside(rec)
	missing := 0
	for n := uint64(1); n < last; n++ {
		if lost[n] {
			missing++
		}
	}
	if size != int64(len(s.damaged())) || records != missing || size < int64(len(data)-kept) || size == 0 {
		t.Fatalf("hole %d-%d in line %d: recovery says %+v, set aside %d bytes, lost %d lines' bytes and %d records",
			from, to, line, rec, len(s.damaged()), len(data)-kept, missing)
	}
	s.content(t)
}

func checkDamaged(t *testing.T, r journal.Record, path string) {
	t.Helper()
	var body struct {
		Bytes int64
		File  string
	}
	must(t, json.Unmarshal(r.Body, &body))
	if body.Bytes <= 0 || body.File != filepath.Base(path)+".damaged" || r.Time.IsZero() {
		t.Errorf("damaged record %d is %+v", r.Seq, r)
	}
}

// One wrong bit costs one line at most.
func TestFlipAtEveryByte(t *testing.T) {
	s := newSample(t)
	for i := 0; i < len(s.data); i += stride() {
		data := bytes.Clone(s.data)
		data[i] ^= 1 << (i % 8)
		s.replace(t, data)
		rec, recs, _ := s.open(t)
		lost := len(s.recs) - len(recs)
		for n, r := range recs {
			if r.Kind == "damaged" {
				lost++
			} else if !same(r, s.recs[n]) {
				t.Fatalf("flip at %d: record %d is %+v", i, r.Seq, r)
			}
		}
		if size, _ := setAside(rec); lost > 1 || size != int64(len(s.damaged())) || size == 0 {
			t.Fatalf("flip at %d: lost %d records, %+v, set aside %d", i, lost, rec, len(s.damaged()))
		}
		if s.data[i] == '\n' && lost > 0 {
			t.Fatalf("flip at %d: lost a record with a line break", i)
		}
		if !bytes.Contains(data, s.damaged()) {
			t.Fatalf("flip at %d: set aside %q", i, s.damaged())
		}
		s.content(t)
	}
}

func TestLinesThatDoNotFit(t *testing.T) {
	s := newSample(t)
	line := func(seq uint64) []byte {
		off, size := s.lineOf(seq)
		return s.data[off : off+size]
	}
	with := func(at uint64, insert []byte) []byte {
		off, _ := s.lineOf(at)
		return slices.Concat(s.data[:off], insert, s.data[off:])
	}
	without := func(seq uint64) []byte {
		off, size := s.lineOf(seq)
		return slices.Concat(s.data[:off], s.data[off+size:])
	}
	huge := resum([]byte(`{"n":900000000000,"t":"2025-09-24T23:59:01.000000Z","turn":1,"kind":"x","body":0,"sum":"00000000"}` + "\n"))
	for _, test := range []struct {
		name    string
		data    []byte
		aside   []byte
		damaged []uint64 // records that are lost
		last    uint64
	}{
		{"repeated at once", with(3, line(2)), line(2), nil, 8},
		{"repeated later", with(7, line(2)), line(2), nil, 8},
		{"at the end", slices.Concat(s.data, line(4), line(5)), slices.Concat(line(4), line(5)), nil, 8},
		{"too early", with(2, line(7)), line(7), nil, 8},
		{"missing", without(4), nil, []uint64{4}, 8},
		{"first missing", without(1), nil, []uint64{1}, 8},
		{"last missing", without(8), nil, nil, 7},
		{"impossible number", with(5, huge), huge, nil, 8},
		{"impossible number at the end", slices.Concat(s.data, huge), huge, nil, 8},
		{"not JSON", with(5, []byte("hello\n")), []byte("hello\n"), nil, 8},
		{"empty lines", with(5, []byte("\n\n")), []byte("\n\n"), nil, 8},
		{"right sum, wrong form", with(5, resum([]byte(`{"m":5,"sum":"00000000"}`+"\n"))), resum([]byte(`{"m":5,"sum":"00000000"}` + "\n")), nil, 8},
		{"only garbage", []byte("what is\nthis?"), []byte("what is\nthis?"), nil, 0},
		{"only zeros", make([]byte, 1<<20), make([]byte, 1<<20), nil, 0},
		{"nothing", nil, nil, nil, 0},
		{"only progress", s.lines[1], nil, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.replace(t, test.data)
			rec, recs, _ := s.open(t)
			if !bytes.Equal(s.damaged(), test.aside) {
				t.Errorf("set aside %q, want %q", s.damaged(), test.aside)
			}
			size, records := setAside(rec)
			if rec.Last != test.last || size != int64(len(test.aside)) || records != len(test.damaged) {
				t.Errorf("recovery is %+v", rec)
			}
			for i, r := range recs {
				if lost := slices.Contains(test.damaged, r.Seq); lost != (r.Kind == "damaged") || !lost && !same(r, s.recs[i]) {
					t.Errorf("record %d is %+v", r.Seq, r)
				}
			}
			s.content(t)
		})
	}
}

// Damage of several kinds at once: each is told with its place.
func TestRecoverySaysWhatAndWhere(t *testing.T) {
	s := newSample(t)
	data := bytes.Clone(s.data)
	at2, n2 := s.lineOf(2)
	at5, n5 := s.lineOf(5)
	clear(data[at2 : at2+n2-1])
	data[at5+3] = '?'
	data = append(data, `{"n":9,"t"`...)
	s.replace(t, data)
	rec, _, _ := s.open(t)
	file := s.path + ".damaged"
	want := journal.Recovery{Last: 8, Torn: 10, Damaged: []journal.Damage{
		{Offset: int64(at2), Bytes: int64(n2), Records: 1, File: file},
		{Offset: int64(at5), Bytes: int64(n5), Records: 1, File: file},
	}}
	if diff := cmp.Diff(want, rec); diff != "" {
		t.Error(diff)
	}
	if st, err := os.Stat(file); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// What was set aside earlier stays when more is added.
func TestDamageAddsUp(t *testing.T) {
	s := newSample(t)
	for i := range 3 {
		f, err := os.OpenFile(s.path, os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		fmt.Fprintf(f, "torn %d", i)
		must(t, f.Close())
		s.open(t)
	}
	if got := string(s.damaged()); got != "torn 0torn 1torn 2" {
		t.Errorf("set aside %q", got)
	}
	recs, items := s.content(t)
	if !cmp.Equal(recs, s.recs) || !cmp.Equal(items, s.items) {
		t.Error("records or items changed")
	}
}

func openItems(t testing.TB, r journal.Reader) []journal.Chunk {
	t.Helper()
	chunks, err := r.OpenItems(t.Context())
	must(t, err)
	return chunks
}

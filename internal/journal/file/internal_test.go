package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file/layout"
)

func waitDurable(t testing.TB, j journal.Journal, n uint64) {
	t.Helper()
	for {
		d, err := j.Durable()
		if err != nil {
			t.Fatal(err)
		}
		if d >= n {
			return
		}
		<-j.Notify()
	}
}

// However long a conversation is, memory holds an offset for every 64 KiB.
func TestIndexGrowsLittle(t *testing.T) {
	const window = 64 << 10
	s := New(t.TempDir(), Options{Window: window})
	j, err := s.create("a", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	body := json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)
	for range 40 {
		var last uint64
		for range 100 {
			last = j.Append(journal.Entry{Kind: "k", Body: body})
		}
		waitDurable(t, j, last)
	}
	if n, most := len(j.index), int(j.w.size/indexEvery)+1; n > most || n < most/2 {
		t.Errorf("index has %d entries for %d bytes", n, j.w.size)
	}
	if recs, err := j.Read(t.Context(), 0, 5000); len(recs) != 4000 || err != nil {
		t.Errorf("Read gives %d records, %v", len(recs), err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func sampleLine(seq uint64, body string) []byte {
	b, _ := appendRecord(nil, &journal.Pending{Record: journal.Record{Seq: seq, Kind: "k", Body: json.RawMessage(body)}, Closes: "c"}, link{})
	return b
}

// Lines come out of what they went into, wherever they are cut into buffers.
func TestScannerFindsEverySpan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var data []byte
		var wanted []string
		for i := range 1 + r.IntN(20) {
			switch r.IntN(4) {
			case 0:
				l := sampleLine(uint64(i+1), fmt.Sprintf(`"%s"`, strings.Repeat("ä", r.IntN(2000))))
				data = append(data, l...)
				wanted = append(wanted, fmt.Sprint("record ", i+1))
			case 1:
				data = appendProgress(data, "i", journal.Piece{Text: []byte("text\x00"), Tag: "t"}, link{})
				wanted = append(wanted, "progress")
			case 2:
				data = append(data, "garbage\n"...)
				wanted = append(wanted, "bad")
			case 3:
				data = append(data, make([]byte, 1+r.IntN(600))...)
				wanted = append(wanted, "zeros")
			}
		}
		sc := newScanner(bytes.NewReader(data), 0, 0, int64(len(data)))
		sc.all = make([]byte, 1+r.IntN(500))
		wanted = compactZeros(wanted)
		if got := spans(t, sc, data); !slices.Equal(got, wanted) {
			t.Fatalf("spans are %v, want %v", got, wanted)
		}
	}
}

func compactZeros(all []string) []string {
	var out []string
	for _, s := range all {
		if s != "zeros" || len(out) == 0 || out[len(out)-1] != "zeros" {
			out = append(out, s)
		}
	}
	return out
}

// spans describes what a scanner finds; together it must be all of data.
func spans(t *testing.T, sc *scanner, data []byte) []string {
	t.Helper()
	var all []string
	var end int64
	for {
		sp, err := sc.next()
		if err != nil {
			break
		}
		whole := data[sp.off : sp.off+sp.size]
		if sp.off != end || !bytes.HasPrefix(whole, sp.data) || sp.ended != bytes.HasSuffix(whole, []byte("\n")) {
			t.Fatalf("span at %d of %d bytes after %d", sp.off, sp.size, end)
		}
		end = sp.off + sp.size
		switch {
		case sp.kind == recordLine:
			all = append(all, fmt.Sprint("record ", sp.seq))
		case sp.kind == progressLine:
			all = append(all, "progress")
		case sp.data == nil || len(sp.data) > 0 && sp.data[0] == 0:
			all = append(all, "zeros")
		default:
			all = append(all, "bad")
		}
	}
	if end != int64(len(data)) {
		t.Fatalf("spans end at %d of %d", end, len(data))
	}
	return compactZeros(all)
}

func TestSalvage(t *testing.T) {
	one, two := sampleLine(1, `{"a":1}`), sampleLine(2, `{"n":5,"sum":"x"}`)
	full := sampleLine(3, `[`+strings.Repeat(`{"n":1,"sum":"12345678"},`, 50)+`0]`)
	bare := func(b []byte) string { return strings.TrimSuffix(string(b), "\n") }
	for _, test := range []struct {
		data string
		want []string
	}{
		{bare(one) + bare(two) + "\n", []string{"record 1", "record 2"}},
		{bare(one) + "x" + bare(two) + "\n", []string{"record 1", "bad", "record 2"}},
		{"junk" + bare(two), []string{"bad", "record 2"}},
		{bare(two) + "junk\n", []string{"record 2", "bad"}},
		{bare(one)[:20] + bare(two) + bare(one)[20:] + "\n", []string{"bad", "record 2", "bad"}},
		{bare(full) + "\x00\x00" + bare(two) + "\n", []string{"record 3", "zeros", "record 2"}},
		{bare(full)[:50] + "\x00\x00" + bare(full)[52:] + "\n" + string(two), []string{"bad", "zeros", "bad", "record 2"}},
		{`{"n":{"n":,"sum":"` + "\n", []string{"bad"}},
		{strings.Repeat(`{"n":`, 1000) + strings.Repeat(`,"sum":"12345678"}`, 1000) + "\n", []string{"bad"}},
	} {
		sc := newScanner(strings.NewReader(test.data), 0, 0, int64(len(test.data)))
		if got := spans(t, sc, []byte(test.data)); !slices.Equal(got, test.want) {
			t.Errorf("%.80q: %v, want %v", test.data, got, test.want)
		}
	}
}

func TestChooseRecords(t *testing.T) {
	for _, test := range []struct {
		seqs, keep []uint64
	}{
		{[]uint64{1, 2, 3}, []uint64{1, 2, 3}},
		{[]uint64{1, 2, 2, 3}, []uint64{1, 2, 3}},
		{[]uint64{1, 9, 2, 3}, []uint64{1, 2, 3}},
		{[]uint64{1, 2, 1, 2, 3, 4}, []uint64{1, 2, 3, 4}},
		{[]uint64{3, 4, 1, 5, 2, 6}, []uint64{3, 4, 5, 6}},
		{[]uint64{1, 1 << 40}, []uint64{1}},
		{[]uint64{1 << 40}, nil},
		{nil, nil},
	} {
		p := &plan{from: position{0, 1, 0}}
		for _, s := range test.seqs {
			p.parts = append(p.parts, part{kind: recordLine, seq: s})
		}
		p.chooseRecords(1000)
		var kept []uint64
		for _, pt := range p.parts {
			if pt.keep {
				kept = append(kept, pt.seq)
			}
		}
		if !slices.Equal(kept, test.keep) {
			t.Errorf("of %v keeps %v, want %v", test.seqs, kept, test.keep)
		}
	}
	p := &plan{from: position{0, 1, 0}, parts: []part{{kind: recordLine, seq: 1, off: 1}, {kind: recordLine, seq: 1, off: 2}}}
	p.chooseRecords(1000)
	if !p.parts[0].keep || p.parts[1].keep {
		t.Error("of two equals the first is to be kept")
	}
}

// The sum is CRC-32C: journals of earlier versions have it.
func TestChecksum(t *testing.T) {
	if got := checksum([]byte("123456789")); got != 0xe3069283 {
		t.Errorf("%08x", got)
	}
}

func TestAppendString(t *testing.T) {
	for _, s := range []string{"", "plain", `"\`, "\x00\x01\n\r\t\x1f\x7f", "ä–🙂\u2028\ufffd", "\xff bad \xc3"} {
		var got string
		b := appendString(nil, s)
		if err := json.Unmarshal(b, &got); err != nil || got != strings.ToValidUTF8(s, "\ufffd") {
			t.Errorf("%q became %s: %q, %v", s, b, got, err)
		}
		if unquote(b[1:len(b)-1]) != got || bytes.ContainsAny(b, "\x00\n") {
			t.Errorf("%q became %q", s, b)
		}
	}
}

func TestParseLineRefuses(t *testing.T) {
	sum := func(s string) []byte {
		return fmt.Appendf(nil, `%s,"sum":"%08x"}`, s, checksum([]byte(s)))
	}
	at := `"2026-11-15T11:41:54.123456Z"`
	good := `{"n":1,"t":` + at + `,"turn":0,"kind":"k","body":{}`
	if parseLine(sum(good)).kind != recordLine {
		t.Fatal("the good line is refused")
	}
	for _, s := range []string{
		``, `{`, `{"n":0,"t":` + at + `,"turn":0,"kind":"k","body":{}`,
		`{"n":-1,"t":` + at + `,"turn":0,"kind":"k","body":{}`,
		`{"n":1111111111111111111,"t":` + at + `,"turn":0,"kind":"k","body":{}`,
		`{"n":1,"t":"","turn":0,"kind":"k","body":{}`,
		`{"n":1,"t":` + at + `,"turn":,"kind":"k","body":{}`,
		`{"n":1,"t":` + at + `,"turn":0,"kind":"k","body":`,
		`{"n":1,"t":` + at + `,"turn":0,"kind":"k`,
		`{"n":1,"t":` + at + `,"kind":"k","turn":0,"body":{}`,
		`{"item":"i","tag":"t","at":-1,"text":""`,
		`{"item":"i","tag":"t","at":1,"text":"",`,
		`{"item":"i","tag":"t","at":1,"text":"\"`,
	} {
		if l := parseLine(sum(s)); l.kind != badLine {
			t.Errorf("%s is taken for %+v", s, l)
		}
	}
}

// One conversation is found among many of its day without a look at the others.
func TestFindLooksAtTheNameFirst(t *testing.T) {
	s := New(t.TempDir(), Options{})
	at := time.Date(2026, 3, 1, 12, 0, 0, 999e6, time.UTC)
	id := fmt.Sprintf("%012x", at.UnixMilli()) + "7" + strings.Repeat("0", 19)
	for _, late := range []time.Duration{0, time.Millisecond} { // the clock is read twice
		want := layout.Journal(filepath.Join(s.home, activeDir), id, at.Add(late))
		other := layout.Journal(filepath.Join(s.home, activeDir), id, at.Add(-time.Hour)) // a look would find this first
		for _, name := range []string{want, other} {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.find(t.Context(), id); got != want || err != nil {
			t.Errorf("found %s, error %v, want %s", got, err, want)
		}
		if err := os.Remove(want); err != nil {
			t.Fatal(err)
		}
	}
}

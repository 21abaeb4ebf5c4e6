package file

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file/format"
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
	if n, most := len(j.index), int(j.w.size/format.IndexEvery)+1; n > most || n < most/2 {
		t.Errorf("index has %d entries for %d bytes", n, j.w.size)
	}
	if recs, err := j.Read(t.Context(), 0, 5000); len(recs) != 4000 || err != nil {
		t.Errorf("Read gives %d records, %v", len(recs), err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
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
			p.parts = append(p.parts, part{kind: format.RecordLine, seq: s})
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
	p := &plan{from: position{0, 1, 0}, parts: []part{{kind: format.RecordLine, seq: 1, off: 1}, {kind: format.RecordLine, seq: 1, off: 2}}}
	p.chooseRecords(1000)
	if !p.parts[0].keep || p.parts[1].keep {
		t.Error("of two equals the first is to be kept")
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

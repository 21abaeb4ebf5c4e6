package file_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/journal"
)

// resum gives every line of the form …,"sum":"xxxxxxxx"} the right checksum.
func resum(data []byte) []byte {
	var all []byte
	for line := range bytes.Lines(data) {
		body, end := bytes.TrimRight(line, "\n"), line[len(bytes.TrimRight(line, "\n")):]
		i := bytes.LastIndex(body, []byte(`,"sum":"`))
		if i < 0 || len(body)-i != len(`,"sum":"00000000"}`) {
			all = append(all, line...)
			continue
		}
		sum := crc32.Checksum(body[:i], crc32.MakeTable(crc32.Castagnoli))
		all = append(all, body[:i]...)
		all = fmt.Appendf(all, `,"sum":"%08x"}`, sum)
		all = append(all, end...)
	}
	return all
}

// FuzzOpen opens arbitrary bytes: that always works, and once is enough.
func FuzzOpen(f *testing.F) {
	s := newSample(f)
	f.Add(s.data, false)
	f.Add(s.data[:len(s.data)/2], true)
	f.Add(bytes.Replace(s.data, []byte(`"n":5`), []byte(`"n":7`), 1), true)
	f.Add(bytes.Replace(s.data, []byte(`"at":`), []byte(`"at":9`), 1), true)
	f.Add(bytes.ReplaceAll(s.data, []byte("\n"), nil), false)
	f.Add([]byte(strings.Repeat("\x00", 100)+string(s.lines[0])), false)
	f.Add([]byte(`{"item":"a","tag":"\ud800","at":5,"text":"\u00","sum":"00000000"}`+"\n"), true)
	f.Add([]byte(`{"n":3,"t":"9999-99-99T00:00:00.000000Z","turn":-1,"kind":"\x","body":x,"sum":"00000000"}`+"\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, fix bool) {
		if fix {
			data = resum(data)
		}
		s.replace(t, data)
		first, recs, items := s.open(t)
		if size, _ := setAside(first); size != int64(len(s.damaged())) {
			t.Errorf("recovery says %+v, set aside %d bytes", first, len(s.damaged()))
		}
		again, more := s.content(t)
		if diff := cmp.Diff(recs, again) + cmp.Diff(items, more); diff != "" {
			t.Errorf("opened again it is different: %s", diff)
		}
	})
}

// FuzzCheckpoint puts arbitrary bytes beside a good journal: whatever a
// checkpoint claims, no record is lost.
func FuzzCheckpoint(f *testing.F) {
	s := newSample(f)
	j, err := s.Open(f.Context(), sampleID)
	must(f, err)
	must(f, j.Checkpoint(f.Context(), 5, []byte("state")))
	must(f, j.Close())
	good, err := os.ReadFile(s.path + ".ckpt")
	must(f, err)
	good = good[:len(good)-8]
	f.Add(good)
	for _, change := range []string{`"seq":6`, `"seq":0`, `"offset":-1`, `"offset":99999999999`, `"from":7`, `"from_next":3`, `"marks":[[1,5]]`, `"size":1`} {
		key := change[:strings.IndexByte(change, ':')]
		i := bytes.Index(good, []byte(key))
		end := i + bytes.IndexAny(good[i:], ",}")
		f.Add(bytes.Join([][]byte{good[:i], []byte(change), good[end:]}, nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s.replace(t, s.data)
		sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
		must(t, os.WriteFile(s.path+".ckpt", fmt.Appendf(bytes.Clone(data), "%08x", sum), 0o600))
		rec, recs, _ := s.open(t)
		if rec.Last != 8 || rec.Torn != 0 || len(rec.Damaged) != 0 || !cmp.Equal(recs, s.recs) {
			t.Errorf("with a strange checkpoint: %+v", rec)
		}
		if rec.CheckpointSeq > rec.Last {
			t.Errorf("checkpoint at %d of %d records", rec.CheckpointSeq, rec.Last)
		}
	})
}

var _ journal.Store = (*sample)(nil)

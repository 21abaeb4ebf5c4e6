package file_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/journal/journaltest"
)

// countingFS counts what is read of journals.
type countingFS struct {
	file.FS
	read *atomic.Int64
}

type countingFile struct {
	file.File
	read *atomic.Int64
}

func (c countingFS) OpenFile(name string, flag int, perm fs.FileMode) (file.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return countingFile{f, c.read}, nil
}

func (f countingFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	f.read.Add(int64(n))
	return n, err
}

// A long journal has a checkpoint near its end.
type long struct {
	*file.Store
	read atomic.Int64
	path string
}

const (
	longRecords = 5000
	longMark    = 4900
)

func newLong(t *testing.T) *long {
	t.Helper()
	l := &long{}
	l.Store = file.New(t.TempDir(), file.Options{
		FS: countingFS{&journaltest.Disk{FS: file.OS{}}, &l.read}, Window: 1,
	})
	j, err := l.Create(t.Context(), sampleID, time.Now())
	must(t, err)
	pad := strings.Repeat("x", 500)
	for i := range longRecords {
		j.Append(journal.Entry{Kind: "k", Body: json.RawMessage(fmt.Sprintf(`{"i":%d,"pad":"%s"}`, i+1, pad))})
	}
	for n, _ := j.Durable(); n < longRecords; n, _ = j.Durable() {
		<-j.Notify()
	}
	must(t, j.Checkpoint(t.Context(), longMark, []byte("state")))
	must(t, j.Close())
	infos, err := l.List(t.Context())
	must(t, err)
	l.path = infos[0].Path
	l.read.Store(0)
	return l
}

func (l *long) open(t *testing.T) journal.Journal {
	t.Helper()
	j, err := l.Open(t.Context(), sampleID)
	must(t, err)
	t.Cleanup(func() { j.Close() })
	return j
}

func TestOpenReadsOnlyBehindTheCheckpoint(t *testing.T) {
	l := newLong(t)
	j := l.open(t)
	if rec := j.Recovery(); rec.CheckpointSeq != longMark || rec.Last != longRecords || string(rec.Checkpoint) != "state" {
		t.Errorf("Recovery = %+v", rec)
	}
	if n := l.read.Load(); n > 100<<10 {
		t.Errorf("read %d bytes", n)
	}
	l.read.Store(0)
	recs, err := j.Read(t.Context(), 2500, 1)
	must(t, err)
	if len(recs) != 1 || recs[0].Seq != 2501 || !bytes.HasPrefix(recs[0].Body, []byte(`{"i":2501,`)) {
		t.Errorf("Read = %+v", recs)
	}
	if n := l.read.Load(); n > 400<<10 {
		t.Errorf("read %d bytes for one record", n)
	}
}

// A torn tail does not cost the checkpoint.
func TestTornTailBehindTheCheckpoint(t *testing.T) {
	l := newLong(t)
	st, err := os.Stat(l.path)
	must(t, err)
	must(t, os.Truncate(l.path, st.Size()-100))
	j := l.open(t)
	if rec := j.Recovery(); rec.CheckpointSeq != longMark || rec.Last != longRecords-1 || rec.Torn == 0 {
		t.Errorf("Recovery = %+v", rec)
	}
	if n := l.read.Load(); n > 400<<10 {
		t.Errorf("read %d bytes", n)
	}
}

// Damage behind the checkpoint is found and everything is looked at.
func TestDamageBehindTheCheckpoint(t *testing.T) {
	l := newLong(t)
	l.damage(t, 4950)
	l.damage(t, 10)
	j := l.open(t)
	rec := j.Recovery()
	if rec.CheckpointSeq != 0 || rec.Last != longRecords || len(rec.Damaged) != 2 {
		t.Errorf("Recovery = %+v", rec)
	}
}

// damage makes the line of a record unreadable, in place.
func (l *long) damage(t *testing.T, seq int) {
	t.Helper()
	data, err := os.ReadFile(l.path)
	must(t, err)
	i := bytes.Index(data, fmt.Appendf(nil, `{"i":%d,`, seq))
	data[i] = '#'
	must(t, os.WriteFile(l.path, data, 0o600))
}

// Damage before the checkpoint does not disturb Open. Readers are given a
// record in the place of what is lost, Check tells, Repair repairs.
func TestDamageBeforeTheCheckpoint(t *testing.T) {
	l := newLong(t)
	l.damage(t, 1)
	l.damage(t, 1000)
	l.damage(t, 1001)
	j := l.open(t)
	if rec := j.Recovery(); rec.CheckpointSeq != longMark || rec.Last != longRecords || len(rec.Damaged) != 0 {
		t.Errorf("Recovery = %+v", rec)
	}
	lost := func(recs []journal.Record) (seqs []uint64) {
		for i, r := range recs {
			if r.Seq != uint64(i+1) {
				t.Fatalf("record %d has number %d", i+1, r.Seq)
			}
			if r.Kind == "damaged" {
				seqs = append(seqs, r.Seq)
			}
		}
		return seqs
	}
	recs, err := j.Read(t.Context(), 0, 10000)
	must(t, err)
	if diff := cmp.Diff([]uint64{1, 1000, 1001}, lost(recs)); diff != "" || len(recs) != longRecords {
		t.Errorf("%d records, lost %s", len(recs), diff)
	}
	one, err := j.Read(t.Context(), 999, 1)
	if len(one) != 1 || one[0].Seq != 1000 || one[0].Kind != "damaged" || err != nil {
		t.Errorf("Read = %+v, %v", one, err)
	}
	must(t, j.Close())

	v, err := l.View(t.Context(), sampleID)
	must(t, err)
	defer v.Close()
	if faults, err := v.Check(t.Context()); len(faults) != 5 || err != nil {
		t.Errorf("Check = %v, %v", faults, err)
	}
	rec, err := l.Repair(t.Context(), sampleID)
	if rec.Last != longRecords || len(rec.Damaged) != 2 || err != nil {
		t.Errorf("Repair = %+v, %v", rec, err)
	}
	recs, err = l.open(t).Read(t.Context(), 0, 10000)
	must(t, err)
	if diff := cmp.Diff([]uint64{1, 1000, 1001}, lost(recs)); diff != "" {
		t.Errorf("after Repair: %s", diff)
	}
}

// Whatever is wrong with a checkpoint, it is as if there were none.
func TestBadCheckpointIsIgnored(t *testing.T) {
	s := newSample(t)
	j, err := s.Open(t.Context(), sampleID)
	must(t, err)
	must(t, j.Checkpoint(t.Context(), 5, []byte("state")))
	must(t, j.Close())
	good, err := os.ReadFile(s.path + ".ckpt")
	must(t, err)
	at5, n5 := s.lineOf(5)
	for _, test := range []struct {
		name    string
		data    []byte
		journal []byte
	}{
		{"empty", nil, s.data},
		{"zeros", make([]byte, len(good)), s.data},
		{"cut", good[:len(good)-1], s.data},
		{"changed", bytes.Replace(good, []byte("state"), []byte("stale"), 1), s.data},
		{"journal is shorter", good, s.data[:at5+n5-3]},
		{"journal is empty", good, nil},
		{"record is another", good, resum(bytes.Replace(s.data, []byte(`"body":{"i":2`), []byte(`"body":{"i":3`), 1))},
		{"journal is another", good, bytes.Replace(s.data, []byte(`"n":5`), []byte(`"n":6`), 1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.replace(t, test.journal)
			must(t, os.WriteFile(s.path+".ckpt", test.data, 0o600))
			if rec, _, _ := s.open(t); rec.CheckpointSeq != 0 || rec.Checkpoint != nil {
				t.Errorf("Recovery = %+v", rec)
			}
		})
	}
	s.replace(t, s.data)
	must(t, os.WriteFile(s.path+".ckpt", good, 0o600))
	if rec, _, _ := s.open(t); rec.CheckpointSeq != 5 || string(rec.Checkpoint) != "state" {
		t.Errorf("the good one: %+v", rec)
	}
}

func TestCheckpointThatFailsKeepsTheOld(t *testing.T) {
	r := newRig(t)
	j := r.create(t)
	n := j.Append(e("a"), e("b"))
	for d, _ := j.Durable(); d < n; d, _ = j.Durable() {
		<-j.Notify()
	}
	must(t, j.Checkpoint(t.Context(), 1, []byte("old")))
	r.fail(&r.writeErr, os.ErrPermission, 5)
	if j.Checkpoint(t.Context(), 2, []byte("new")) == nil {
		t.Error("no error")
	}
	r.writeErr.Store(nil)
	must(t, j.Close())
	k, err := r.Open(t.Context(), sampleID)
	must(t, err)
	if rec := k.Recovery(); string(rec.Checkpoint) != "old" || rec.CheckpointSeq != 1 {
		t.Errorf("Recovery = %+v", rec)
	}
	must(t, k.Close())
}

// A checkpoint is of the record that it names, not of another one with the same number at the same place.
func TestCheckpointOfAnotherRecordIsIgnored(t *testing.T) {
	base := writeAfter(t, nil, "k1")
	synctest.Test(t, func(t *testing.T) {
		d := emptyDisk()
		s := modelStore(d)
		j, _ := begin(t, s, sampleID)
		must(t, j.Close())
		path := pathOf(t, s, sampleID)
		var files [2][]byte
		for i, kind := range []string{"one", "two"} {
			d.Put(path, string(base), 0o600)
			j, err := s.Open(t.Context(), sampleID)
			must(t, err)
			must(t, (&promise{}).add(j, kind))
			if kind == "one" {
				must(t, j.Checkpoint(t.Context(), 3, []byte("state of one")))
			}
			must(t, j.Close())
			files[i], err = d.ReadFile(path)
			must(t, err)
		}
		if len(files[0]) != len(files[1]) {
			t.Fatalf("the two records are not of one length: %d and %d bytes", len(files[0]), len(files[1]))
		}
		for i, want := range []uint64{3, 0} {
			d.Put(path, string(files[i]), 0o600)
			j, err := s.Open(t.Context(), sampleID)
			must(t, err)
			if rec := j.Recovery(); rec.CheckpointSeq != want {
				t.Errorf("file %d: the checkpoint is %q of record %d, want of %d", i, rec.Checkpoint, rec.CheckpointSeq, want)
			}
			must(t, j.Close())
		}
	})
}

// A checkpoint knows where the last record of each kind was when it was made. Those behind its own record may have been lost
// since, and something else may be there.
func TestKindsBehindTheCheckpointAreNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := emptyDisk()
		s := modelStore(d)
		j, p := begin(t, s, sampleID, "renamed", "b")
		must(t, p.add(j, "renamed"))
		must(t, j.Checkpoint(t.Context(), 3, []byte("state")))
		must(t, j.Close())
		path := pathOf(t, s, sampleID)
		data, err := d.ReadFile(path)
		must(t, err)
		d.Put(path, strings.Join(lines(data)[:3], ""), 0o600) // the second of the kind is lost

		j, err = s.Open(t.Context(), sampleID)
		must(t, err)
		if seq := j.Recovery().CheckpointSeq; seq != 3 {
			t.Fatalf("the checkpoint is of record %d", seq)
		}
		must(t, p.add(j, "other"))
		must(t, j.Checkpoint(t.Context(), 4, []byte("state")))
		must(t, j.Close())
		v, err := s.View(t.Context(), sampleID)
		must(t, err)
		defer v.Close()
		if rec, ok, err := v.Last(t.Context(), "renamed"); rec.Seq != 2 || !ok || err != nil {
			t.Errorf("Last = record %d, %v, %v, want record 2", rec.Seq, ok, err)
		}
	})
}

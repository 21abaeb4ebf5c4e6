package file_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
)

// next returns the kinds of the records that a follower has now.
func next(t *testing.T, f journal.Follower) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	recs, _, _ := f.Next(ctx)
	return kindsOf(recs)
}

// However large a conversation is, looking whether there is something new reads
// nothing but what is new.
func TestFollowReadsEachLineOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int64
		d := emptyDisk()
		j, p := begin(t, modelStore(d), sampleID)
		for i := range 3000 {
			j.Append(journal.Entry{Kind: fmt.Sprint("k", i), Body: benchBody})
		}
		must(t, p.add(j, "last"))
		s := file.New("/home/user/.fermata", file.Options{FS: countingFS{modelFS(d), &read}})
		v, err := s.View(t.Context(), sampleID)
		must(t, err)
		defer v.Close()
		f := v.Follow(0)
		for n := 0; n < 3002; {
			n += len(next(t, f))
		}
		read.Store(0)
		for range 20 {
			next(t, f)
		}
		if n := read.Load(); n != 0 {
			t.Errorf("read %d bytes although there was nothing new", n)
		}
		must(t, p.add(j, "more"))
		if got := next(t, f); !cmp.Equal(got, []string{"more"}) {
			t.Errorf("Next = %v", got)
		}
		if n := read.Load(); n > 2000 {
			t.Errorf("read %d bytes for one record", n)
		}
		must(t, j.Close())
	})
}

// A repair replaces the file; whoever follows goes on with the new one.
func TestFollowOverARepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := emptyDisk()
		s := modelStore(d)
		j, _ := begin(t, s, sampleID, "a", "b", "c")
		must(t, j.Close())
		path := pathOf(t, s, sampleID)
		data, err := d.ReadFile(path)
		must(t, err)
		garbage := strings.Repeat("x", 5000) + "\n" // the repaired file is shorter
		d.Put(path, garbage+string(data), 0o600)
		v, err := s.View(t.Context(), sampleID)
		must(t, err)
		defer v.Close()
		f := v.Follow(0)
		if got := next(t, f); len(got) != 4 {
			t.Fatalf("Next = %v", got)
		}
		w, err := d.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		data, err = d.ReadFile(path)
		must(t, err)
		_, err = w.WriteAt([]byte("X"), int64(bytes.Index(data, []byte(`"kind":"b"`))))
		must(t, err)
		j, err = s.Open(t.Context(), sampleID)
		must(t, err)
		p := promise{}
		must(t, p.add(j, "after"))
		if got := next(t, f); !cmp.Equal(got, []string{"after"}) {
			t.Errorf("Next = %v", got)
		}
		must(t, j.Close())
		must(t, s.Delete(t.Context(), sampleID))
		if _, _, err := f.Next(t.Context()); err == nil {
			t.Error("a deleted conversation is followed")
		}
	})
}

// A batch is seen when all of it is there: what a killed writer left of one is set aside, and its numbers are given again.
func TestUnfinishedBatchesAreNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := emptyDisk()
		s := modelStore(d)
		j, _ := begin(t, s, sampleID, "a")
		j.Append(e("first"), e("middle"), e("last"))
		must(t, j.Close())
		path := pathOf(t, s, sampleID)
		data, err := d.ReadFile(path)
		must(t, err)
		lines := bytes.SplitAfter(data, []byte("\n"))
		whole := len(kindsOf(allOf(t, s)))
		w, err := d.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		must(t, w.Truncate(int64(len(data)-len(lines[len(lines)-2]))))

		v, err := s.View(t.Context(), sampleID)
		must(t, err)
		defer v.Close()
		f := v.Follow(0)
		if got := next(t, f); len(got) != whole-3 {
			t.Errorf("followed: %v", got)
		}
		for limit := 1; limit <= whole; limit++ {
			if recs, err := v.Read(t.Context(), 0, limit); err != nil || len(recs) != min(limit, whole-3) {
				t.Errorf("at most %d records: %v, %v", limit, kindsOf(recs), err)
			}
		}
		j, err = s.Open(t.Context(), sampleID)
		must(t, err)
		j.Append(e("first again"), e("last again"))
		must(t, j.Close())
		want := []string{"first again", "last again"}
		if got := next(t, f); !cmp.Equal(got, want) {
			t.Errorf("followed after the repair: %v", got)
		}
		for limit := 1; limit <= 2; limit++ {
			recs, err := v.Read(t.Context(), uint64(whole-3), limit)
			if must(t, err); !cmp.Equal(kindsOf(recs), want[:limit]) {
				t.Errorf("at most %d records after the repair: %v", limit, kindsOf(recs))
			}
		}
	})
}

func allOf(t *testing.T, s *file.Store) []journal.Record {
	t.Helper()
	v, err := s.View(t.Context(), sampleID)
	must(t, err)
	defer v.Close()
	recs, err := v.Read(t.Context(), 0, 1000)
	must(t, err)
	return recs
}

// The last record of a kind is known without reading everything, once there is a
// checkpoint, also if there is none of that kind.
func TestLastReadsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int64
		d := emptyDisk()
		s := file.New("/home/user/.fermata", file.Options{FS: countingFS{modelFS(d), &read}})
		j, p := begin(t, s, sampleID, "renamed")
		for i := range 3000 {
			j.Append(journal.Entry{Kind: fmt.Sprint("k", i%7), Body: benchBody})
		}
		must(t, p.add(j, "end"))
		must(t, j.Checkpoint(t.Context(), 3003, []byte("state of 3003")))
		must(t, p.add(j, "k3"))
		v, err := s.View(t.Context(), sampleID)
		must(t, err)
		defer v.Close()
		last := func(kind string, want uint64) {
			t.Helper()
			read.Store(0)
			r, ok, err := v.Last(t.Context(), kind)
			must(t, err)
			if ok != (want > 0) || ok && (r.Seq != want || r.Kind != kind) {
				t.Errorf("the last %s is %d, %v, want %d", kind, r.Seq, ok, want)
			}
			if n := read.Load(); n > 600<<10 {
				t.Errorf("read %d bytes to find %s", n, kind)
			}
		}
		last("renamed", 2)
		last("k5", 2+2994+1)
		last("k3", 3004)
		last("never", 0)
		must(t, j.Close())

		// So does the next writer, which has read only what is after the checkpoint.
		j, err = s.Open(t.Context(), sampleID)
		must(t, err)
		must(t, j.Checkpoint(t.Context(), 3004, []byte("state of 3004")))
		must(t, j.Close())
		last("renamed", 2)
		last("k3", 3004)
		last("never", 0)
	})
}

// A record that was written after the checkpoint was taken, and is lost, does not
// hide the one before it.
func TestLastAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := emptyDisk()
		s := modelStore(d)
		j, p := begin(t, s, sampleID, "renamed", "a")
		path := pathOf(t, s, sampleID)
		before, err := d.ReadFile(path)
		must(t, err)
		must(t, p.add(j, "renamed"))
		must(t, j.Checkpoint(t.Context(), 3, []byte("state of 3")))
		must(t, j.Close())
		d.Put(path, string(before), 0o600)
		for range 2 { // then with a checkpoint of a writer that had read that one
			v, err := s.View(t.Context(), sampleID)
			must(t, err)
			if r, ok, err := v.Last(t.Context(), "renamed"); !ok || r.Seq != 2 || err != nil {
				t.Errorf("Last = %d, %v, %v", r.Seq, ok, err)
			}
			must(t, v.Close())
			j, err = s.Open(t.Context(), sampleID)
			must(t, err)
			must(t, j.Checkpoint(t.Context(), 3, []byte("state of 3")))
			must(t, j.Close())
		}
	})
}

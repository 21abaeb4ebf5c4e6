package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/journal/journaltest"
)

// A rig is a store whose disk can be told to misbehave while it is in use.
type rig struct {
	*journaltest.FileStore
	home      string
	disk      journaltest.Model
	syncs     atomic.Int64
	writes    atomic.Int64
	syncTime  atomic.Int64
	syncErr   atomic.Pointer[error]
	writeErr  atomic.Pointer[error]
	shortened atomic.Int64 // bytes that a failing write still writes
}

func newRig(t testing.TB) *rig {
	t.Helper()
	disk := journaltest.NewDisk(journal.MemoryOptions{})
	r := &rig{home: journaltest.Home, disk: disk.FS.(journaltest.Model)}
	r.FileStore = journaltest.OnDisk(r.home, &journaltest.Disk{
		FS:        disk.FS,
		SyncDelay: func() time.Duration { return time.Duration(r.syncTime.Load()) },
		SyncError: func() error {
			r.syncs.Add(1)
			if err := r.syncErr.Load(); err != nil {
				return *err
			}
			return nil
		},
		WriteError: func(int) (int, error) {
			r.writes.Add(1)
			if err := r.writeErr.Load(); err != nil {
				return int(r.shortened.Load()), *err
			}
			return 0, nil
		},
	}, 0)
	return r
}

func (r *rig) create(t *testing.T) journal.Journal {
	t.Helper()
	j, err := r.Create(t.Context(), sampleID, time.Now())
	must(t, err)
	return j
}

func (r *rig) file(t *testing.T) string {
	t.Helper()
	b, err := r.disk.ReadFile(r.Path(sampleID))
	must(t, err)
	return string(b)
}

func kinds(t *testing.T, j journal.Journal) string {
	t.Helper()
	recs, err := j.Read(t.Context(), 0, 1000)
	must(t, err)
	var all []string
	for _, r := range recs {
		k := r.Kind
		if r.Unsaved {
			k += "?"
		}
		all = append(all, k)
	}
	return strings.Join(all, " ")
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func e(kind string) journal.Entry { return journal.Entry{Kind: kind} }

// A full disk: a part of a line is written, then no more. The part is removed.
func TestFullDisk(t *testing.T) {
	for _, short := range []int64{0, 1, 50, 1000} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			j := r.create(t)
			j.Append(e("a"), e("b"))
			synctest.Wait()
			before := r.file(t)
			r.fail(&r.writeErr, syscall.ENOSPC, short)
			j.Append(e("c"), e("d"))
			synctest.Wait()
			j.Append(e("e"))
			want(t, "records", kinds(t, j), "a b c? d? e?")
			if n, err := j.Durable(); n != 5 || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Durable = %d, %v", n, err)
			}
			if err := j.Close(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Close = %v", err)
			}
			want(t, "file", r.file(t), before)
			r.writeErr.Store(nil)
			k, err := r.Open(t.Context(), sampleID)
			must(t, err)
			want(t, "reopened", kinds(t, k), "a b")
			want(t, "torn", k.Recovery().Torn, 0)
			must(t, k.Close())
		})
	}
}

func (r *rig) fail(p *atomic.Pointer[error], err error, short int64) {
	r.shortened.Store(short)
	p.Store(&err)
}

// What was written before the write that failed is still synced and kept.
func TestWriteFailsDuringSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		j := r.create(t)
		r.syncTime.Store(int64(time.Second))
		j.Append(e("a"))
		synctest.Wait()
		j.Append(e("b")) // written while a is being synced
		synctest.Wait()
		r.fail(&r.writeErr, syscall.EIO, 10)
		j.Append(e("c"))
		synctest.Wait()
		want(t, "nothing before the sync is over", kinds(t, j), "")
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		want(t, "first sync", kinds(t, j), "a")
		time.Sleep(time.Second)
		synctest.Wait()
		want(t, "second sync", kinds(t, j), "a b c?")
		if err := j.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Close = %v", err)
		}
		want(t, "lines", strings.Count(r.file(t), "\n"), 2)
	})
}

// After a failed sync nothing is synced or written again, and the file ends
// with what was known to be safe.
func TestFailedSyncIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		j := r.create(t)
		j.Append(e("a"))
		synctest.Wait()
		before := r.file(t)
		r.fail(&r.syncErr, syscall.EIO, 0)
		s := j.Open("s")
		j.Append(e("b"))
		synctest.Wait()
		want(t, "records", kinds(t, j), "a b?")
		want(t, "file", r.file(t), before)

		r.syncErr.Store(nil)
		syncs, writes := r.syncs.Load(), r.writes.Load()
		j.Append(e("c"))
		s.Write("1.1.0", "message", strings.Repeat("x", 10000))
		time.Sleep(time.Second)
		synctest.Wait()
		want(t, "records", kinds(t, j), "a b? c?")
		if err := j.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Close = %v", err)
		}
		want(t, "syncs", r.syncs.Load(), syncs)
		want(t, "writes", r.writes.Load(), writes)
		want(t, "file", r.file(t), before)
	})
}

func TestFailureInTheMiddleOfAClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		j := r.create(t)
		r.syncTime.Store(int64(time.Second))
		j.Append(e("a"))
		synctest.Wait()
		reader := j.Follow(0)
		r.fail(&r.syncErr, syscall.EIO, 0)
		if err := j.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Close = %v", err)
		}
		recs, _, err := reader.Next(t.Context())
		if len(recs) != 1 || !recs[0].Unsaved || err != nil {
			t.Errorf("Next = %v, %v", recs, err)
		}
		if _, _, err := reader.Next(t.Context()); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("Next = %v", err)
		}
	})
}

func TestProgressThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		j := r.create(t)
		r.fail(&r.writeErr, syscall.ENOSPC, 3)
		j.Open("s").Write("1.1.0", "message", "text")
		time.Sleep(time.Second)
		synctest.Wait()
		select {
		case <-j.Notify():
		default:
			t.Error("not notified")
		}
		if _, err := j.Durable(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Durable = %v", err)
		}
		j.Close()
		want(t, "file", r.file(t), "")
	})
}

func TestCreateThatFailsLeavesNothing(t *testing.T) {
	r := newRig(t)
	r.disk.Put(filepath.Join(r.home, "conversations", time.Now().UTC().Format("2006/01/02"), "other"), "", 0o600)
	before := r.disk.Paths()
	r.fail(&r.syncErr, syscall.EIO, 0)
	if _, err := r.Create(t.Context(), sampleID, time.Now()); !errors.Is(err, syscall.EIO) {
		t.Errorf("Create = %v", err)
	}
	if diff := cmp.Diff(before, r.disk.Paths()); diff != "" {
		t.Errorf("left behind: %s", diff)
	}
	r.syncErr.Store(nil)
	must(t, r.create(t).Close())
}

// deniedFS refuses to open some files.
type deniedFS struct {
	file.OS
	suffix string
	flag   int
	err    error
}

func (d deniedFS) OpenFile(name string, flag int, perm fs.FileMode) (file.File, error) {
	if strings.HasSuffix(name, d.suffix) && flag&d.flag != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: d.err}
	}
	return d.OS.OpenFile(name, flag, perm)
}

func TestReadOnly(t *testing.T) {
	home := t.TempDir()
	denied := deniedFS{suffix: ".jsonl", flag: os.O_RDWR, err: syscall.EROFS}
	s := file.New(home, file.Options{FS: denied})
	_, err := s.Create(t.Context(), sampleID, time.Now())
	if !errors.Is(err, syscall.EROFS) || !strings.HasPrefix(err.Error(), "create conversation "+sampleID+": ") {
		t.Errorf("Create = %v", err)
	}
	j, err := file.New(home, file.Options{}).Create(t.Context(), sampleID, time.Now())
	must(t, err)
	j.Append(e("a"))
	must(t, j.Close())
	_, err = s.Open(t.Context(), sampleID)
	if !errors.Is(err, syscall.EROFS) || !strings.HasPrefix(err.Error(), "open conversation "+sampleID+": ") {
		t.Errorf("Open = %v", err)
	}
	v, err := s.View(t.Context(), sampleID)
	must(t, err)
	defer v.Close()
	if recs, err := v.Read(t.Context(), 0, 10); len(recs) != 1 || err != nil {
		t.Errorf("Read = %v, %v", recs, err)
	}
}

// A repair that cannot be done leaves everything as it was, and can be done later.
func TestRepairThatFails(t *testing.T) {
	s := newSample(t)
	torn := append(bytes.Clone(s.data), "torn"...)
	holed := bytes.Clone(s.data)
	clear(holed[200:300])
	for _, damaged := range [][]byte{torn, holed} {
		for _, suffix := range []string{".damaged", ".tmp"} {
			if suffix == ".tmp" && bytes.Equal(damaged, torn) {
				continue // needs none
			}
			s.replace(t, damaged)
			denied := deniedFS{suffix: suffix, flag: os.O_WRONLY | os.O_CREATE, err: syscall.ENOSPC}
			home := filepath.Join(filepath.Dir(s.path), "../../../..")
			_, err := file.New(home, file.Options{FS: denied}).Open(t.Context(), sampleID)
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Open = %v", err)
			}
			if now, _ := os.ReadFile(s.path); !bytes.Equal(now, damaged) {
				t.Error("the file was changed")
			}
			if rec, _, _ := s.open(t); rec.Torn == 0 && len(rec.Damaged) == 0 {
				t.Errorf("nothing was repaired: %+v", rec)
			}
			s.content(t)
		}
	}
}

// Progress reaches the file after 50 ms or 4 KiB and is never synced; what was
// closed before is not written at all.
func TestProgressGoesToTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		j := r.create(t)
		s := j.Open("s")
		syncs := r.syncs.Load()
		inFile := func(text string, yes bool) {
			t.Helper()
			synctest.Wait()
			want(t, fmt.Sprintf("%q in the file", text), strings.Contains(r.file(t), text), yes)
		}
		s.Write("1.1.0", "message", "first")
		time.Sleep(49 * time.Millisecond)
		s.Write("1.1.0", "message", "second")
		inFile("first", false)
		time.Sleep(2 * time.Millisecond)
		inFile(`{"item":"1.1.0","tag":"message","at":0,"text":"firstsecond","of":"`, true)

		s.Write("1.1.0", "message", "third")
		inFile("third", false)
		s.Write("1.1.0", "message", strings.Repeat("x", 4<<10))
		inFile("third", true)
		want(t, "syncs", r.syncs.Load(), syncs)

		writes := r.writes.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		want(t, "writes while nothing happens", r.writes.Load(), writes)
		r.syncTime.Store(int64(time.Second))
		s.Write("1.1.1", "message", "superseded")
		j.Append(journal.Entry{Kind: "done", Closes: "1."})
		time.Sleep(500 * time.Millisecond)
		inFile("superseded", false)
		inFile(`"kind":"done","closes":"1.","body":null`, true)
		must(t, j.Close())
	})
}

func TestProgressOfOneItemIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		j := r.create(t)
		s := j.Open("s")
		text := strings.Repeat("äöü ", 1000)
		for range 1000 {
			s.Write("1.1.0", "stdout", text)
		}
		s.Write("1.1.1", "stdout", "another")
		time.Sleep(time.Second)
		synctest.Wait()
		j.(interface{ Abandon() bool }).Abandon()
		if n := len(r.file(t)); n > 1<<20+8<<10 {
			t.Errorf("the file has %d bytes", n)
		}
		k, err := r.Open(t.Context(), sampleID)
		must(t, err)
		items := openItems(t, k)
		if len(items) != 2 || len(items[0].Text) < 1<<20-4 || len(items[0].Text) > 1<<20 || items[1].Text != "another" {
			t.Fatalf("%d items, the first with %d bytes", len(items), len(items[0].Text))
		}
		if !strings.HasPrefix(strings.Repeat(text, 1000), items[0].Text) {
			t.Error("the text is wrong")
		}
		must(t, k.Close())
	})
}

func TestSyncsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		j := r.create(t)
		syncs := r.syncs.Load()
		r.syncTime.Store(int64(time.Second))
		for i := range 1000 {
			j.Append(e(fmt.Sprint(i)))
			if i == 0 {
				synctest.Wait()
			}
		}
		must(t, j.Close())
		want(t, "syncs for 1000 records", r.syncs.Load()-syncs, 2)
	})
}

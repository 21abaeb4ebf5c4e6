package journaltest

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
)

// A Disk is a file system whose syncs and writes can be slow and fail. It knows
// what a loss of power would leave of each file. Its functions are called from
// any goroutine; set them before use.
type Disk struct {
	// SyncDelay says how long the next sync takes, and SyncError how it ends.
	SyncDelay func() time.Duration
	SyncError func() error
	// WriteError makes a write of n bytes fail after some of them were written.
	WriteError func(n int) (written int, err error)

	mu    sync.Mutex
	files map[string]*diskFile // by path; the handle that was opened last for writing
}

// OpenFile implements file.FS.
func (d *Disk) OpenFile(name string, flag int, perm fs.FileMode) (file.File, error) {
	f, err := file.OS{}.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	df := &diskFile{File: f, disk: d, closed: make(chan struct{})}
	if flag&(os.O_RDWR|os.O_WRONLY) == 0 {
		return df, nil
	}
	if st, err := f.Stat(); err == nil {
		df.written, df.synced = st.Size(), st.Size()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files == nil {
		d.files = make(map[string]*diskFile)
	}
	d.files[name] = df
	return df, nil
}

// Rename implements file.FS.
func (d *Disk) Rename(from, to string) error { return file.OS{}.Rename(from, to) }

// SyncDir implements file.FS.
func (d *Disk) SyncDir(dir string) error { return d.sync(nil) }

// sync takes as long, and ends, as it was told to, or when the file is closed.
// There is no real sync: no test can see the difference.
func (d *Disk) sync(closed <-chan struct{}) error {
	if d.SyncDelay != nil {
		select {
		case <-time.After(d.SyncDelay()):
		case <-closed:
			return os.ErrClosed
		}
	}
	if d.SyncError != nil {
		return d.SyncError()
	}
	return nil
}

// A diskFile is guarded by the disk's mutex.
type diskFile struct {
	file.File
	disk    *Disk
	closed  chan struct{}
	written int64 // what the operating system has
	synced  int64 // what the disk has
}

// Write implements file.File.
func (f *diskFile) Write(b []byte) (int, error) {
	var fault error
	if f.disk.WriteError != nil {
		n, err := f.disk.WriteError(len(b))
		if err != nil {
			b, fault = b[:min(n, len(b))], err
		}
	}
	n, err := f.File.Write(b)
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.written += int64(n)
	if fault != nil {
		err = fault
	}
	return n, err
}

// Close implements file.File.
func (f *diskFile) Close() error {
	close(f.closed)
	return f.File.Close()
}

// Truncate implements file.File.
func (f *diskFile) Truncate(size int64) error {
	f.disk.mu.Lock()
	f.written = size
	f.synced = min(f.synced, size)
	f.disk.mu.Unlock()
	return f.File.Truncate(size)
}

// Sync implements file.File.
func (f *diskFile) Sync() error {
	f.disk.mu.Lock()
	n := f.written
	f.disk.mu.Unlock()
	if err := f.disk.sync(f.closed); err != nil {
		return err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.synced = max(f.synced, min(n, f.written))
	return nil
}

// A FileStore is a file store on a Disk, with crashes as the memory store has them.
type FileStore struct {
	*file.Store
	Disk *Disk

	mu   sync.Mutex
	open map[string]journal.Journal
}

// NewFileStore returns a file store in a directory of the test's own, on a disk
// that behaves as the options say.
func NewFileStore(t testing.TB, o journal.MemoryOptions) *FileStore {
	t.Helper()
	d := &Disk{SyncDelay: o.SyncDelay, SyncError: o.SyncError}
	return OnDisk(t.TempDir(), d, 0)
}

// OnDisk returns a file store on a disk; window is that of file.Options.
func OnDisk(home string, d *Disk, window int) *FileStore {
	return &FileStore{
		Store: file.New(home, file.Options{FS: d, Window: window}),
		Disk:  d,
		open:  make(map[string]journal.Journal),
	}
}

// Create implements journal.Store.
func (s *FileStore) Create(ctx context.Context, id string, at time.Time) (journal.Journal, error) {
	j, err := s.Store.Create(ctx, id, at)
	return s.remember(id, j, err)
}

// Open implements journal.Store.
func (s *FileStore) Open(ctx context.Context, id string) (journal.Journal, error) {
	j, err := s.Store.Open(ctx, id)
	return s.remember(id, j, err)
}

func (s *FileStore) remember(id string, j journal.Journal, err error) (journal.Journal, error) {
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[id] = j
	return j, nil
}

// Crash is like that of journal.MemoryStore. After CrashPower the file may also
// end in zeros instead of being shorter, as some file systems leave it.
func (s *FileStore) Crash(id string, mode journal.CrashMode, r *rand.Rand) {
	s.mu.Lock()
	j := s.open[id]
	delete(s.open, id)
	s.mu.Unlock()
	if j == nil {
		return
	}
	if !j.(interface{ Abandon() bool }).Abandon() || mode == journal.CrashKill {
		return
	}

	path := s.Path(id)
	s.Disk.mu.Lock()
	f := s.Disk.files[path]
	written, synced := f.written, f.synced
	s.Disk.mu.Unlock()
	keep := synced + r.Int64N(written-synced+1)
	if err := os.Truncate(path, keep); err != nil {
		panic(err)
	}
	if r.IntN(2) == 0 {
		os.Truncate(path, written)
	}
	if r.IntN(2) == 0 {
		os.Remove(path + ".ckpt")
	}
}

// Path returns where the journal of a conversation is, or "".
func (s *FileStore) Path(id string) string {
	infos, _ := s.List(context.Background())
	for _, info := range infos {
		if info.ID == id {
			return filepath.Clean(info.Path)
		}
	}
	return ""
}

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

	"github.com/fermata-agent/fermata/internal/disktest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
)

// A Disk is a file system whose syncs and writes can be slow and fail. Its
// functions are called from any goroutine; set them before use.
type Disk struct {
	file.FS // OnModel, or that of the operating system, whose syncs are left out: no test can see the difference

	// SyncDelay says how long the next sync takes, and SyncError how it ends.
	SyncDelay func() time.Duration
	SyncError func() error
	// WriteError makes a write of n bytes fail after some of them were written.
	WriteError func(n int) (written int, err error)
}

// OpenFile implements file.FS.
func (d *Disk) OpenFile(name string, flag int, perm fs.FileMode) (file.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f, disk: d, closed: make(chan struct{})}, nil
}

// SyncDir implements file.FS.
func (d *Disk) SyncDir(dir string) error {
	return d.sync(nil, func() error { return d.FS.SyncDir(dir) })
}

// sync waits for SyncDelay, or until the file is closed, then syncs unless SyncError
// fails.
func (d *Disk) sync(closed <-chan struct{}, do func() error) error {
	if d.SyncDelay != nil {
		select {
		case <-time.After(d.SyncDelay()):
		case <-closed:
			return os.ErrClosed
		}
	}
	if d.SyncError != nil {
		if err := d.SyncError(); err != nil {
			return err
		}
	}
	if _, ok := d.FS.(file.OS); ok {
		return nil
	}
	return do()
}

type diskFile struct {
	file.File
	disk   *Disk
	closed chan struct{}
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

// Sync implements file.File.
func (f *diskFile) Sync() error {
	if m, ok := f.File.(modelFile); ok {
		return m.SyncAfter(func() error { return f.disk.sync(f.closed, func() error { return nil }) })
	}
	return f.disk.sync(f.closed, f.File.Sync)
}

// Model is the model of a disk as a file system for journals.
type Model struct{ *disktest.Disk }

type modelFile struct{ *disktest.File }

// OpenFile implements file.FS.
func (m Model) OpenFile(name string, flag int, perm fs.FileMode) (file.File, error) {
	f, err := m.Disk.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return modelFile{f}, nil
}

// IsEmpty implements file.FS.
func (m Model) IsEmpty(dir string) (bool, error) {
	entries, err := m.ReadDir(dir)
	return len(entries) == 0, err
}

// SameFile implements file.FS.
func (Model) SameFile(a, b fs.FileInfo) bool { return disktest.SameFile(a, b) }

// Home is where the stores on a Model are.
const Home = "/home/user/.fermata"

// A FileStore is a file store on a Disk, with crashes as the memory store has them.
type FileStore struct {
	*file.Store
	Disk *Disk

	mu   sync.Mutex
	open map[string]journal.Journal
}

// NewFileStore returns a file store on the model of a disk that behaves as the
// options say.
func NewFileStore(_ testing.TB, o journal.MemoryOptions) *FileStore {
	return OnDisk(Home, NewDisk(o), 0)
}

// NewDisk returns the model of an empty disk that behaves as the options say.
func NewDisk(o journal.MemoryOptions) *Disk {
	d := disktest.New()
	d.Put(filepath.Dir(Home), "", fs.ModeDir|0o755)
	return &Disk{FS: Model{d}, SyncDelay: o.SyncDelay, SyncError: o.SyncError}
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

// Crash is like that of journal.MemoryStore, for the files of one conversation.
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

	path, disk := s.Path(id), s.Disk.FS.(Model)
	disk.CutFile(path, r)
	if checkpoint := path + ".ckpt"; r.IntN(2) == 0 {
		disk.Drop(checkpoint)
	} else {
		disk.CutFile(checkpoint, r)
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

// Package file keeps conversations in files, one for each: lines of JSON that are
// only ever appended to, synced in groups by a goroutine of the journal's own.
// Opening repairs: what cannot be read is set aside beside the file.
//
// Start reading at [Store]; journal.go is the writer, line.go the form of a line,
// recover.go and repair.go what opening does, view.go reading beside a writer.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file/disk"
	"github.com/fermata-agent/fermata/internal/journal/file/format"
	"github.com/fermata-agent/fermata/internal/journal/file/layout"
	"github.com/fermata-agent/fermata/internal/journal/file/watch"
	"github.com/fermata-agent/fermata/protocol"
)

// Options changes how a file store works. The zero value is right for
// everything but tests.
type Options struct {
	FS     FS  // instead of the operating system's
	Window int // bytes of recent records to keep in memory; 4 MiB if 0

	// Address returns where this process accepts clients, for those who find a
	// conversation locked; empty if it accepts none. It is called once, when the first conversation is
	// about to be locked. nil is empty.
	Address func() string

	// Poll looks for what other processes change from time to time, and does not have the system report it.
	Poll bool

	// Join says that other owners can be joined: Open does not wait for those that accept clients.
	Join bool
}

// defaultWindow is how much of a conversation readers get without the disk.
const defaultWindow = 4 << 20

// A Store keeps each conversation in a file of its own:
//
//	<home>/conversations/2026/11/15/2026-11-15T11-41-54-<id>.jsonl
//
// Archived ones are under <home>/archived in the same way. All times are UTC.
type Store struct {
	home   string
	fs     FS
	window int
	self   func() journal.Owner
	join   bool

	changes watch.Watcher
}

var _ journal.Store = (*Store)(nil)

// New returns the store in a directory. Nothing is touched yet.
func New(home string, o Options) *Store {
	s := &Store{home: home, fs: o.FS, window: o.Window, join: o.Join}
	s.self = sync.OnceValue(func() journal.Owner {
		if o.Address == nil {
			return protocol.Self("")
		}
		return protocol.Self(o.Address())
	})
	if s.fs == nil {
		s.fs = OS{}
	}
	if s.window <= 0 {
		s.window = defaultWindow
	}
	_, real := s.fs.(OS)
	s.changes.FS, s.changes.Poll = s.fs, o.Poll || !real
	return s
}

// Create implements Store.
func (s *Store) Create(ctx context.Context, id string, at time.Time) (journal.Journal, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	j, err := s.create(id, at)
	if err != nil {
		return nil, fmt.Errorf("create conversation %s: %w", id, err)
	}
	return j, nil
}

func (s *Store) create(id string, at time.Time) (_ *fileJournal, err error) {
	if !journal.ValidID(id) {
		return nil, errors.New("not a conversation id")
	}
	if s.exists(id, at) {
		return nil, fs.ErrExist
	}
	path := layout.Journal(filepath.Join(s.home, activeDir), id, at)
	if err := s.mkdirs(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := disk.TakeLock(s.fs, path+lockSuffix, s.self())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.Release()
		}
	}()

	f, err := s.fs.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	// There is nothing in it to sync: its first record does that, before anything depends on it.
	if err := errors.Join(f.Lock(), s.fs.SyncDir(filepath.Dir(path))); err != nil {
		f.Close()
		s.fs.Remove(path)
		return nil, err
	}
	of := format.IDSum(id)
	return s.start(&held{id, path, lock, f}, found{of: of, sum: of, kinds: make(map[string]int64)}), nil
}

// exists reports whether a conversation that is to be created at a time is there already. It
// does not look everywhere: that would cost more with each conversation. If its id is of
// that time, no process can have created it but in the second of its id or the next.
func (s *Store) exists(id string, at time.Time) bool {
	find := s.findNear
	if made, ok := layout.Time(id); ok && !at.Before(made) && at.Sub(made) <= time.Second {
		find = s.findAt
	}
	_, exists := find(id)
	return exists
}

// Open implements Store.
func (s *Store) Open(ctx context.Context, id string) (journal.Journal, error) {
	var j *fileJournal
	var other *journal.LockedError // who is to be joined
	err := journal.WaitForLock(ctx, func() error {
		h, err := s.lock(ctx, id)
		if s.join && errors.As(err, &other) && other.Joinable() {
			return nil
		}
		other = nil
		if err != nil {
			return err
		}
		j, err = s.recover(*h)
		if err != nil {
			h.lock.Release()
		}
		return err
	})
	if err == nil && other != nil {
		err = other
	}
	if err != nil {
		return nil, fmt.Errorf("open conversation %s: %w", id, err)
	}
	return j, nil
}

// Repair implements Store.
func (s *Store) Repair(ctx context.Context, id string) (journal.Recovery, error) {
	err := journal.WaitForLock(ctx, func() error {
		if err := s.replaceLink(ctx, id); err != nil {
			return err
		}
		return s.putBack(ctx, id)
	})
	if err != nil {
		return journal.Recovery{}, fmt.Errorf("repair conversation %s: %w", id, err)
	}
	path, err := s.find(ctx, id)
	if err == nil {
		err = s.dropCheckpoint(path) // it may be lost at any time, so no lock is needed
	}
	if err != nil {
		return journal.Recovery{}, fmt.Errorf("repair conversation %s: %w", id, err)
	}
	j, err := s.Open(ctx, id)
	if err != nil {
		return journal.Recovery{}, err
	}
	return j.Recovery(), j.Close()
}

// SetAside implements Store.
func (s *Store) SetAside(ctx context.Context, id string, after uint64) error {
	err := journal.WaitForLock(ctx, func() error { return s.setAsideAfter(ctx, id, after) })
	if err != nil {
		return fmt.Errorf("set aside records of conversation %s: %w", id, err)
	}
	return nil
}

func (s *Store) setAsideAfter(ctx context.Context, id string, after uint64) error {
	h, err := s.lock(ctx, id)
	if err != nil {
		return err
	}
	defer h.release()
	st, err := h.file.Stat()
	if err != nil {
		return err
	}
	end := int64(0)
	var last format.Span
	if after > 0 {
		last, err = locate(h.file, format.IDSum(id), after, 0)
		if errors.Is(err, errNoRecord) {
			return nil // there is nothing after it
		}
		if err != nil {
			return err
		}
		end = last.Off + last.Size
	}
	if end == st.Size() {
		return nil
	}
	p := &plan{from: position{off: end}, parts: []part{{off: end, size: st.Size() - end}}, inPlace: true}
	if err := s.setAside(h.path, h.file, p); err != nil {
		return err
	}
	if err := s.dropCheckpoint(h.path); err != nil {
		return err
	}
	if last.More {
		return s.rewrite(h, func(to File) error { return copyEndingWith(to, h.file, &last) })
	}
	return errors.Join(p.cutEnd(h.file), h.file.Sync())
}

// copyEndingWith copies a journal up to a record within a batch, which ends with that record in the copy.
func copyEndingWith(to, from File, last *format.Span) error {
	line, _ := format.AppendRecord(nil, &journal.Pending{Record: last.Decode(), Closes: format.Unquote(last.Closes)}, last.Link)
	if _, err := io.Copy(to, io.NewSectionReader(from, 0, last.Off)); err != nil {
		return err
	}
	_, err := to.Write(line)
	return err
}

// Owner implements Store.
func (s *Store) Owner(ctx context.Context, id string) (journal.Owner, bool, error) {
	path, err := s.find(ctx, id)
	if err != nil {
		return journal.Owner{}, false, fmt.Errorf("look at conversation %s: %w", id, err)
	}
	f, err := disk.Open(s.fs, path, os.O_RDONLY, 0)
	if err != nil {
		return journal.Owner{}, false, fmt.Errorf("look at conversation %s: %w", id, err)
	}
	defer f.Close()
	err = f.Lock() // for a moment: whoever opens it meanwhile tries again
	if err == nil {
		return journal.Owner{}, false, nil
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return journal.Owner{}, false, fmt.Errorf("look at conversation %s: %w", id, err)
	}
	var owner journal.Owner
	if l, err := disk.Open(s.fs, path+lockSuffix, os.O_RDONLY, 0); err == nil {
		owner = disk.ReadOwner(l)
		l.Close()
	}
	if owner.PID == 0 {
		owner.PID = disk.Holder(f)
	}
	return owner, true, nil
}

// lock takes the locks of a conversation.
func (s *Store) lock(ctx context.Context, id string) (*held, error) {
	var path string
	for range disk.LockTries {
		var err error
		path, err = s.find(ctx, id)
		if err != nil {
			return nil, err
		}
		l, err := disk.TakeLock(s.fs, path+lockSuffix, s.self())
		if err != nil {
			return nil, err
		}
		h, err := s.hold(id, path, l)
		if h != nil {
			return h, nil
		}
		l.Release()
		if err != nil {
			return nil, err
		} // else it was archived, deleted or repaired before we had the lock: look again
	}
	return nil, disk.ReplacedError(path)
}

// View implements Store.
func (s *Store) View(ctx context.Context, id string) (journal.View, error) {
	path, err := s.find(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("view conversation %s: %w", id, err)
	}
	f, err := disk.Open(s.fs, path, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("view conversation %s: %w", id, err)
	}
	return &fileView{store: s, file: f, id: id, path: path, of: format.IDSum(id)}, nil
}

// Watch implements Store.
func (s *Store) Watch(ctx context.Context, id string) (changed <-chan struct{}, stop func()) {
	path, err := s.find(ctx, id)
	if err != nil {
		return nil, func() {} // who looks is told why
	}
	return s.changes.Watch(path)
}

// Stat implements Store.
func (s *Store) Stat(ctx context.Context, id string) (journal.Info, error) {
	path, err := s.find(ctx, id)
	if err != nil {
		return journal.Info{}, fmt.Errorf("look at conversation %s: %w", id, err)
	}
	st, err := s.fs.Lstat(path)
	if err != nil {
		return journal.Info{}, fmt.Errorf("look at conversation %s: %w", id, err)
	}
	_, archived := s.below(archivedDir, path)
	return journal.Info{ID: id, Path: path, Modified: st.ModTime(), Size: st.Size(), Archived: archived}, nil
}

// below returns where a path is below a directory of the store, if it is.
func (s *Store) below(dir, path string) (string, bool) {
	rel, err := filepath.Rel(filepath.Join(s.home, dir), path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// List implements Store.
func (s *Store) List(ctx context.Context) ([]journal.Info, error) {
	names, unread, err := s.walk(ctx)
	if err != nil {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	infos := make([]journal.Info, 0, len(names))
	for _, n := range names {
		st, err := n.entry.Info()
		if err != nil {
			continue // deleted meanwhile
		}
		infos = append(infos, journal.Info{ID: n.id, Path: n.path, Modified: st.ModTime(), Size: st.Size(), Archived: n.archived})
	}
	if len(unread) > 0 {
		return infos, &journal.IncompleteError{Unread: unread}
	}
	return infos, nil
}

// Archive implements Store.
func (s *Store) Archive(ctx context.Context, id string) error {
	if err := s.archive(ctx, id); err != nil {
		return fmt.Errorf("archive conversation %s: %w", id, err)
	}
	return nil
}

func (s *Store) archive(ctx context.Context, id string) error {
	h, err := s.lock(ctx, id)
	if err != nil {
		return err
	}
	defer h.release()
	path := h.path
	below, active := s.below(activeDir, path)
	if !active {
		return s.adopt(path)
	}
	to := filepath.Join(s.home, archivedDir, below)
	if err := s.mkdirs(filepath.Dir(to)); err != nil {
		return err
	}
	if err := s.move(path, to); err != nil {
		return err
	}
	return s.adopt(to)
}

// Unarchive implements Store.
func (s *Store) Unarchive(ctx context.Context, id string) error {
	if err := s.unarchive(ctx, id); err != nil {
		return fmt.Errorf("unarchive conversation %s: %w", id, err)
	}
	return nil
}

// unarchive moves the journal last: what whoever was killed meanwhile has moved
// before is found from the archived side.
func (s *Store) unarchive(ctx context.Context, id string) error {
	h, err := s.lock(ctx, id)
	if err != nil {
		return err
	}
	defer h.release()
	path := h.path
	below, archived := s.below(archivedDir, path)
	if !archived {
		return nil
	}
	to := filepath.Join(s.home, activeDir, below)
	if err := s.mkdirs(filepath.Dir(to)); err != nil {
		return err
	}
	for _, suffix := range []string{damagedSuffix, checkpointSuffix} {
		if err := s.move(path+suffix, to+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.move(path, to)
}

// adopt moves what belongs to an archived journal and is still in the old place.
// The journal is moved first, and durably: so what is left behind by whoever was
// killed meanwhile is always found from the archived side.
func (s *Store) adopt(path string) error {
	below, archived := s.below(archivedDir, path)
	if !archived {
		return nil
	}
	old := filepath.Join(s.home, activeDir, below)
	for _, suffix := range []string{damagedSuffix, checkpointSuffix} {
		if _, err := s.fs.Lstat(path + suffix); err == nil {
			continue
		}
		if err := s.move(old+suffix, path+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// move renames a file, durably.
func (s *Store) move(from, to string) error {
	if err := s.fs.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(s.fs.SyncDir(filepath.Dir(to)), s.fs.SyncDir(filepath.Dir(from)))
}

// Delete implements Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	if err := s.delete(ctx, id); err != nil {
		return fmt.Errorf("delete conversation %s: %w", id, err)
	}
	return nil
}

func (s *Store) delete(ctx context.Context, id string) error {
	h, err := s.lock(ctx, id)
	var other *NotRegularError
	if errors.As(err, &other) && filepath.Ext(other.Path) == layout.Suffix {
		return s.deleteFiles(other.Path) // no process can have it open
	}
	if err != nil {
		return err
	}
	defer h.release()
	return s.deleteFiles(h.path)
}

// deleteFiles removes the journal at a path, and all files beside it.
func (s *Store) deleteFiles(path string) error {
	suffixes := []string{damagedSuffix, checkpointSuffix, tempSuffix, checkpointSuffix + tempSuffix}
	for n := range disk.MaxMoved {
		for _, suffix := range []string{lockSuffix, damagedSuffix, tempSuffix, checkpointSuffix + tempSuffix} {
			suffixes = append(suffixes, disk.MovedPath(suffix, n+1))
		}
	}
	for n := range maxRescued {
		suffixes = append(suffixes, rescuePath("", n+1))
	}
	// The journal goes last: without it the others are not found.
	for _, suffix := range append(suffixes, "") {
		if _, err := s.fs.Lstat(path + suffix); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := s.fs.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.fs.SyncDir(filepath.Dir(path))
}

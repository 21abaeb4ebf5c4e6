package foreign

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/fermata-agent/fermata/internal/foreign/sqlite"
	"github.com/fermata-agent/fermata/internal/regular"
)

// A snapshot is a copy of a database that does not change.
type snapshot struct {
	*sqlite.DB
	dir   string // of the copy
	files []*os.File
	size  int64

	messageRows map[string][]ocMessage // by session, in order
	partRows    map[string][]ocPlace   // by message, in order
}

type ocMessage struct {
	id      string
	created int64
	at      sqlite.Place
}

type ocPlace struct {
	id string
	at sqlite.Place
}

// database returns the snapshot of the home's database, which is made when it is first needed.
func (h *Home) database(ctx context.Context) (*snapshot, error) {
	if h.snap != nil {
		return h.snap, nil
	}
	if h.Scratch == "" {
		return nil, errors.New("no directory to copy the database to")
	}
	if err := os.MkdirAll(h.Scratch, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(h.Scratch, "opencode-")
	if err != nil {
		return nil, err
	}
	s := &snapshot{dir: dir, messageRows: map[string][]ocMessage{}, partRows: map[string][]ocPlace{}}
	if err := s.open(ctx, h.databaseFile()); err != nil {
		s.close()
		return nil, err
	}
	h.snap = s
	return s, nil
}

func (h *Home) databaseFile() string { return cmp.Or(h.File, filepath.Join(h.Dir, "opencode.db")) }

func (s *snapshot) close() {
	for _, f := range s.files {
		f.Close()
	}
	os.RemoveAll(s.dir)
}

// copyTries is how often a database that changes while it is copied is copied again.
const copyTries = 10

// open copies a database with its log, and opens the copy. The original is only read: SQLite itself would write
// the log into it.
func (s *snapshot) open(ctx context.Context, path string) error {
	names := []string{path, path + "-wal"}
	for try := 1; ; try++ {
		before := stamps(names)
		for _, name := range names {
			if err := copyFile(ctx, name, filepath.Join(s.dir, filepath.Base(name))); err != nil && !(errors.Is(err, fs.ErrNotExist) && name != path) {
				return err
			}
		}
		if slices.Equal(before, stamps(names)) {
			break
		}
		if try == copyTries {
			return fmt.Errorf("%s changes all the time: stop opencode, or try again later", path)
		}
	}
	var readers [2]io.ReaderAt
	var sizes [2]int64
	for i, name := range names {
		f, err := regular.Open(filepath.Join(s.dir, filepath.Base(name)))
		if errors.Is(err, fs.ErrNotExist) && i == 1 {
			break
		}
		if err != nil {
			return err
		}
		s.files = append(s.files, f)
		st, err := f.Stat()
		if err != nil {
			return err
		}
		readers[i], sizes[i] = f, st.Size()
		s.size += st.Size()
	}
	db, err := sqlite.Open(readers[0], sizes[0], readers[1], sizes[1])
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s.DB = db
	return s.index()
}

// stamps are the sizes and times of files, to see whether they change.
func stamps(names []string) []string {
	var list []string
	for _, name := range names {
		if st, err := os.Stat(name); err == nil {
			list = append(list, fmt.Sprint(name, st.Size(), st.ModTime().UnixNano()))
		}
	}
	return list
}

func copyFile(ctx context.Context, from, to string) error {
	in, err := regular.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, readerFunc(func(b []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return in.Read(b)
	}))
	return errors.Join(err, out.Close())
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// index notes where the messages and parts of each session are, so that a session is read without the others.
func (s *snapshot) index() error {
	for name, columns := range map[string][]string{"session": {"id", "directory", "title"}, "message": {"id", "session_id", "data"}, "part": {"id", "message_id", "data"}} {
		if !s.Has(name, columns...) {
			return fmt.Errorf("the database has no table %s as opencode makes it", name)
		}
	}
	err := s.Each("message", []string{"id", "session_id", "time_created"}, func(r sqlite.Row) bool {
		session := r.Get("session_id").Text()
		s.messageRows[session] = append(s.messageRows[session], ocMessage{r.Get("id").Text(), r.Get("time_created").Int(), r.Place()})
		return true
	})
	if err != nil {
		return err
	}
	for _, list := range s.messageRows {
		slices.SortStableFunc(list, func(a, b ocMessage) int { return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.id, b.id)) })
	}
	err = s.Each("part", []string{"id", "message_id"}, func(r sqlite.Row) bool {
		message := r.Get("message_id").Text()
		s.partRows[message] = append(s.partRows[message], ocPlace{r.Get("id").Text(), r.Place()})
		return true
	})
	for _, list := range s.partRows {
		slices.SortStableFunc(list, func(a, b ocPlace) int { return cmp.Compare(a.id, b.id) })
	}
	return err
}

// sessions lists the sessions of the database, which was copied from path.
func (s *snapshot) sessions(path string) ([]Session, error) {
	var list []Session
	columns := []string{"id", "parent_id", "directory", "title", "version", "time_created", "time_updated", "time_archived"}
	err := s.Each("session", columns, func(r sqlite.Row) bool {
		list = append(list, Session{
			Agent: OpenCode, ID: r.Get("id").Text(), Parent: r.Get("parent_id").Text(), Path: path,
			Cwd: r.Get("directory").Text(), Title: Title(r.Get("title").Text()), Version: r.Get("version").Text(),
			Started: millis(r.Get("time_created").Int()), Modified: millis(r.Get("time_updated").Int()),
			Archived: r.Get("time_archived").Int() != 0,
		})
		return true
	})
	return list, err
}

func (s *snapshot) messages(session string) iter.Seq[ocDocument] {
	return func(yield func(ocDocument) bool) {
		for _, m := range s.messageRows[session] {
			if !yield(s.document("message", m.id, m.at)) {
				return
			}
		}
	}
}

func (s *snapshot) parts(_, message string) iter.Seq[ocDocument] {
	return func(yield func(ocDocument) bool) {
		for _, p := range s.partRows[message] {
			if !yield(s.document("part", p.id, p.at)) {
				return
			}
		}
	}
}

func (s *snapshot) document(table, id string, at sqlite.Place) ocDocument {
	row, err := s.At(table, []string{"data"}, at)
	if err != nil {
		return ocDocument{id: id, err: err}
	}
	return ocDocument{id: id, data: []byte(row.Get("data").Text())}
}

func (s *snapshot) reverted(session string) (revert ocRevert) {
	_ = s.Each("session", []string{"id", "revert"}, func(r sqlite.Row) bool { // read before
		if r.Get("id").Text() != session {
			return true
		}
		_ = json.Unmarshal([]byte(r.Get("revert").Text()), &revert) // null if it was not
		return false
	})
	return revert
}

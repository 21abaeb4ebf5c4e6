package foreign

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fermata-agent/fermata/internal/foreign/sqlite"
	"github.com/fermata-agent/fermata/internal/regular"
)

// A snapshot is a copy of a database that does not change.
type snapshot struct {
	*sqlite.DB
	dir      string // of the copy
	files    []*os.File
	size     int64
	messages map[string][]ocMessage // by session, in order
	parts    map[string][]sqlite.Place
}

type ocMessage struct {
	id      string
	created int64
	at      sqlite.Place
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
	s := &snapshot{dir: dir, messages: map[string][]ocMessage{}, parts: map[string][]sqlite.Place{}}
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
		s.messages[session] = append(s.messages[session], ocMessage{r.Get("id").Text(), r.Get("time_created").Int(), r.Place()})
		return true
	})
	if err != nil {
		return err
	}
	for _, list := range s.messages {
		slices.SortStableFunc(list, func(a, b ocMessage) int { return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.id, b.id)) })
	}
	type part struct {
		id string
		at sqlite.Place
	}
	parts := map[string][]part{}
	err = s.Each("part", []string{"id", "message_id"}, func(r sqlite.Row) bool {
		message := r.Get("message_id").Text()
		parts[message] = append(parts[message], part{r.Get("id").Text(), r.Place()})
		return true
	})
	for message, list := range parts {
		slices.SortStableFunc(list, func(a, b part) int { return cmp.Compare(a.id, b.id) })
		for _, p := range list {
			s.parts[message] = append(s.parts[message], p.at)
		}
	}
	return err
}

// revertedFrom returns the message from which on a session was reverted, if it was.
func (s *snapshot) revertedFrom(session string) string {
	id := ""
	_ = s.Each("session", []string{"id", "revert"}, func(r sqlite.Row) bool { // read before
		if r.Get("id").Text() != session {
			return true
		}
		var revert struct {
			Message string `json:"messageID"`
		}
		_ = json.Unmarshal([]byte(r.Get("revert").Text()), &revert) // null if it was not
		id = revert.Message
		return false
	})
	return id
}

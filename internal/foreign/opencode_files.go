package foreign

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/foreign/lines"
	"github.com/fermata-agent/fermata/internal/regular"
)

// ocFiles is where opencode kept a session before it had a database: each message and each part of one is a file. All names are
// those of the files, not what is written in them.
type ocFiles struct {
	session string // the file of the session
	root    string // the directory storage
	first   bool   // the layout of the first versions, which has a storage for each project
}

// filesOf tells the two layouts apart: session/PROJECT/ID.json, and session/info/ID.json.
func filesOf(session string) ocFiles {
	dir := filepath.Dir(session)
	return ocFiles{session: session, root: filepath.Dir(filepath.Dir(dir)), first: filepath.Base(dir) == "info"}
}

func isSessionFile(path string) bool { return filepath.Ext(path) == ".json" }

// sessionFiles lists the sessions that are files.
func (h *Home) sessionFiles(ctx context.Context) ([]Session, error) {
	var list []Session
	for _, pattern := range []string{"storage/session/*/*.json", "project/*/storage/session/info/*.json"} {
		names, err := fs.Glob(os.DirFS(h.Dir), pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			s, err := readSessionFile(filepath.Join(h.Dir, filepath.FromSlash(name)))
			if err != nil {
				s.Damaged = err.Error()
			}
			list = append(list, s)
		}
	}
	return list, nil
}

// ocSession is the file of a session.
type ocSession struct {
	Parent    string `json:"parentID"`
	Directory string `json:"directory"`
	Title     string `json:"title"`
	Version   string `json:"version"`
	Time      struct {
		Created  int64 `json:"created"`
		Updated  int64 `json:"updated"`
		Archived int64 `json:"archived"`
	} `json:"time"`
	Revert ocRevert `json:"revert"`
}

func readSessionFile(path string) (Session, error) {
	s := Session{Agent: OpenCode, ID: baseName(path), Path: path}
	var in ocSession
	doc := readDocument(path)
	s.Size = int64(len(doc.data))
	if err := doc.decode(&in); err != nil {
		return s, err
	}
	s.Parent, s.Cwd, s.Title, s.Version = in.Parent, in.Directory, Title(in.Title), in.Version
	s.Started, s.Modified, s.Archived = millis(in.Time.Created), millis(cmp.Or(in.Time.Updated, in.Time.Created)), in.Time.Archived != 0
	if s.Cwd == "" { // the first versions wrote it into the answers only
		s.Cwd = filesOf(path).directory(s.ID)
	}
	return s, nil
}

func (f ocFiles) directory(session string) string {
	for doc := range f.messages(session) {
		var m struct {
			Path struct {
				Cwd string `json:"cwd"`
			} `json:"path"`
		}
		if doc.decode(&m) == nil && m.Path.Cwd != "" {
			return m.Path.Cwd
		}
	}
	return ""
}

func (f ocFiles) messages(session string) iter.Seq[ocDocument] {
	type message struct {
		ocDocument
		created int64
	}
	var list []message
	dir := filepath.Join(f.root, "message", session)
	if f.first {
		dir = filepath.Join(f.root, "session", "message", session)
	}
	for doc := range documents(dir) {
		var data ocData
		_ = doc.decode(&data) // one that cannot be read comes first, and is reported there
		list = append(list, message{doc, data.Time.Created})
	}
	slices.SortStableFunc(list, func(a, b message) int { return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.id, b.id)) })
	return func(yield func(ocDocument) bool) {
		for _, m := range list {
			if !yield(m.ocDocument) {
				return
			}
		}
	}
}

func (f ocFiles) parts(session, message string) iter.Seq[ocDocument] {
	if f.first {
		return documents(filepath.Join(f.root, "session", "part", session, message))
	}
	return documents(filepath.Join(f.root, "part", message))
}

func (f ocFiles) reverted(string) ocRevert {
	var s ocSession
	_ = readDocument(f.session).decode(&s) // it was listed
	return s.Revert
}

// documents are the files of a directory, in the order of their names.
func documents(dir string) iter.Seq[ocDocument] {
	return func(yield func(ocDocument) bool) {
		entries, _ := regular.ReadDir(dir) // none: a message without parts
		for _, e := range entries {
			if filepath.Ext(e.Name()) == ".json" && !yield(readDocument(filepath.Join(dir, e.Name()))) {
				return
			}
		}
	}
}

var errTooLong = errors.New("it is too long")

func readDocument(path string) ocDocument {
	d := ocDocument{id: baseName(path)}
	d.data, d.err = regular.ReadFile(path)
	if len(d.data) > lines.MaxLine {
		d.data, d.err = nil, errTooLong
	}
	return d
}

func baseName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".json") }

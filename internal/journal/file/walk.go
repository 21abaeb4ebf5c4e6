package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file/layout"
)

// A journalName is where the journal of a conversation is. It need not be a file: opening it tells.
type journalName struct {
	path     string
	id       string
	archived bool
	linked   bool // a directory in its path is a symbolic link
	entry    fs.DirEntry
}

// A walker collects the journals below a directory.
type walker struct {
	store    *Store
	archived bool
	names    []journalName
	unread   []journal.Unread
	passed   int // dates that are links below another link, which are not followed
}

// walk returns every journal, and what could not be read: one such directory must not hide the others.
func (s *Store) walk(ctx context.Context) ([]journalName, []journal.Unread, error) {
	w := walker{store: s}
	for _, root := range []string{activeDir, archivedDir} {
		w.archived = root == archivedDir
		top := filepath.Join(s.home, root)
		entries, err := s.fs.ReadDir(top)
		if err != nil {
			w.note(top, err)
		}
		look := w.dir
		if st, err := s.fs.Lstat(top); err == nil && st.Mode().Type() == fs.ModeSymlink {
			look = w.behindLink
		}
		if err := look(ctx, top, entries, false); err != nil {
			return nil, nil, err
		}
	}
	return withoutRepeats(w.names), w.unread, nil
}

// note keeps in mind that a directory cannot be read. One that is not there is not missed, unless a link that leads nowhere
// is in its place or in that of the home.
func (w *walker) note(dir string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		st, lstatErr := w.store.fs.Lstat(dir)
		if lstatErr == nil && st.IsDir() {
			return // it was created since, and was not there when it was read
		}
		if errors.Is(lstatErr, fs.ErrNotExist) {
			_, lstatErr := w.store.fs.Lstat(w.store.home)
			_, readErr := w.store.fs.ReadDir(w.store.home)
			if lstatErr != nil || readErr == nil {
				return
			}
		}
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	w.unread = append(w.unread, journal.Unread{Path: dir, Archived: w.archived, Err: err})
}

// dir looks at what is in a directory. Links to directories are followed, but not below another link: so it ends,
// wherever they lead.
func (w *walker) dir(ctx context.Context, dir string, entries []fs.DirEntry, linked bool) error {
	for _, e := range entries {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		path := dir + string(filepath.Separator) + e.Name() // dir is clean, and there may be many
		link := e.Type() == fs.ModeSymlink
		if id, ok := layout.ID(e.Name()); ok && (!e.IsDir() || layout.IsTimed(id)) {
			w.names = append(w.names, journalName{path, id, w.archived, linked, e})
			continue
		}
		if link && linked && layout.IsDate(e.Name()) {
			w.passed++
		}
		if !e.IsDir() && !link && !layout.IsDate(e.Name()) || link && linked {
			continue
		}
		below, err := w.store.fs.ReadDir(path)
		if err != nil && (layout.IsDate(e.Name()) || e.IsDir() && !errors.Is(err, fs.ErrNotExist)) {
			w.note(path, err)
		}
		look := w.dir
		if link {
			look = w.behindLink
		}
		if err := look(ctx, path, below, linked || link); err != nil {
			return err
		}
	}
	return nil
}

// behindLink looks at what is in the directory that a link leads to. If that has neither journals nor dates it is some other
// directory, perhaps one with the whole disk below it, and is not searched. In the place of a directory of the store such a link is
// noted, and so is one that leads back to itself: what it hides is missing.
func (w *walker) behindLink(ctx context.Context, path string, entries []fs.DirEntry, linked bool) error {
	found, passed := len(w.names), w.passed
	expected := filepath.Dir(path) == filepath.Clean(w.store.home) || layout.IsDate(filepath.Base(path))
	if !layout.AreOfStore(entries) {
		if expected {
			w.noteLink(path)
		}
		return nil
	}
	if err := w.dir(ctx, path, entries, linked); err != nil {
		return err
	}
	if expected && len(w.names) == found && w.passed > passed {
		w.noteLink(path)
	}
	return nil
}

func (w *walker) noteLink(path string) {
	target, err := w.store.fs.Readlink(path)
	if err == nil {
		err = fmt.Errorf("it is a symbolic link to %s, which is not a directory of conversations", target)
	}
	w.note(path, err)
}

// withoutRepeats leaves out journals that are found a second time through a link to a directory, and those beside which
// there is one of the proper name.
func withoutRepeats(names []journalName) []journalName {
	if !slices.ContainsFunc(names, journalName.doubtful) {
		return names
	}
	proper := make(map[string]bool)
	for _, n := range names {
		proper[n.id] = proper[n.id] || !n.doubtful()
	}
	seen := make(map[string]bool)
	return slices.DeleteFunc(names, func(n journalName) bool {
		again := n.doubtful() && (proper[n.id] || seen[n.id])
		seen[n.id] = true
		return again
	})
}

// doubtful reports whether the same journal may be found at another path.
func (n journalName) doubtful() bool {
	name := n.path[strings.LastIndexByte(n.path, filepath.Separator)+1:]
	rest, proper := strings.CutPrefix(name[len(layout.Form):], "-"+n.id)
	return n.linked || !proper || rest != layout.Suffix || strings.ToUpper(name[:len(layout.Form)]) != name[:len(layout.Form)]
}

package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fermata-agent/fermata/internal/journal/file/disk"
	"github.com/fermata-agent/fermata/internal/journal/file/format"
)

// A ChangedError says that another program has changed the file of a conversation
// that was open for writing. Nothing more is written to it then.
type ChangedError struct {
	Path    string
	What    string // what was done to it
	Rescued string // where everything is that this process had recorded; empty if that failed
	Err     error  // why it failed
}

func (e *ChangedError) Error() string {
	text := fmt.Sprintf("another program has %s %s; nothing more is written to it", e.What, e.Path)
	if e.Rescued != "" {
		return text + "; what was recorded here is in " + e.Rescued
	}
	return fmt.Sprintf("%s; what was recorded here could not be saved: %v", text, e.Err)
}

// Unwrap returns why nothing could be saved.
func (e *ChangedError) Unwrap() error { return e.Err }

// changed returns what another program has done to our file, or "".
func (j *fileJournal) changed() string {
	mine, err := j.file.Stat()
	if err != nil {
		return "" // a write will say what is wrong
	}
	there, err := j.store.fs.Lstat(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "moved or removed"
	case err != nil:
		return ""
	case !j.store.fs.SameFile(mine, there):
		return "replaced"
	case mine.Size() > j.w.size:
		return "written to"
	case mine.Size() < j.w.size:
		return "truncated"
	}
	return ""
}

// checkUnchanged ends the journal if another program has changed its file. It
// reports whether all is well.
func (j *fileJournal) checkUnchanged(b batch) bool {
	what := j.changed()
	if what == "" {
		return true
	}
	e := &ChangedError{Path: j.path, What: what}
	e.Rescued, e.Err = j.rescue(b)
	j.w.err = e
	return false
}

// rescueRest adds what was recorded after that, when the journal is closed.
func (j *fileJournal) rescueRest() {
	var changed *ChangedError
	if !errors.As(j.w.err, &changed) || changed.Rescued == "" {
		return
	}
	f, err := j.store.fs.OpenFile(changed.Rescued, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return // no caller was promised anything: the journal has failed
	}
	defer f.Close()
	if l := j.encode(batch{records: j.Pending(j.w.written), texts: j.TakeText()}, nil); len(l.buf) > 0 {
		f.Write(l.buf)
		f.Sync()
	}
}

// rescue writes everything that we have written and were about to write to a
// file of its own: at the journal's path if nothing is there, else beside it.
func (j *fileJournal) rescue(b batch) (string, error) {
	f, path, err := j.createRescue()
	if err != nil {
		return "", err
	}
	defer f.Close()
	b.records = j.Pending(j.w.written)
	b.texts = append(b.texts, j.TakeText()...)
	if _, err := io.Copy(f, io.NewSectionReader(j.file, 0, j.w.size)); err != nil {
		return "", err
	}
	l := j.encode(b, nil)
	if _, err := f.Write(l.buf); err != nil {
		return "", err
	}
	j.w.written += uint64(len(b.records))
	j.w.prev = l.prev
	return path, errors.Join(f.Sync(), j.store.fs.SyncDir(filepath.Dir(path)))
}

// maxRescued is how many such files there can be beside a journal.
const maxRescued = 9

// rescuePath is the name of one of them.
func rescuePath(path string, n int) string { return fmt.Sprintf("%s%s%d", path, rescuedSuffix, n) }

func (j *fileJournal) createRescue() (f File, path string, err error) {
	for n := range maxRescued + 1 {
		path = j.path
		if n > 0 {
			path = rescuePath(j.path, n)
		}
		f, err = j.store.fs.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, path, err
		}
	}
	return nil, "", err
}

// merge appends to the journal what was rescued and continues it. It reports
// whether there was something. What is in the journal already is removed; what
// is another continuation than the journal's stays where it is.
func (s *Store) merge(h *held, fnd found) (bool, error) {
	grown := false
	for n := 1; n <= maxRescued && !grown; n++ {
		name := rescuePath(h.path, n)
		f, err := disk.Open(s.fs, name, os.O_RDONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		var other *NotRegularError
		if errors.As(err, &other) {
			continue // not written by a rescue
		}
		if err != nil {
			return false, err
		}
		grown, err = s.mergeFile(h, fnd, f, name)
		f.Close()
		if err != nil {
			return false, fmt.Errorf("merge %s: %w", name, err)
		}
	}
	return grown, nil
}

func (s *Store) mergeFile(h *held, fnd found, f File, name string) (bool, error) {
	st, err := f.Stat()
	if err != nil {
		return false, err
	}
	var last format.Span
	end := int64(-1) // behind the journal's last record
	sc := format.NewScanner(f, fnd.of, 0, st.Size())
	for {
		sp, err := sc.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, err
		}
		if sp.Kind != format.RecordLine {
			continue
		}
		last = sp
		if sp.Seq == fnd.last && sp.Sum == fnd.sum {
			end = sp.Off + sp.Size
		}
	}
	if end < 0 {
		contained, err := contains(h.file, fnd, last)
		if !contained || err != nil {
			return false, err
		}
		return false, s.fs.Remove(name)
	}
	if last.Seq > fnd.last {
		if _, err := io.Copy(h.file, io.NewSectionReader(f, end, st.Size()-end)); err != nil {
			return false, err
		}
		if err := h.file.Sync(); err != nil {
			return false, err
		}
	}
	return last.Seq > fnd.last, s.fs.Remove(name)
}

// contains reports whether the journal has a record.
func contains(f File, fnd found, wanted format.Span) (bool, error) {
	sc := format.NewScanner(f, fnd.of, fnd.index.Before(wanted.Seq), fnd.size)
	for {
		sp, err := sc.Next()
		if errors.Is(err, io.EOF) || err == nil && sp.Kind == format.RecordLine && sp.Seq > wanted.Seq {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if sp.Kind == format.RecordLine && sp.Seq == wanted.Seq && sp.Sum == wanted.Sum {
			return true, nil
		}
	}
}

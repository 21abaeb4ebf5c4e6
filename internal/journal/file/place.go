package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file/format"
	"github.com/fermata-agent/fermata/internal/journal/file/layout"
)

// A MisplacedError says that the file of a conversation holds another one. It is
// not opened: a repair would take all of it for damage.
type MisplacedError struct {
	Path  string
	Holds string // the id of that one; empty if it is not known
}

func (e *MisplacedError) Error() string {
	if e.Holds == "" {
		return fmt.Sprintf("%s %s and nothing of its own: move it away", e.Path, e.what())
	}
	return fmt.Sprintf("%s %s: fermata fsck --repair puts files back in their places", e.Path, e.what())
}

func (e *MisplacedError) what() string {
	if e.Holds == "" {
		return "holds another conversation"
	}
	return "holds conversation " + e.Holds
}

// checkPlace returns a *MisplacedError if the file holds another conversation and
// nothing of its own. The first record of a conversation names it, and so does every line that is
// not of an earlier version. Lines of others before, between and behind its own are damage like any other.
func checkPlace(f File, id, path string) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	of := format.IDSum(id)
	sc := format.NewScanner(f, of, 0, st.Size())
	sc.All = make([]byte, 4<<10) // in a file in good order, the first line is all that is read
	foreign, holds := false, ""
	for {
		sp, err := sc.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		switch {
		case sp.Kind == format.ForeignLine:
			foreign = true
			if started := sp.Started(); holds == "" && journal.ValidID(started) && (!sp.Linked || format.IDSum(started) == sp.Of) {
				holds = started
			}
		case sp.Kind != format.BadLine && (sp.Linked || sp.Started() != ""):
			return nil // its own
		}
	}
	if !foreign {
		return nil // what it is will be found out later
	}
	return &MisplacedError{Path: path, Holds: holds}
}

// freeName returns a path in the same directory, at which nothing is, for the
// journal of another conversation.
func (s *Store) freeName(path, id string) (string, error) {
	start, ok := layout.Start(filepath.Base(path))
	if !ok {
		return "", fmt.Errorf("%s is not the name of a journal", path)
	}
	for {
		free := filepath.Join(filepath.Dir(path), start.Format(layout.Form)+"-"+id+layout.Suffix)
		if _, err := s.fs.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return free, nil
		} else if err != nil {
			return "", err
		}
		start = start.Add(time.Second)
	}
}

// putBack moves a file that holds another conversation to that one's place, and
// what is there, if it is ours, to ours. Wherever it is interrupted, another call
// completes it: each name is that of the conversation whose file it is about to be.
func (s *Store) putBack(ctx context.Context, id string) error {
	h, err := s.lock(ctx, id)
	if err != nil {
		return err
	}
	defer h.release()
	var wrong *MisplacedError
	if err := checkPlace(h.file, id, h.path); !errors.As(err, &wrong) {
		return err
	}
	if wrong.Holds == "" {
		return wrong
	}
	free, err := s.freeName(h.path, wrong.Holds)
	if err != nil {
		return err
	}
	o, err := s.lock(ctx, wrong.Holds)
	if errors.Is(err, journal.ErrNotFound) {
		if err := s.move(h.path, free); err != nil {
			return err
		}
		return fmt.Errorf("its file held conversation %s, and was put in that one's place: %w", wrong.Holds, journal.ErrNotFound)
	}
	if err != nil {
		return err
	}
	defer o.release()
	var other *MisplacedError
	if err := checkPlace(o.file, o.id, o.path); !errors.As(err, &other) || other.Holds != id {
		return fmt.Errorf("%s is a copy of conversation %s; its own records are not there", h.path, wrong.Holds)
	}
	for _, path := range []string{h.path, o.path} {
		if err := s.dropCheckpoint(path); err != nil {
			return err
		}
	}
	for _, m := range [][2]string{{h.path, free}, {o.path, h.path}, {free, o.path}} {
		if err := s.move(m[0], m[1]); err != nil {
			return err
		}
	}
	return nil
}

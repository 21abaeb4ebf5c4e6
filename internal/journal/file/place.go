package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
)

// A MisplacedError says that the file of a conversation holds another one. It is
// not opened: a repair would take all of it for damage.
type MisplacedError struct {
	Path  string
	Holds string // the id of that one; empty if it is not known
}

func (e *MisplacedError) Error() string {
	return fmt.Sprintf("%s %s: fermata fsck --repair puts files back in their places", e.Path, e.what())
}

func (e *MisplacedError) what() string {
	if e.Holds == "" {
		return "holds another conversation"
	}
	return "holds conversation " + e.Holds
}

// checkPlace returns a *MisplacedError if the file holds another conversation.
// The first record of a conversation names it, and so does every line that is not
// of an earlier version.
func checkPlace(f File, id, path string) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	sc := newScanner(f, idSum(id), 0, min(st.Size(), readBytes))
	sc.all = make([]byte, 4<<10) // the first line is seldom longer
	sp, err := sc.next()
	if err != nil || sp.kind == badLine || sp.kind == progressLine || sp.seq > 1 {
		return nil // what it is will be found out later
	}
	var body struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(sp.body, &body) // no id if it is something else
	if sp.kind == recordLine && (string(sp.name) != kindStarted || body.ID == "" || body.ID == id) {
		return nil
	}
	if sp.linked && idSum(body.ID) != sp.of || !journal.ValidID(body.ID) {
		body.ID = ""
	}
	return &MisplacedError{Path: path, Holds: body.ID}
}

// freeName returns a path in the same directory, at which nothing is, for the
// journal of another conversation.
func (s *Store) freeName(path, id string) (string, error) {
	start, err := time.Parse(startForm, filepath.Base(path)[:len(startForm)])
	for err == nil {
		free := filepath.Join(filepath.Dir(path), start.Format(startForm)+"-"+id+journalSuffix)
		if _, err = s.fs.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return free, nil
		}
		start = start.Add(time.Second)
	}
	return "", err
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
	for _, ckpt := range []string{h.path + checkpointSuffix, o.path + checkpointSuffix} {
		if err := s.fs.Remove(ckpt); err != nil && !errors.Is(err, fs.ErrNotExist) {
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

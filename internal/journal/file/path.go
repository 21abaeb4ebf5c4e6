package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
)

// Names in a home. A conversation's other files have its journal's name and
// one of the suffixes behind it.
const (
	activeDir        = "conversations"
	archivedDir      = "archived"
	journalSuffix    = ".jsonl"
	lockSuffix       = ".lock"
	damagedSuffix    = ".damaged"
	checkpointSuffix = ".ckpt"
	tempSuffix       = ".tmp"
	rescuedSuffix    = ".rescued" // and a number
	startForm        = "2006-01-02T15-04-05"
)

// journalPath is where the journal of a conversation that started then lives
// under root.
func journalPath(root, id string, at time.Time) string {
	return filepath.Join(dayDir(root, at), at.UTC().Format(startForm)+"-"+id+journalSuffix)
}

func dayDir(root string, at time.Time) string {
	return filepath.Join(root, filepath.FromSlash(at.UTC().Format("2006/01/02")))
}

// idOf takes the id out of a journal's file name. File systems and programs that know no lower case may have
// changed the name: it is the same conversation.
func idOf(name string) (string, bool) {
	n := len(name) - len(journalSuffix)
	if n < len(startForm)+2 || !strings.EqualFold(name[n:], journalSuffix) || name[len(startForm)] != '-' {
		return "", false
	}
	if _, ok := startOf(name); !ok {
		return "", false
	}
	id := name[len(startForm)+1 : n]
	if lower := strings.ToLower(id); lower != id {
		if _, ok := idTime(lower); ok {
			id = lower
		}
	}
	return id, journal.ValidID(id)
}

// startOf takes the time out of a journal's file name.
func startOf(name string) (time.Time, bool) {
	at, err := time.Parse(startForm, strings.ToUpper(name[:len(startForm)]))
	return at, err == nil
}

// idTime takes the time out of a UUIDv7.
func idTime(id string) (time.Time, bool) {
	hex := strings.ReplaceAll(id, "-", "")
	if len(hex) != 32 || hex[12] != '7' {
		return time.Time{}, false
	}
	ms, err := strconv.ParseInt(hex[:12], 16, 64)
	if err != nil {
		return time.Time{}, false
	}
	return time.UnixMilli(ms), true
}

// find returns the path of a conversation's journal, wherever it is.
func (s *Store) find(ctx context.Context, id string) (path string, err error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if !journal.ValidID(id) {
		return "", journal.ErrNotFound
	}
	if path, ok := s.findNear(id); ok {
		return path, nil
	}

	names, unread, err := s.walk(ctx)
	if err != nil {
		return "", err
	}
	for _, n := range slices.Backward(names) { // of two, the later one
		if n.id == id {
			return n.path, nil
		}
	}
	if len(unread) > 0 {
		return "", &journal.IncompleteError{Unread: unread}
	}
	return "", journal.ErrNotFound
}

// findAt looks where the id says that the conversation began: at that second or the
// next. That needs no look at the others of that day.
func (s *Store) findAt(id string) (string, bool) {
	at, ok := idTime(id)
	if !ok {
		return "", false
	}
	for _, root := range []string{activeDir, archivedDir} {
		for _, late := range []time.Duration{0, time.Second} {
			path := journalPath(filepath.Join(s.home, root), id, at.Add(late))
			if _, err := s.fs.Lstat(path); err == nil {
				return path, true
			}
		}
	}
	return "", false
}

// findNear looks where findAt does, which nearly always finds it, then on the day of the id,
// or on one beside it if the clock was changed.
func (s *Store) findNear(id string) (string, bool) {
	if path, ok := s.findAt(id); ok {
		return path, true
	}
	at, ok := idTime(id)
	if !ok {
		return "", false
	}
	for _, root := range []string{activeDir, archivedDir} {
		for _, days := range []int{0, -1, 1} {
			dir := dayDir(filepath.Join(s.home, root), at.AddDate(0, 0, days))
			if path, ok := s.findIn(dir, id); ok {
				return path, true
			}
		}
	}
	return "", false
}

func (s *Store) findIn(dir, id string) (string, bool) {
	entries, _ := s.fs.ReadDir(dir)
	for _, e := range entries {
		if found, ok := idOf(e.Name()); ok && found == id {
			return filepath.Join(dir, e.Name()), true
		}
	}
	return "", false
}

// mkdirs makes a directory and those above it, each durable in its parent before
// there is anything in it. So one that is there and empty may not be durable: who
// made it may have been killed, or is not done yet.
func (s *Store) mkdirs(dir string) error {
	parent := filepath.Dir(dir)
	if empty, err := s.fs.IsEmpty(dir); err == nil && !empty {
		return nil
	} else if err == nil {
		return s.fs.SyncDir(parent)
	}
	if parent != dir {
		if err := s.mkdirs(parent); err != nil {
			return err
		}
	}
	if err := s.fs.Mkdir(dir, 0o700); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		// Another process was faster, or something else is there.
		if _, err := s.fs.IsEmpty(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%s is not a directory: %w", dir, err)
		}
	}
	return s.fs.SyncDir(parent)
}

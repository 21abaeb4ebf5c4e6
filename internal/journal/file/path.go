package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file/layout"
)

// Names in a home. A conversation's other files have its journal's name and
// one of the suffixes behind it.
const (
	activeDir        = "conversations"
	archivedDir      = "archived"
	lockSuffix       = ".lock"
	damagedSuffix    = ".damaged"
	checkpointSuffix = ".ckpt"
	tempSuffix       = ".tmp"
	rescuedSuffix    = ".rescued" // and a number
)

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
	at, ok := layout.Time(id)
	if !ok {
		return "", false
	}
	for _, root := range []string{activeDir, archivedDir} {
		for _, late := range []time.Duration{0, time.Second} {
			path := layout.Journal(filepath.Join(s.home, root), id, at.Add(late))
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
	at, ok := layout.Time(id)
	if !ok {
		return "", false
	}
	for _, root := range []string{activeDir, archivedDir} {
		for _, days := range []int{0, -1, 1} {
			dir := layout.Day(filepath.Join(s.home, root), at.AddDate(0, 0, days))
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
		if found, ok := layout.ID(e.Name()); ok && found == id {
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

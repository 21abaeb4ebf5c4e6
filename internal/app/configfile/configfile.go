// Package configfile reads the configuration file of a home directory as clients know it, and edits it and keeps its comments.
package configfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/config/tomledit"
	"github.com/fermata-agent/fermata/internal/regular"
)

// An Edit changes one key or table of the configuration file.
type Edit struct {
	Path  []string
	Value any // as tomledit.Set takes it; nil removes the key or the table
}

// Apply changes the configuration file of a home directory and keeps its comments and its
// order. All edits are made or none; a result that is no valid configuration is refused.
// The file is replaced whole, so that it is never read in part.
func Apply(home string, edits ...Edit) error {
	return Update(home, func(*config.Config) ([]Edit, error) { return edits, nil })
}

// Update is Apply with edits that depend on what the file says: decide gets that. No other process
// that uses this package changes the file meanwhile.
func Update(home string, decide func(saved *config.Config) ([]Edit, error)) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	dir, err := regular.OpenDir(home)
	if err != nil {
		return err
	}
	defer dir.Close() // and with it the lock
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", home, err)
	}
	file, err := fileToReplace(home)
	if err != nil {
		return err
	}
	old, mode, err := read(file)
	if err != nil {
		return err
	}
	options := config.Options{Home: home, Env: os.Getenv}
	saved, err := config.LoadText(options, []byte(old))
	if err != nil {
		saved = &config.Config{Home: home} // the edits may be what mends it
	}
	edits, err := decide(saved)
	if err != nil {
		return err
	}
	text, err := edited(old, edits)
	if err != nil {
		return fmt.Errorf("edit %s: %w", file, err)
	}
	if text == old {
		return nil
	}
	if err := config.Check(options, []byte(text)); err != nil {
		return fmt.Errorf("edit %s: %w", file, err)
	}
	return regular.Replace(file, []byte(text), mode)
}

func edited(text string, edits []Edit) (string, error) {
	for _, e := range edits {
		var err error
		if e.Value == nil {
			text, _, err = tomledit.Remove(text, e.Path)
		} else {
			text, err = tomledit.Set(text, e.Path, e.Value)
		}
		if err != nil {
			return "", err
		}
	}
	return text, nil
}

// fileToReplace returns the file to replace. A link is followed, since people keep
// their settings elsewhere.
func fileToReplace(home string) (string, error) {
	file := filepath.Join(home, config.FileName)
	real, err := filepath.EvalSymlinks(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(file); err == nil {
			return "", fmt.Errorf("%s is a link to a file that does not exist", file)
		}
		return file, nil
	}
	return real, err
}

func read(file string) (string, fs.FileMode, error) {
	text, err := regular.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0o600, nil
	}
	if err != nil {
		return "", 0, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", 0, err
	}
	return string(text), info.Mode().Perm(), nil
}

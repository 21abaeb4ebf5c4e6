package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Drafts keeps what was written and not sent, one file for each conversation. A
// draft of a conversation that has not begun belongs to the directory and to the
// process: the next one that starts there takes it over when that process is gone.
type Drafts struct {
	dir  string // where the files are
	next string // how those begin that belong to no conversation yet
	pid  int
}

// NewDrafts returns the drafts in a directory, for a process that works in cwd.
// Nothing is touched yet.
func NewDrafts(dir, cwd string) *Drafts {
	sum := sha256.Sum256([]byte(cwd))
	return &Drafts{dir: dir, next: "new-" + hex.EncodeToString(sum[:6]) + "-", pid: os.Getpid()}
}

// path is the file of a conversation; id is empty for the one that has not begun.
func (d *Drafts) path(id string) string {
	if id == "" {
		id = d.next + strconv.Itoa(d.pid)
	}
	return filepath.Join(d.dir, filepath.Base(id)+".txt")
}

// Save keeps a draft in place of the one before; an empty one is removed. A program
// that dies while it saves leaves the one or the other.
func (d *Drafts) Save(id, text string) error {
	path := d.path(id)
	if text == "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the draft: %w", err)
		}
		return nil
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fmt.Errorf("save the draft: %w", err)
	}
	tmp := fmt.Sprintf("%s.%d", path, d.pid)
	err := os.WriteFile(tmp, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("save the draft: %w", err)
	}
	return nil
}

// Load returns the draft of a conversation, or, if id is empty, one that a process
// left that has ended.
func (d *Drafts) Load(id string) (string, error) {
	if id == "" {
		if err := d.inherit(); err != nil {
			return "", fmt.Errorf("look for a draft: %w", err)
		}
	}
	text, err := os.ReadFile(d.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the draft: %w", err)
	}
	return string(text), nil
}

// inherit makes the draft of a process that has ended this one's own, unless it has one.
func (d *Drafts) inherit() error {
	own := d.path("")
	if _, err := os.Stat(own); err == nil {
		return nil
	}
	entries, err := os.ReadDir(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), d.next)
		pid, err := strconv.Atoi(strings.TrimSuffix(rest, ".txt"))
		if !ok || err != nil || pid <= 0 || alive(pid) {
			continue
		}
		// Of two that start at once, one gets it.
		if err := os.Rename(filepath.Join(d.dir, e.Name()), own); err == nil {
			return nil
		}
	}
	return nil
}

// alive reports whether a process runs, also somebody else's.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

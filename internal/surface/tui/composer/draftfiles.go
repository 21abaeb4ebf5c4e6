package composer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fermata-agent/fermata/internal/regular"
)

// DraftFiles keeps what was written and not sent, one file for each conversation and
// process: of two that show one conversation, each has its own. The file is locked
// as long as its process lives; the next one that opens the conversation, or starts
// in the directory if it has not begun, takes over a draft that no process holds.
type DraftFiles struct {
	dir  string // where the files are
	next string // how those begin that belong to no conversation yet
	own  string // how those end that belong to this process
	held map[string]*os.File
}

// NewDraftFiles returns the drafts in a directory, for a process that works in cwd.
// Nothing is touched yet.
func NewDraftFiles(dir, cwd string) *DraftFiles {
	sum := sha256.Sum256([]byte(cwd))
	return &DraftFiles{
		dir:  dir,
		next: "new-" + hex.EncodeToString(sum[:6]),
		own:  "-" + rand.Text()[:8] + ".txt",
		held: map[string]*os.File{},
	}
}

// begin is how the names of a conversation's drafts begin; id is empty for the one that has not begun.
func (d *DraftFiles) begin(id string) string {
	if id == "" {
		return d.next
	}
	return filepath.Base(id)
}

// path is this process's draft of a conversation.
func (d *DraftFiles) path(id string) string { return filepath.Join(d.dir, d.begin(id)+d.own) }

// Save keeps a draft in place of the one before; an empty one is removed. A program
// that dies while it saves leaves the one or the other.
func (d *DraftFiles) Save(id, text string) error {
	path := d.path(id)
	if text == "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the draft: %w", err)
		}
		d.keep(path, nil)
		return nil
	}
	if err := d.write(path, text); err != nil {
		return fmt.Errorf("save the draft: %w", err)
	}
	return nil
}

func (d *DraftFiles) write(path, text string) error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	tmp := path + ".tmp"
	f, err := regular.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = lockFile(f, syscall.LOCK_NB) // before others can see it
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_, _ = f.Close(), os.Remove(tmp)
		return err
	}
	d.keep(path, f)
	return nil
}

// keep keeps the file of a draft open, and so locked, in place of the one before.
func (d *DraftFiles) keep(path string, f *os.File) {
	if before := d.held[path]; before != nil {
		_ = before.Close() // what was written to it is replaced
	}
	delete(d.held, path)
	if f != nil {
		d.held[path] = f
	}
}

// Load returns the draft of a conversation that this process wrote, or else one that
// a process left that has ended.
func (d *DraftFiles) Load(id string) (string, error) {
	if d.held[d.path(id)] == nil {
		if err := d.inherit(id); err != nil {
			return "", fmt.Errorf("look for a draft: %w", err)
		}
	}
	text, err := regular.ReadFile(d.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the draft: %w", err)
	}
	return string(text), nil
}

// inherit makes a draft that no process holds this process's own.
func (d *DraftFiles) inherit(id string) error {
	entries, err := regular.ReadDir(d.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), d.begin(id)) || !strings.HasSuffix(e.Name(), ".txt") {
			continue
		}
		if f := takeFile(filepath.Join(d.dir, e.Name()), d.path(id)); f != nil {
			d.keep(d.path(id), f)
			return nil
		}
	}
	return nil
}

// take renames a draft that no process holds and returns its file, locked, or nil.
func takeFile(from, to string) *os.File {
	f, err := regular.Open(from)
	if err != nil {
		return nil // gone, or not ours
	}
	if lockFile(f, syscall.LOCK_NB) == nil && isAt(f, from) && os.Rename(from, to) == nil { // what its process replaced is not locked
		return f
	}
	_ = f.Close()
	return nil
}

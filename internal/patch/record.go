package patch

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fermata-agent/fermata/internal/rootfs"
)

// Record is the list of all that Apply does on disk. It is small, because the
// contents are in files beside their targets, and it is all that Recover needs.
type Record struct {
	ID       string   `json:"id"` // part of the names of all temporary files
	Steps    []Step   `json:"steps"`
	MakeDirs []string `json:"make_dirs,omitempty"` // made first, outermost first
	DropDirs []string `json:"drop_dirs,omitempty"` // removed last if empty, innermost first
}

// Step is the change of one file: the new content, ready under the name New,
// is renamed to Path, or Path is removed if New is empty.
type Step struct {
	Path string `json:"path"`
	New  string `json:"new,omitempty"` // temporary file with the new content; empty: remove Path
	Old  string `json:"old,omitempty"` // second name of the old content; empty: there was none

	Before string `json:"before,omitempty"` // digest of the old content, empty: none
	After  string `json:"after,omitempty"`  // digest of the new content, empty: none
}

// Record returns the steps of a plan, under names that no other record uses.
// Files that stay as they are have no step.
func (p *Plan) Record() Record {
	const idLen = 12 // 60 bits
	rec := Record{
		ID:       strings.ToLower(rand.Text()[:idLen]),
		MakeDirs: slices.Clone(p.MakeDirs),
		DropDirs: slices.Clone(p.DropDirs),
	}
	for _, f := range p.Files {
		if same(f.Before, f.After) {
			continue
		}
		s := Step{Path: f.Path, Before: digest(f.Before), After: digest(f.After)}
		beside := filepath.Join(filepath.Dir(f.Path), fmt.Sprintf(".fermata-%s-%d", rec.ID, len(rec.Steps)))
		if f.After != nil {
			s.New = beside + ".new"
		}
		if f.Before != nil {
			s.Old = beside + ".old"
		}
		rec.Steps = append(rec.Steps, s)
	}
	return rec
}

// digest identifies a content; nil has the empty digest.
func digest(c *Content) string {
	if c == nil {
		return ""
	}
	kind := "file\x00"
	if c.Link != "" {
		kind = "link\x00"
	}
	sum := sha256.Sum256([]byte(kind + text(c)))
	return hex.EncodeToString(sum[:])
}

// dirs returns the directories whose names the record changes.
func (r *Record) dirs() []string {
	var dirs []string
	for _, s := range r.Steps {
		dirs = append(dirs, filepath.Dir(s.Path))
	}
	for _, dir := range slices.Concat(r.MakeDirs, r.DropDirs) {
		dirs = append(dirs, filepath.Dir(dir))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// transaction carries a record out or takes it back. Its methods can be
// repeated after a crash at any point of them.
type transaction struct {
	fsys FS
	rec  Record
}

// gone reports whether an error means that there is nothing at a path. A path
// that leads through a symbolic link by now is not where anything of ours is.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, rootfs.ErrLink) }

// sync makes all names durable. A directory that is gone has none.
func (t *transaction) sync() error {
	for _, dir := range t.rec.dirs() {
		if err := t.fsys.SyncDir(dir); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// errSettled says that another process has settled the patch, because this one was halted for so long that its
// conversation was opened elsewhere. The files are no longer ours to change.
var errSettled = errors.New("this process was halted, and another one has settled the patch meanwhile")

// advance does one step, unless another process has: the new content can be renamed once, and the old content
// has its second name until the patch is settled.
func (t *transaction) advance(s Step) error {
	if s.New == "" {
		return t.remove(s)
	}
	err := t.fsys.Rename(s.New, s.Path)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if there, lookErr := t.exists(s.New); lookErr != nil || there {
		return err
	}
	return errSettled
}

// remove does a step that removes a file. What the user has written since is not removed.
func (t *transaction) remove(s Step) error {
	there, err := t.exists(s.Old)
	if err != nil {
		return err
	}
	if !there {
		return errSettled
	}
	switch now, err := t.digestAt(s.Path); {
	case err != nil:
		return err
	case now == "":
		return nil
	case now != s.Before:
		return &ChangedError{Path: s.Path, What: "was changed"}
	}
	if err := t.fsys.Remove(s.Path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// tidy removes what a finished record leaves behind. Nothing depends on it any
// more, so that errors only mean litter.
func (t *transaction) tidy() {
	for _, s := range t.rec.Steps {
		if s.Old != "" {
			_ = t.fsys.Remove(s.Old)
		}
	}
	_ = t.removeDirs(t.rec.DropDirs)
	_ = t.sync()
}

// removeDirs removes directories as far as they are empty.
func (t *transaction) removeDirs(dirs []string) error {
	for _, dir := range dirs {
		// Remove would take a file as well.
		if info, err := t.fsys.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		err := t.fsys.Remove(dir)
		if err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrExist) && !gone(err) {
			return err
		}
	}
	return nil
}

// undo takes everything back. Changes to the targets are taken back only if
// the record was committed; before that there can be none of ours.
func (t *transaction) undo(committed bool) error {
	var conflicts []string
	if committed {
		for _, s := range slices.Backward(t.rec.Steps) {
			ok, err := t.restore(s)
			if err != nil {
				return fmt.Errorf("put back %s: %w", s.Path, err)
			}
			if !ok {
				conflicts = append(conflicts, s.Path)
			}
		}
	}
	if err := t.removeTemporary(); err != nil {
		return err
	}
	dirs := slices.Clone(t.rec.MakeDirs)
	slices.Reverse(dirs)
	if err := t.removeDirs(dirs); err != nil {
		return err
	}
	if err := t.sync(); err != nil {
		return err
	}
	if len(conflicts) > 0 {
		return &ConflictError{Paths: conflicts}
	}
	return nil
}

func (t *transaction) removeTemporary() error {
	for _, s := range t.rec.Steps {
		for _, path := range []string{s.New, s.Old} {
			if path == "" {
				continue
			}
			if err := t.fsys.Remove(path); err != nil && !gone(err) {
				return err
			}
		}
	}
	return nil
}

// restore puts the old content of one step back; false if the file is neither
// what it was nor what we made of it.
func (t *transaction) restore(s Step) (bool, error) {
	now, err := t.digestAt(s.Path)
	if err != nil {
		return false, err
	}
	if now == s.Before {
		return true, nil
	}
	if now != s.After {
		return false, nil
	}
	if s.Before == "" {
		return true, t.fsys.Remove(s.Path)
	}
	err = t.fsys.Rename(s.Old, s.Path)
	if gone(err) {
		return false, nil
	}
	return true, err
}

// digestAt returns the digest of what is at a path. Things that no patch makes
// have a digest that equals no other.
func (t *transaction) digestAt(path string) (string, error) {
	info, err := t.fsys.Lstat(path)
	if err == nil && info.Mode().Type() != fs.ModeSymlink && (!info.Mode().IsRegular() || info.Size() > maxFile) {
		return "none of ours", nil
	}
	c, err := read(t.fsys, path)
	if err != nil && !gone(err) {
		return "", err
	}
	return digest(c), nil
}

func (t *transaction) exists(path string) (bool, error) {
	if path == "" {
		return false, nil
	}
	_, err := t.fsys.Lstat(path)
	if gone(err) {
		return false, nil
	}
	return err == nil, err
}

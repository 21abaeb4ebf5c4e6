package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/protocol"
)

// A back is what is kept of a patch to take it back later: of each file what
// was there before, as far as it cannot be read from what is there after.
type back struct {
	Files    []backFile `json:"files"`
	MakeDirs []string   `json:"make_dirs,omitempty"`
	DropDirs []string   `json:"drop_dirs,omitempty"`
}

type backFile struct {
	Path string `json:"path"`
	Name string `json:"name"`
	From string `json:"from,omitempty"`

	After string `json:"after,omitempty"` // digest of what the patch left; empty: nothing
	// Before is what was there, without the bytes at both ends that are also in
	// what the patch left: a small change to a big file is a small record.
	Before *patch.Content `json:"before,omitempty"`
	Head   int            `json:"head,omitempty"`
	Tail   int            `json:"tail,omitempty"`
}

// wayBack returns what is to be kept of a plan.
func wayBack(p *patch.Plan) back {
	b := back{MakeDirs: p.MakeDirs, DropDirs: p.DropDirs}
	for _, f := range p.Files {
		bf := backFile{Path: f.Path, Name: f.Name, From: f.From, After: digest(f.After)}
		if f.Before != nil {
			before := *f.Before
			if f.After != nil {
				bf.Head, bf.Tail = common(before.Data, f.After.Data)
				before.Data = before.Data[bf.Head : len(before.Data)-bf.Tail]
			}
			bf.Before = &before
		}
		b.Files = append(b.Files, bf)
	}
	return b
}

// common returns how many bytes two texts share at their beginnings, and at the
// ends of what is left.
func common(a, b string) (head, tail int) {
	most := min(len(a), len(b))
	for head < most && a[head] == b[head] {
		head++
	}
	for tail < most-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// before returns what was there before the patch, given what is there after.
func (f backFile) before(after *patch.Content) *patch.Content {
	if f.Before == nil || after == nil {
		return f.Before
	}
	c := *f.Before
	c.Data = after.Data[:f.Head] + c.Data + after.Data[len(after.Data)-f.Tail:]
	return &c
}

// digest names a content; nothing has the empty one.
func digest(c *patch.Content) string {
	if c == nil {
		return ""
	}
	kind := "file "
	if c.Link != "" {
		kind = "link "
	}
	sum := sha256.Sum256([]byte(kind + c.Link + c.Data))
	return hex.EncodeToString(sum[:])
}

// A ChangedSinceError says which files are no longer what the turn made of
// them, so that putting them back would lose what was done since.
type ChangedSinceError struct{ Paths []string }

func (e *ChangedSinceError) Error() string {
	return "changed since: " + strings.Join(e.Paths, ", ")
}

// A disk is what the files hold, read once, and changed in memory only.
type disk struct {
	fsys patch.FS
	held map[string]*patch.Content
}

func (d disk) read(path string) (*patch.Content, error) {
	if c, ok := d.held[path]; ok {
		return c, nil
	}
	c, err := readFile(d.fsys, path)
	if err == nil {
		d.held[path] = c
	}
	return c, err
}

func readFile(fsys patch.FS, path string) (*patch.Content, error) {
	info, err := fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := fsys.Readlink(path)
		return &patch.Content{Link: target}, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no longer a file", path)
	}
	data, err := fsys.ReadFile(path)
	return &patch.Content{Data: string(data), Mode: info.Mode().Perm()}, err
}

// TakeBack returns the plan that takes patches back, given what their
// PatchStarted kept, in the order in which they were applied. It fails with a
// ChangedSinceError if a file is no longer what they made of it.
// Files that except names are left alone; it may be nil.
func TakeBack(fsys patch.FS, kept []json.RawMessage, except func(path string) bool) (*patch.Plan, error) {
	d := disk{fsys, map[string]*patch.Content{}}
	var plans []*patch.Plan
	stale := &ChangedSinceError{}
	for _, raw := range slices.Backward(kept) {
		var b back
		if err := json.Unmarshal(raw, &b); err != nil {
			return nil, fmt.Errorf("read what was recorded of a patch: %w", err)
		}
		if except != nil {
			b.Files = slices.DeleteFunc(b.Files, func(f backFile) bool { return except(f.Path) })
		}
		plan, err := d.reverse(b, stale)
		if err != nil {
			return nil, err
		}
		plans = append(plans, plan)
	}
	if len(stale.Paths) > 0 {
		slices.Sort(stale.Paths)
		stale.Paths = slices.Compact(stale.Paths)
		return nil, stale
	}
	return patch.Combine(plans...), nil
}

// reverse takes one patch back in memory.
func (d disk) reverse(b back, stale *ChangedSinceError) (*patch.Plan, error) {
	done := &patch.Plan{MakeDirs: b.MakeDirs, DropDirs: b.DropDirs}
	for _, f := range b.Files {
		now, err := d.read(f.Path)
		if err != nil {
			return nil, fmt.Errorf("look at what is to be put back: %w", err)
		}
		if digest(now) != f.After {
			stale.Paths = append(stale.Paths, f.Path)
			continue
		}
		was := f.before(now)
		done.Files = append(done.Files, patch.File{Path: f.Path, Name: f.Name, From: f.From, Before: was, After: now})
		d.held[f.Path] = was
	}
	return done.Reverse(), nil
}

// PutBack applies a plan that takes a turn back, and has every step of it noted
// before it is taken. An error other than a *patch.IncompleteError means that
// nothing was changed.
func PutBack(ctx context.Context, fsys patch.FS, plan *patch.Plan, turn protocol.TurnID, note func(protocol.Undo) error) error {
	rec := plan.Record()
	started, err := patchStarted(plan, rec)
	if err != nil {
		return err
	}
	started.Undoes, started.Back = turn, nil
	if started.Changes, err = json.Marshal(plan.FileChanges()); err != nil {
		return err
	}
	if err := note(protocol.Undo{Started: started}); err != nil {
		return fmt.Errorf("record the undo: %w", err)
	}
	err = patch.Apply(ctx, fsys, plan, rec, func(patch.Record) error {
		return note(protocol.Undo{Committed: &protocol.PatchCommitted{Patch: rec.ID}})
	})
	var incomplete *patch.IncompleteError
	switch {
	case errors.As(err, &incomplete):
		return err // opening the conversation settles it
	case err != nil:
		return errors.Join(err, note(protocol.Undo{Settled: &protocol.PatchSettled{Patch: rec.ID}}))
	}
	return note(protocol.Undo{Done: &protocol.Undone{Of: turn, Patch: rec.ID, Files: plan.Paths()}})
}

package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/protocol"
)

// A TreeBack is how to put a working tree back to what it was in a snapshot.
type TreeBack struct {
	Plan    *patch.Plan
	Covered func(path string) bool // whether a path is in the snapshots at all
	Modes   []string               // files of which only the mode changed, which is not put back
}

// TakeBack says how to put a working tree back to the first of two snapshots, as
// far as the second differs from it. It fails with a ChangedSinceError if one of
// those files is no longer what it is in the second.
func (s *Snapshots) TakeBack(ctx context.Context, t protocol.TreeRange) (*TreeBack, error) {
	r, err := s.open(ctx, t.Root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Root, err)
	}
	defer r.Close()
	now, err := r.WriteTree(ctx)
	if err != nil {
		return nil, err
	}
	covered, err := covers(ctx, r, t.Before, t.After)
	if err != nil {
		return nil, fmt.Errorf("the snapshots are gone: %w", err)
	}
	entries, err := r.ChangedPaths(ctx, t.Before, t.After)
	if err != nil {
		return nil, err
	}
	since, err := r.ChangedPaths(ctx, t.After, now)
	if err != nil {
		return nil, err
	}
	if err := stale(r.Root, entries, since); err != nil {
		return nil, err
	}
	b := &TreeBack{Plan: &patch.Plan{}, Covered: covered}
	for _, e := range entries {
		if e.Blob == e.Blob2 {
			b.Modes = append(b.Modes, filepath.Join(r.Root, e.Path))
			continue
		}
		f, err := restore(ctx, r, t.Before, e)
		if err != nil {
			return nil, err
		}
		b.Plan.Files = append(b.Plan.Files, f)
	}
	b.Plan.MakeDirs = missingDirs(b.Plan)
	return b, nil
}

// stale fails if one of the entries is among those that changed since.
func stale(root string, entries, since []git.Entry) error {
	changed := map[string]bool{}
	for _, e := range since {
		changed[e.Path] = true
	}
	err := &ChangedSinceError{}
	for _, e := range entries {
		if changed[e.Path] {
			err.Paths = append(err.Paths, filepath.Join(root, e.Path))
		}
	}
	if len(err.Paths) == 0 {
		return nil
	}
	return err
}

var errModule = errors.New("is a repository of its own, which cannot be put back")

// restore returns the change that makes a file what it was before.
func restore(ctx context.Context, r *git.Repo, tree string, e git.Entry) (patch.File, error) {
	f := patch.File{Path: filepath.Join(r.Root, e.Path), Name: e.Path}
	if e.Mode == git.ModeModule || e.Mode2 == git.ModeModule {
		return f, fmt.Errorf("%s %w", f.Path, errModule)
	}
	var err error
	if f.Before, err = readFile(patch.OS{}, f.Path); err != nil {
		return f, err
	}
	switch e.Mode {
	case git.ModeNone:
		return f, nil
	case git.ModeLink:
		target, err := r.Blob(ctx, e.Blob)
		f.After = &patch.Content{Link: target}
		return f, err
	}
	// As a checkout would write it, line ends and all.
	data, err := r.Checkout(ctx, tree, e.Path)
	f.After = &patch.Content{Data: data, Mode: fileMode(f.Before, e.Mode)}
	return f, err
}

// fileMode is the mode of a file that is put back. Git only knows whether it can
// be executed; the rest is as it is now.
func fileMode(now *patch.Content, mode string) fs.FileMode {
	bits := fs.FileMode(0o644)
	if now != nil && now.Mode != 0 {
		bits = now.Mode
	}
	if mode == git.ModeExec {
		return bits | (bits&0o444)>>2
	}
	return bits &^ 0o111
}

// missingDirs returns the directories that files of the plan need, outermost first.
func missingDirs(p *patch.Plan) []string {
	var dirs []string
	for _, f := range p.Files {
		if f.After == nil {
			continue
		}
		for dir := filepath.Dir(f.Path); !slices.Contains(dirs, dir); dir = filepath.Dir(dir) {
			if _, err := os.Lstat(dir); err == nil {
				break
			}
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs) // a directory sorts before what is in it
	return dirs
}

package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/protocol"
)

// An entry is a path whose content differs between two trees.
type entry struct {
	path         string // from the root
	mode, blob   string // before; the mode is 000000 if there was none
	mode2, blob2 string // after
}

const (
	modeNone   = "000000"
	modeExec   = "100755"
	modeLink   = "120000"
	modeModule = "160000"
)

// changed lists what differs between two trees.
func (r *repository) changed(ctx context.Context, before, after string) ([]entry, error) {
	out, err := r.git(ctx, "", "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", before, after)
	if err != nil {
		return nil, err
	}
	var list []entry
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("git diff-tree says %q", fields[i])
		}
		list = append(list, entry{path: fields[i+1], mode: f[0], mode2: f[1], blob: f[2], blob2: f[3]})
	}
	return list, nil
}

// A TreeBack is how to put a working tree back to what it was in a picture.
type TreeBack struct {
	Plan    *patch.Plan
	Covered func(path string) bool // whether a path is in the pictures at all
	Modes   []string               // files of which only the mode changed, which is not put back
}

// TakeBack says how to put a working tree back to the first of two pictures, as
// far as the second differs from it. It fails with a ChangedSinceError if one of
// those files is no longer what it is in the second.
func (s *Snapshots) TakeBack(ctx context.Context, t protocol.TreeRange) (*TreeBack, error) {
	r, err := s.open(ctx, t.Root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Root, err)
	}
	now, err := r.tree(ctx)
	if err != nil {
		return nil, err
	}
	covered, err := r.covers(ctx, t.Before, t.After)
	if err != nil {
		return nil, fmt.Errorf("the snapshots are gone: %w", err)
	}
	entries, err := r.changed(ctx, t.Before, t.After)
	if err != nil {
		return nil, err
	}
	since, err := r.changed(ctx, t.After, now)
	if err != nil {
		return nil, err
	}
	if err := r.stale(entries, since); err != nil {
		return nil, err
	}
	b := &TreeBack{Plan: &patch.Plan{}, Covered: covered}
	for _, e := range entries {
		if e.blob == e.blob2 {
			b.Modes = append(b.Modes, filepath.Join(r.root, e.path))
			continue
		}
		f, err := r.restore(ctx, t.Before, e)
		if err != nil {
			return nil, err
		}
		b.Plan.Files = append(b.Plan.Files, f)
	}
	b.Plan.MakeDirs = missingDirs(b.Plan)
	return b, nil
}

// stale fails if one of the entries is among those that changed since.
func (r *repository) stale(entries, since []entry) error {
	changed := map[string]bool{}
	for _, e := range since {
		changed[e.path] = true
	}
	err := &ChangedSinceError{}
	for _, e := range entries {
		if changed[e.path] {
			err.Paths = append(err.Paths, filepath.Join(r.root, e.path))
		}
	}
	if len(err.Paths) == 0 {
		return nil
	}
	return err
}

var errModule = errors.New("is a repository of its own, which cannot be put back")

// restore returns the change that makes a file what it was before.
func (r *repository) restore(ctx context.Context, tree string, e entry) (patch.File, error) {
	f := patch.File{Path: filepath.Join(r.root, e.path), Name: e.path}
	if e.mode == modeModule || e.mode2 == modeModule {
		return f, fmt.Errorf("%s %w", f.Path, errModule)
	}
	var err error
	if f.Before, err = readFile(patch.OS{}, f.Path); err != nil {
		return f, err
	}
	switch e.mode {
	case modeNone:
		return f, nil
	case modeLink:
		target, err := r.git(ctx, "", "cat-file", "blob", e.blob)
		f.After = &patch.Content{Link: target}
		return f, err
	}
	// As a checkout would write it, line ends and all.
	data, err := r.git(ctx, "", "cat-file", "--filters", tree+":"+e.path)
	f.After = &patch.Content{Data: data, Mode: fileMode(f.Before, e.mode)}
	return f, err
}

// fileMode is the mode of a file that is put back. Git only knows whether it can
// be executed; the rest is as it is now.
func fileMode(now *patch.Content, mode string) fs.FileMode {
	bits := fs.FileMode(0o644)
	if now != nil && now.Mode != 0 {
		bits = now.Mode
	}
	if mode == modeExec {
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

package patch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/fermata-agent/fermata/internal/rootfs"
)

// Apply carries a plan out, all of it or nothing. The record is one that
// p.Record returned; commit is called once, when everything is ready, and must
// make the record durable before it returns nil. From then on the patch happens,
// also if the process dies: see Recover.
//
// A process that is halted after the commit, for so long that another one settles the patch, changes nothing
// when it continues; the error is an *IncompleteError then.
//
// A nil error means that everything is in place and durable. Any other error but
// an *IncompleteError means that nothing was applied and nothing is left behind;
// it is a *ChangedError if a file changed since Verify, and the context's cause
// if that ended before the commit. After the commit the context is ignored.
func Apply(ctx context.Context, fsys FS, p *Plan, rec Record, commit func(Record) error) error {
	t := &transaction{fsys: fsys, rec: rec}
	if err := t.prepare(ctx, p, commit); err != nil {
		if undoErr := t.undo(false); undoErr != nil {
			return &IncompleteError{Err: errors.Join(err, undoErr)}
		}
		return err
	}

	for _, s := range rec.Steps {
		err := t.advance(s)
		if errors.Is(err, errSettled) {
			return &IncompleteError{Err: err}
		}
		if err != nil {
			return t.retreat(fmt.Errorf("write %s: %w", s.Path, err))
		}
	}
	if err := t.sync(); err != nil {
		return &IncompleteError{Err: err}
	}
	t.tidy()
	return nil
}

// prepare does all that can be taken back without a trace, then commits.
func (t *transaction) prepare(ctx context.Context, p *Plan, commit func(Record) error) error {
	files := make(map[string]File, len(p.Files))
	for _, f := range p.Files {
		files[f.Path] = f
	}
	for _, dir := range t.rec.MakeDirs {
		if err := t.makeDir(dir); err != nil {
			return moved(dir, fmt.Errorf("make directory for patch: %w", err))
		}
	}
	for _, s := range t.rec.Steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f, ok := files[s.Path]
		if !ok || digest(f.Before) != s.Before || digest(f.After) != s.After {
			return fmt.Errorf("prepare %s: the record is of another plan", s.Path)
		}
		if err := t.stage(s, f); err != nil {
			return moved(s.Path, fmt.Errorf("prepare %s: %w", s.Path, err))
		}
	}
	if err := t.sync(); err != nil {
		return fmt.Errorf("prepare patch: %w", err)
	}
	// As late as possible: what happens between this and the renames is lost.
	for _, s := range t.rec.Steps {
		if err := t.check(files[s.Path]); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := commit(t.rec); err != nil {
		return fmt.Errorf("commit patch: %w", err)
	}
	return nil
}

// moved returns a ChangedError if the error says that a path leads elsewhere by
// now, else the error.
func moved(path string, err error) error {
	if errors.Is(err, rootfs.ErrLink) {
		return &ChangedError{Path: path, What: "was moved by a symbolic link"}
	}
	return err
}

func (t *transaction) makeDir(dir string) error {
	err := t.fsys.Mkdir(dir)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, statErr := t.fsys.Lstat(dir); statErr == nil && info.IsDir() {
		return nil
	}
	return err
}

// stage puts the new content and a second name of the old one beside the file.
func (t *transaction) stage(s Step, f File) error {
	if f.Before != nil {
		if err := t.keepOld(s, f); err != nil {
			return err
		}
	}
	if f.After == nil {
		return nil
	}
	if f.After.Link != "" {
		return t.fsys.Symlink(f.After.Link, s.New)
	}
	like := f.From
	if like == "" && f.Before != nil {
		like = f.Path
	}
	return t.fsys.Create(s.New, []byte(f.After.Data), f.After.Mode, like)
}

// keepOld gives the old content a second name. That takes no space, so that a
// full disk cannot prevent putting it back.
func (t *transaction) keepOld(s Step, f File) error {
	if f.Before.Link != "" {
		return t.fsys.Symlink(f.Before.Link, s.Old)
	}
	err := t.fsys.Link(s.Path, s.Old)
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &ChangedError{Path: s.Path, What: "was removed"}
	}
	// Not every file system has second names, and not every file may get one.
	return t.fsys.Create(s.Old, []byte(f.Before.Data), f.Before.Mode, f.Path)
}

// check makes sure that a file is still what the plan was made for, and that
// its path still means the same place.
func (t *transaction) check(f File) error {
	now, err := read(t.fsys, f.Path)
	if err != nil {
		return moved(f.Path, fmt.Errorf("check %s: %w", f.Path, err))
	}
	switch {
	case now == nil && f.Before != nil:
		return &ChangedError{Path: f.Path, What: "was removed"}
	case now != nil && f.Before == nil:
		return &ChangedError{Path: f.Path, What: "was created"}
	case !same(now, f.Before):
		return &ChangedError{Path: f.Path, What: "was changed"}
	case now != nil && f.Before.Mode != 0 && now.Mode != f.Before.Mode:
		return &ChangedError{Path: f.Path, What: "got another mode"}
	}
	return nil
}

// retreat takes a committed patch back because one of its steps failed. No
// second decision has to be noted: until the first file is back, the way forward
// is still open, and a file that is back while its new content is gone shows
// recovery that there is none.
func (t *transaction) retreat(cause error) error {
	if err := t.undo(true); err != nil {
		return &IncompleteError{Err: errors.Join(cause, err)}
	}
	return cause
}

package patch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

// maxFile bounds the size of a file that a patch may touch, because its old and
// new content are held in memory.
const maxFile = 64 << 20

// Verify checks a patch against the files and returns what it will do. It only
// reads. Relative paths are taken from dir, which must be absolute. A patch that
// does not fit is an *Error; otherwise the error is the context's.
func Verify(ctx context.Context, fsys FS, dir string, p *syntax.Patch) (*Plan, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("verify patch: directory %q is not absolute", dir)
	}
	if len(p.Sections) == 0 {
		return nil, &syntax.Error{Problem: "the patch is empty: it names no file"}
	}

	v := &verifier{fsys: fsys, dir: dir, ledger: newLedger(), dirs: map[string]fs.FileInfo{}}
	for _, s := range p.Sections {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := v.section(s); err != nil {
			return nil, err
		}
	}
	if err := v.checkNesting(); err != nil {
		return nil, err
	}
	plan := &Plan{Files: v.ledger.files()}
	if err := v.findDirs(plan); err != nil {
		return nil, err
	}
	return plan, nil
}

// verifier works a patch out against the files as the sections before have
// left them in the ledger.
type verifier struct {
	fsys   FS
	dir    string
	ledger *ledger
	dirs   map[string]fs.FileInfo // directories that were looked at: most files share theirs
}

func (v *verifier) section(s syntax.Section) error {
	var err error
	switch s.Kind {
	case syntax.Add:
		err = v.add(s)
	case syntax.Delete:
		err = v.delete(s)
	case Replace:
		err = v.replace(s)
	default:
		err = v.update(s)
	}
	var known *syntax.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &syntax.Error{Line: s.Line, File: s.Path, Problem: "cannot " + string(s.Kind) + " this file", Err: err}
}

func (v *verifier) add(s syntax.Section) error {
	e, err := v.open(s.Path, resolver.file, s.Line)
	if err != nil {
		return err
	}
	after := &Content{Data: s.Content}
	if e.After != nil {
		after.Mode = e.After.Mode
	}
	e.set(s.Path, after, "")
	return nil
}

func (v *verifier) delete(s syntax.Section) error {
	e, err := v.open(s.Path, resolver.entry, s.Line)
	if err != nil {
		return err
	}
	if e.After == nil {
		return v.missing(s, e)
	}
	e.set(s.Path, nil, "")
	return nil
}

func (v *verifier) update(s syntax.Section) error {
	e, err := v.open(s.Path, resolver.file, s.Line)
	if err != nil {
		return err
	}
	if e.After == nil {
		return v.missing(s, e)
	}
	data, problem := edit(e.After.Data, s.Chunks)
	if problem != nil {
		problem.File = s.Path
		return problem
	}
	after := &Content{Data: data, Mode: e.After.Mode}
	if s.MoveTo == "" {
		e.set(s.Path, after, e.origin)
		return nil
	}
	return v.move(s, e, after)
}

// move writes the new content to the new place and removes what the patch
// named: of a symbolic link the link, not the file that it points to.
func (v *verifier) move(s syntax.Section, file *entry, after *Content) error {
	to, err := v.open(s.MoveTo, resolver.file, s.Line)
	if err != nil {
		return &syntax.Error{Line: s.Line, File: s.Path, Problem: "cannot move this file to " + s.MoveTo, Err: err}
	}
	source, err := v.open(s.Path, resolver.entry, s.Line)
	if err != nil {
		return err
	}
	if to == source {
		file.set(s.Path, after, file.origin)
		return nil
	}

	if to.After != nil && same(to.After, after) {
		after.Mode = to.After.Mode // already there: nothing to write
	}
	origin := ""
	if source == file {
		origin = source.origin
	}
	to.set(s.MoveTo, after, origin)
	source.set(s.Path, nil, "")
	return nil
}

func (v *verifier) missing(s syntax.Section, e *entry) error {
	err := &syntax.Error{Line: s.Line, File: s.Path, Problem: "there is no such file"}
	switch {
	case e.Before != nil:
		err.Hint = fmt.Sprintf("an earlier section of this patch (line %d) removed or moved it", e.line)
	case !filepath.IsAbs(s.Path):
		err.Hint = "relative paths are taken from " + v.dir
	}
	return err
}

// open finds the file that a path means and notes that the section at line
// touches it. The entry's After is nil if there is no file.
func (v *verifier) open(path string, resolve func(resolver, string) (string, error), line int) (*entry, error) {
	full := path
	if !filepath.IsAbs(full) {
		// Not joined: that would take ".." before symbolic links are followed.
		full = v.dir + "/" + path
	}
	real, err := resolve(resolver{v.lstat, v.readlink}, full)
	if err != nil {
		return nil, err
	}
	if e := v.ledger.entry(real); e != nil {
		// The line that made it what it is now is still wanted for messages.
		if e.After != nil {
			e.line = line
		}
		return e, nil
	}
	before, err := read(v.fsys, real)
	if err != nil {
		return nil, err
	}
	if before != nil && before.Link == "" && before.Mode == 0 {
		// Mode 0 means "the default" to us, which would open the file up.
		return nil, fmt.Errorf("%s has no permissions at all", real)
	}
	e := v.ledger.add(real, before)
	e.line = line
	return e, nil
}

// lstat sees the files as the sections so far have left them.
func (v *verifier) lstat(path string) (fs.FileInfo, error) {
	e := v.ledger.entry(path)
	if e == nil {
		return v.lstatDisk(path)
	}
	if e.After == nil {
		return nil, fs.ErrNotExist
	}
	mode := e.After.Mode
	if e.After.Link != "" {
		mode |= fs.ModeSymlink
	}
	return plannedInfo{filepath.Base(path), mode}, nil
}

// lstatDisk looks at what is on disk. Whether a directory is still what it was,
// Apply finds out.
func (v *verifier) lstatDisk(path string) (fs.FileInfo, error) {
	if info, ok := v.dirs[path]; ok {
		return info, nil
	}
	info, err := v.fsys.Lstat(path)
	if err == nil && info.IsDir() {
		v.dirs[path] = info
	}
	return info, err
}

// plannedInfo is what a file will be. Only its mode is looked at.
type plannedInfo struct {
	name string
	mode fs.FileMode
}

func (i plannedInfo) Name() string       { return i.name }
func (i plannedInfo) Size() int64        { return 0 }
func (i plannedInfo) Mode() fs.FileMode  { return i.mode }
func (i plannedInfo) ModTime() time.Time { return time.Time{} }
func (i plannedInfo) IsDir() bool        { return i.mode.IsDir() }
func (i plannedInfo) Sys() any           { return nil }

func (v *verifier) readlink(path string) (string, error) {
	if e := v.ledger.entry(path); e != nil && e.After != nil {
		return e.After.Link, nil
	}
	return v.fsys.Readlink(path)
}

// read returns what is at a path; nil if there is nothing.
func read(fsys FS, path string) (*Content, error) {
	info, err := fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case mode.Type() == fs.ModeSymlink:
		target, err := fsys.Readlink(path)
		return &Content{Link: target}, err
	case mode.IsDir():
		return nil, fmt.Errorf("%s is a directory", path)
	case !mode.IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s is too large to patch (%d bytes, at most %d)", path, info.Size(), maxFile)
	}
	data, err := fsys.ReadFile(path)
	if err != nil {
		return nil, err
	}
	// Like a write in place by anybody but root, a patch does not keep the
	// set-user-id bit: other content should not inherit that trust.
	return &Content{Data: string(data), Mode: info.Mode().Perm()}, nil
}

// checkNesting refuses a patch that needs one path both as a file (before or
// after) and as a directory.
func (v *verifier) checkNesting() error {
	for _, path := range v.ledger.order {
		e := v.ledger.entry(path)
		if e.After == nil {
			continue
		}
		for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			above := v.ledger.entry(dir)
			if above == nil {
				continue
			}
			later := e
			if above.line > e.line {
				later = above
			}
			return &syntax.Error{Line: later.line, File: later.Name, Problem: fmt.Sprintf("%s cannot be a file and a directory in one patch", dir)}
		}
	}
	return nil
}

// findDirs lists the directories that the plan has to make.
func (v *verifier) findDirs(p *Plan) error {
	known := map[string]bool{}
	for _, f := range p.Files {
		if f.After == nil {
			continue
		}
		var missing []string
		for dir := filepath.Dir(f.Path); !known[dir]; dir = filepath.Dir(dir) {
			known[dir] = true
			_, err := v.lstatDisk(dir)
			if err == nil {
				break
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			missing = append(missing, dir)
		}
		slices.Reverse(missing)
		p.MakeDirs = append(p.MakeDirs, missing...)
	}
	return nil
}

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/regular"
)

// Options say where a repository is opened.
type Options struct {
	Dir     string // a directory in the working tree
	Scratch string // a directory for our git directories, where commands cannot write; made if need be
	Objects string // where new objects are kept; if empty, they are dropped at Close

	// Without are files, by their absolute paths, that are left out of trees and diffs.
	Without []string
}

// A Repo is a repository that is open for reading. Close it.
type Repo struct {
	Location

	shadow  string // our git directory
	objects string // where new objects go
	from    string // the directory that relative paths are seen from
	index   string // a copy of the index, once there is one

	without []string // files that are left out, from the root
}

// Open opens the repository that a directory is in. It fails with ErrNotFound if
// there is none.
func Open(ctx context.Context, o Options) (*Repo, error) {
	l, err := Find(o.Dir)
	if err != nil {
		return nil, err
	}
	shadow, err := makeShadow(ctx, l, o.Scratch)
	if err != nil {
		return nil, fmt.Errorf("open the repository %s: %w", l.Root, err)
	}
	r := &Repo{Location: l, shadow: shadow, objects: o.Objects, from: o.Dir}
	if r.objects == "" {
		r.objects = filepath.Join(shadow, "objects")
	}
	for _, name := range o.Without {
		if rel, err := filepath.Rel(l.Root, name); err == nil && filepath.IsLocal(rel) {
			r.without = append(r.without, filepath.ToSlash(rel))
		}
	}
	return r, nil
}

// commandOnAll is a command on all files but those that are left out.
func (r *Repo) commandOnAll(args ...string) command {
	c := r.command(append(args, "--")...)
	c.dir = r.Root
	if len(r.without) == 0 {
		c.args = append(c.args, ".")
		return c
	}
	c.env = append(c.env, "GIT_LITERAL_PATHSPECS=0")
	c.args = append(c.args, ":(top)")
	for _, name := range r.without {
		c.args = append(c.args, ":(top,exclude,literal)"+name)
	}
	return c
}

// Close removes what was made for running git. Only objects are kept, if
// Options said where.
func (r *Repo) Close() { os.RemoveAll(r.shadow) }

// run runs git on the repository.
func (r *Repo) run(ctx context.Context, args ...string) (string, error) {
	return r.command(args...).run(ctx)
}

func (r *Repo) command(args ...string) command {
	index := r.index
	if index == "" {
		index = filepath.Join(r.Dir, "index")
	}
	env := append(shadowEnviron(r.shadow), "GIT_WORK_TREE="+r.Root, "GIT_INDEX_FILE="+index,
		"GIT_OBJECT_DIRECTORY="+r.objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quotePath(filepath.Join(r.Common, "objects")))
	return command{args: args, dir: r.from, env: env}
}

// quotePath writes a path as one of a list that colons separate.
func quotePath(path string) string {
	if !strings.ContainsAny(path, ":\"\n") {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// copyIndex makes git work on a copy of the index, and leaves the submodules out
// of what it looks at in the working tree: git would run itself in each of them
// with the configuration that it finds there.
func (r *Repo) copyIndex(ctx context.Context) error {
	if r.index != "" {
		return nil
	}
	index := filepath.Join(r.shadow, "index")
	modules, err := copyIndex(filepath.Join(r.Dir, "index"), index)
	if err != nil {
		return err
	}
	r.index = index
	shared, _ := filepath.Glob(filepath.Join(globQuote(r.shadow), "sharedindex.*"))
	if !modules && len(shared) == 0 {
		return nil
	}
	return r.skipModules(ctx)
}

// skipModules marks each submodule as one that is not checked out.
func (r *Repo) skipModules(ctx context.Context) error {
	c := r.command("ls-files", "-s", "-z")
	c.dir = r.Root
	out, err := c.run(ctx)
	if err != nil {
		return err
	}
	c = r.command("update-index", "--skip-worktree", "-z", "--stdin")
	c.dir = r.Root
	for entry := range strings.SplitSeq(out, "\x00") {
		if _, name, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(entry, ModeModule+" ") {
			c.in += name + "\x00"
		}
	}
	if c.in == "" {
		return nil
	}
	_, err = c.run(ctx)
	return err
}

// moduleMode is the mode of a submodule in an index. Other bytes of an index may
// happen to be the same.
var moduleMode = []byte{0, 0, 0xe0, 0}

// copyIndex copies an index, if there is one, and reports whether submodules may
// be in it. A copy saves reading every file again: the index knows which have not
// changed. It knows that by comparing times with its own, so that this is copied
// too.
func copyIndex(from, to string) (modules bool, err error) {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%s: not a regular file", from)
	}
	data, err := regular.ReadFile(from)
	if err != nil {
		return false, err
	}
	if err := regular.WriteFile(to, data, 0o600); err != nil {
		return false, err
	}
	return bytes.Contains(data, moduleMode), os.Chtimes(to, info.ModTime(), info.ModTime())
}

// split returns the parts of a list in which each is followed by a NUL.
func split(list string) []string {
	return slices.DeleteFunc(strings.Split(list, "\x00"), func(s string) bool { return s == "" })
}

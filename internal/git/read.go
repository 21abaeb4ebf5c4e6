package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The flags of everything that compares. A submodule is compared by its commit:
// to look into it, git would run with the configuration that it finds there.
var diffFlags = []string{"--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--submodule=short"}

func diff(command string, rest ...string) []string {
	return append(append([]string{command}, diffFlags...), rest...)
}

// Diff compares the working tree with a commit, as git diff does.
func (r *Repo) Diff(ctx context.Context, commit string) (string, error) {
	return r.commandOnAll(diff("diff", "--end-of-options", commit)...).run(ctx)
}

// DiffAll compares the working tree with a commit. Files that are neither tracked
// nor ignored are new ones. If there is more than limit bytes, it returns those
// and ErrTooMuch.
func (r *Repo) DiffAll(ctx context.Context, commit string, limit int) (string, error) {
	if err := r.copyIndex(ctx); err != nil {
		return "", err
	}
	c := r.commandOnAll("add", "--intent-to-add", "--ignore-errors")
	// A file that cannot be read is missing in the diff, and the others are not.
	if _, err := c.run(ctx); err != nil && ctx.Err() != nil {
		return "", err
	}
	c = r.commandOnAll(diff("diff", "--end-of-options", commit)...)
	c.max = limit
	return c.run(ctx)
}

// Files lists the files below the directory that are not ignored, as they are
// seen from there.
func (r *Repo) Files(ctx context.Context) ([]string, error) {
	out, err := r.run(ctx, "ls-files", "-co", "--exclude-standard", "-z")
	return split(out), err
}

// Untracked lists those of them that are not tracked.
func (r *Repo) Untracked(ctx context.Context) ([]string, error) {
	out, err := r.run(ctx, "ls-files", "-o", "--exclude-standard", "-z")
	return split(out), err
}

// Dirty reports whether the working tree differs from the last commit, with files
// that are neither tracked nor ignored.
func (r *Repo) Dirty(ctx context.Context) (bool, error) {
	if err := r.copyIndex(ctx); err != nil {
		return false, err
	}
	c := r.command("status", "--porcelain", "--ignore-submodules=all")
	c.dir, c.max = r.Root, 1
	out, err := c.run(ctx)
	if errors.Is(err, ErrTooMuch) {
		return true, nil
	}
	return out != "", err
}

// ErrNoRemote means that no remote has a commit of this branch.
var ErrNoRemote = errors.New("no remote branch is known")

// RemoteBase returns the newest commit of this branch that its remote has, as far
// as is known here. Nothing is fetched.
func (r *Repo) RemoteBase(ctx context.Context) (string, error) {
	for _, ref := range []string{"@{upstream}", "refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master"} {
		if out, err := r.run(ctx, "merge-base", "HEAD", ref); err == nil {
			return strings.TrimSpace(out), nil
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
	}
	return "", ErrNoRemote
}

// RemoteURLs returns where the remotes of the repository are.
func (r *Repo) RemoteURLs(ctx context.Context) ([]string, error) {
	c := command{args: []string{"config", "--list", "-z"}, dir: r.Root, env: append(userEnviron(), "GIT_DIR="+r.Dir, "GIT_WORK_TREE="+r.Root)}
	out, err := c.run(ctx)
	var urls []string
	for _, entry := range split(out) {
		if key, value, _ := strings.Cut(entry, "\n"); strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".url") {
			urls = append(urls, value)
		}
	}
	return urls, err
}

// An Entry is a path whose content or mode differs between two trees.
type Entry struct {
	Path         string // from the root
	Mode, Blob   string // before; the mode is ModeNone if there was none
	Mode2, Blob2 string // after
}

// The modes of entries.
const (
	ModeNone   = "000000"
	ModeExec   = "100755"
	ModeLink   = "120000"
	ModeModule = "160000"
)

// WriteTree writes the working tree, without what is ignored, as a tree, and
// returns its name.
func (r *Repo) WriteTree(ctx context.Context) (string, error) {
	if err := r.copyIndex(ctx); err != nil {
		return "", err
	}
	if _, err := r.commandOnAll("add", "-A").run(ctx); err != nil {
		return "", err
	}
	out, err := r.run(ctx, "write-tree", "--missing-ok")
	return strings.TrimSpace(out), err
}

// DiffTrees compares two trees in git's format.
func (r *Repo) DiffTrees(ctx context.Context, before, after string) (string, error) {
	return r.run(ctx, diff("diff-tree", "-p", "-r", "-M", "--end-of-options", before, after)...)
}

// ChangedPaths lists what differs between two trees.
func (r *Repo) ChangedPaths(ctx context.Context, before, after string) ([]Entry, error) {
	out, err := r.run(ctx, "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--end-of-options", before, after)
	if err != nil {
		return nil, err
	}
	var list []Entry
	fields := split(out)
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("git diff-tree printed %q", fields[i])
		}
		list = append(list, Entry{Path: fields[i+1], Mode: f[0], Mode2: f[1], Blob: f[2], Blob2: f[3]})
	}
	return list, nil
}

// TreePaths lists the paths in a tree, from the root.
func (r *Repo) TreePaths(ctx context.Context, tree string) ([]string, error) {
	out, err := r.run(ctx, "ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)
	return split(out), err
}

// Blob returns the content of a blob as it is stored.
func (r *Repo) Blob(ctx context.Context, name string) (string, error) {
	return r.run(ctx, "cat-file", "blob", name)
}

// Checkout returns a file of a tree as a checkout would write it: with the line
// ends and the encoding that its attributes say. It fails with ErrFilter if a
// checkout would run a program.
func (r *Repo) Checkout(ctx context.Context, tree, path string) (string, error) {
	c := r.command("check-attr", "-z", "filter", "--", path)
	c.dir = r.Root
	out, err := c.run(ctx)
	if err != nil {
		return "", err
	}
	if f := strings.Split(out, "\x00"); len(f) < 3 || f[2] != "unspecified" && f[2] != "unset" {
		return "", fmt.Errorf("%s: %w", path, ErrFilter)
	}
	return r.run(ctx, "cat-file", "--filters", tree+":"+path)
}

// ErrFilter means that the attributes of a file name a filter, such as that of
// Git LFS. Filters are programs and are not run.
var ErrFilter = errors.New("its attributes name a filter, which is not run")

// ErrNoCommit means that a name names no commit.
var ErrNoCommit = errors.New("no such commit")

// Commit returns the commit that a branch, a tag or the beginning of a hash names.
func (r *Repo) Commit(ctx context.Context, name string) (string, error) {
	if strings.HasPrefix(name, "-") { // no reference begins so, but a flag does
		return "", fmt.Errorf("%q: %w", name, ErrNoCommit)
	}
	out, err := r.run(ctx, "rev-parse", "--verify", "--quiet", name+"^{commit}")
	switch {
	case err != nil && ctx.Err() != nil:
		return "", err
	case err != nil:
		return "", fmt.Errorf("%q: %w", name, ErrNoCommit)
	}
	return strings.TrimSpace(out), nil
}

// Branches returns the names of the branches, those of remotes after our own.
func (r *Repo) Branches(ctx context.Context) ([]string, error) {
	out, err := r.run(ctx, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes")
	return strings.Fields(out), err
}

// Ahead reports whether this branch has commits that another does not have.
func (r *Repo) Ahead(ctx context.Context, branch string) (bool, error) {
	other, err := r.Commit(ctx, branch)
	if err != nil {
		return false, err
	}
	out, err := r.run(ctx, "rev-list", "--max-count=1", other+"..HEAD")
	return out != "", err
}

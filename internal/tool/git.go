package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/policy"
)

// Snapshots take pictures of the working trees of git repositories, as git
// trees. Neither the index nor the objects of a repository are touched: the
// index is a copy, and objects go into a directory of our own.
type Snapshots struct {
	Dir   string        // where objects are kept; made if need be
	Limit time.Duration // for one picture; 0 is 300 ms
}

const snapshotLimit = 300 * time.Millisecond

// A repository is a working tree and where git keeps what it needs for it.
type repository struct {
	root, index, objects string
	store                string // our objects
}

var errNoRepository = errors.New("not in a git repository")

// open finds the repository that dir is in.
func (s *Snapshots) open(ctx context.Context, dir string) (*repository, error) {
	r := &repository{root: dir, store: s.Dir}
	out, err := r.git(ctx, "", "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "index", "--git-path", "objects")
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, errNoRepository
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 3 { // a line feed in a path: nothing that we could undo
		return nil, errNoRepository
	}
	r.root, r.index, r.objects = lines[0], lines[1], lines[2]
	return r, nil
}

// take takes a picture of the repository that dir is in, within the limit.
func (s *Snapshots) take(ctx context.Context, dir string) (r *repository, tree string, err error) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	if r, err = s.open(ctx, dir); err != nil {
		return nil, "", err
	}
	tree, err = r.tree(ctx)
	return r, tree, err
}

func (s *Snapshots) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := s.Limit
	if limit == 0 {
		limit = snapshotLimit
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %v", limit))
}

// tree writes the working tree, without what is ignored, as a git tree.
func (r *repository) tree(ctx context.Context) (string, error) {
	if err := os.MkdirAll(r.store, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(r.store, "index-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	index := filepath.Join(dir, "index")
	if err := copyIndex(r.index, index); err != nil {
		return "", err
	}
	if _, err := r.git(ctx, index, "-c", "core.splitIndex=false", "-c", "advice.addEmbeddedRepo=false", "add", "-A", "--", "."); err != nil {
		return "", err
	}
	out, err := r.git(ctx, index, "write-tree")
	return strings.TrimSpace(out), err
}

// copyIndex copies an index, if there is one. It saves reading every file again:
// the index knows which have not changed. It knows that by comparing times with
// its own, so that this is copied too.
func copyIndex(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// git runs git in the root, with an index of ours if one is given.
func (r *repository) git(ctx context.Context, index string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.root, r.environ(index), 100*time.Millisecond
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		first, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, first)
	}
	return out.String(), nil
}

func (r *repository) environ(index string) []string {
	var env []string
	for _, e := range os.Environ() {
		// GIT_DIR and its like mean another repository.
		if !strings.HasPrefix(e, "GIT_") || strings.HasPrefix(e, "GIT_CONFIG_GLOBAL=") || strings.HasPrefix(e, "GIT_CONFIG_SYSTEM=") {
			env = append(env, e)
		}
	}
	env = append(env, "LC_ALL=C", "GIT_LITERAL_PATHSPECS=1")
	if r.objects != "" {
		env = append(env, "GIT_OBJECT_DIRECTORY="+r.store, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+r.objects)
	}
	if index != "" {
		env = append(env, "GIT_INDEX_FILE="+index)
	}
	return policy.Harden(env)
}

// diff returns the difference of two trees in git's format.
func (r *repository) diff(ctx context.Context, before, after string) (string, error) {
	if before == after {
		return "", nil
	}
	return r.git(ctx, "", "diff-tree", "-p", "-r", "-M", "--no-color", "--no-ext-diff", "--no-textconv", before, after)
}

// names returns the paths in trees, from the root.
func (r *repository) names(ctx context.Context, trees ...string) (map[string]bool, error) {
	found := map[string]bool{}
	for _, tree := range trees {
		out, err := r.git(ctx, "", "ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)
		if err != nil {
			return nil, err
		}
		for name := range strings.SplitSeq(out, "\x00") {
			found[name] = true
		}
	}
	return found, nil
}

// covers returns a function that reports whether a path, which is absolute, is
// in one of the trees.
func (r *repository) covers(ctx context.Context, trees ...string) (func(path string) bool, error) {
	names, err := r.names(ctx, trees...)
	if err != nil {
		return nil, err
	}
	return func(path string) bool {
		rel, err := filepath.Rel(r.root, path)
		return err == nil && rel != "." && names[filepath.ToSlash(rel)]
	}, nil
}

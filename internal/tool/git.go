package tool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fermata-agent/fermata/internal/git"
)

// Snapshots record the working trees of git repositories, as git trees. Neither
// the index nor the objects of a repository are touched: the index is a copy, and
// objects go into a directory of our own.
type Snapshots struct {
	Dir   string        // where objects are kept, and commands cannot write; made if need be
	Limit time.Duration // for one snapshot; 0 is 300 ms

	// Secret lists files that are left out, because commands can read the objects. May be nil.
	Secret func() []string
}

const snapshotLimit = 300 * time.Millisecond

// open opens the repository that dir is in. The caller closes it.
func (s *Snapshots) open(ctx context.Context, dir string) (*git.Repo, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	o := git.Options{Dir: dir, Scratch: s.Dir, Objects: s.Dir}
	if s.Secret != nil {
		o.Without = s.Secret()
	}
	return git.Open(ctx, o)
}

// take takes a snapshot of the repository that dir is in, within the limit. The
// caller closes the repository.
func (s *Snapshots) take(ctx context.Context, dir string) (r *git.Repo, tree string, err error) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	if r, err = s.open(ctx, dir); err != nil {
		return nil, "", err
	}
	if tree, err = r.WriteTree(ctx); err != nil {
		r.Close()
		return nil, "", err
	}
	return r, tree, nil
}

func (s *Snapshots) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := s.Limit
	if limit == 0 {
		limit = snapshotLimit
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %v", limit))
}

// covers returns a function that reports whether a path, which is absolute, is
// in one of the trees.
func covers(ctx context.Context, r *git.Repo, trees ...string) (func(path string) bool, error) {
	found := map[string]bool{}
	for _, tree := range trees {
		paths, err := r.TreePaths(ctx, tree)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			found[path] = true
		}
	}
	return func(path string) bool {
		rel, err := filepath.Rel(r.Root, path)
		return err == nil && rel != "." && found[filepath.ToSlash(rel)]
	}, nil
}

package composer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	maxFound   = 50               // paths that Find returns
	listingAge = 10 * time.Second // how long a list of files is good for
)

// A Lister returns paths relative to the directory it lists, with slashes.
type Lister func(ctx context.Context) ([]string, error)

// skipped are directories that are never meant when a file is named.
var skipped = []string{".git", ".hg", ".svn", "node_modules"}

// Walk lists the files under dir itself, at most limit of them. What is near comes
// first, so that one deep directory does not take all the room. Links are not
// followed, and directories that cannot be read are left out.
func Walk(dir string, limit int) Lister {
	return func(ctx context.Context) ([]string, error) {
		var found []string
		queue := []string{"."}
		for len(queue) > 0 && len(found) < limit {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			at := queue[0]
			queue = queue[1:]
			entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(at)))
			if err != nil && at == "." {
				return nil, fmt.Errorf("list files: %w", err)
			}
			for _, e := range entries {
				name := path.Join(at, e.Name())
				switch {
				case e.IsDir() && !slices.Contains(skipped, e.Name()):
					queue = append(queue, name)
				case e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0:
					found = append(found, name)
				}
			}
		}
		return found[:min(len(found), limit)], nil
	}
}

// listing is what the listers said, with the directories on the way.
type listing struct {
	at    time.Time
	paths []string
	lower []string // the same in lower case
}

// A FileFinder finds files by a few of their letters.
type FileFinder struct {
	list []Lister
	last atomic.Pointer[listing] // the newest listing; searches share it
}

// NewFileFinder returns a finder that takes its names from the first of the listers
// that succeeds, for example git's own list and then Walk.
func NewFileFinder(list ...Lister) *FileFinder { return &FileFinder{list: list} }

// Find returns at most 50 paths of files and, with a slash at their end,
// directories, the best first. It is a composer.Files. What it knows of the
// directory may be ten seconds old.
func (f *FileFinder) Find(ctx context.Context, typed string) []string {
	l := f.last.Load()
	if l == nil || time.Since(l.at) > listingAge {
		paths, err := f.read(ctx)
		if err != nil {
			return nil
		}
		l = newListing(paths)
		f.last.Store(l)
	}
	return l.find(ctx, typed)
}

func (f *FileFinder) read(ctx context.Context) ([]string, error) {
	err := errors.New("no lister")
	for _, list := range f.list {
		var paths []string
		if paths, err = list(ctx); err == nil {
			return paths, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

func newListing(paths []string) *listing {
	l := &listing{at: time.Now(), paths: slices.Clone(paths)}
	seen := map[string]bool{".": true, "/": true}
	for _, p := range paths {
		for dir := path.Dir(p); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			l.paths = append(l.paths, dir+"/")
		}
	}
	l.lower = make([]string, len(l.paths))
	for i, p := range l.paths {
		l.lower[i] = strings.ToLower(p)
	}
	return l
}

func (l *listing) find(ctx context.Context, typed string) []string {
	type hit struct{ score, i int }
	var hits []hit
	typed = strings.ToLower(strings.TrimPrefix(typed, "./"))
	for i, p := range l.lower {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil
		}
		if s, ok := scorePath(p, typed); ok {
			hits = append(hits, hit{s, i})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		if a.score != b.score {
			return b.score - a.score
		}
		return strings.Compare(l.paths[a.i], l.paths[b.i])
	})
	found := make([]string, 0, min(len(hits), maxFound))
	for _, h := range hits[:min(len(hits), maxFound)] {
		found = append(found, l.paths[h.i])
	}
	return found
}

// score says how well a path fits what was typed, both in lower case: best is its
// name, then the beginning or a part of the name, a part of the path, and at last
// letters in their order. Among equals the short and shallow ones come first.
func scorePath(p, typed string) (int, bool) {
	const step = 10_000
	name := path.Base(p)
	small := -min(len(p), 500) - 20*strings.Count(strings.TrimSuffix(p, "/"), "/")
	switch {
	case typed == "":
		return small, true
	case name == typed || p == typed:
		return 6*step + small, true
	case strings.HasPrefix(name, typed):
		return 5*step + small, true
	case strings.HasPrefix(p, typed):
		return 4*step + small, true
	case strings.Contains(name, typed):
		return 3*step + small, true
	case strings.Contains(p, typed):
		return 2*step + small, true
	}
	gaps, ok := spreadOf(p, typed)
	return step + small - 10*gaps, ok
}

// spread counts the gaps between the letters of typed in p, taking them from the
// end, where the name is.
func spreadOf(p, typed string) (gaps int, ok bool) {
	i := len(p)
	for typed != "" {
		_, n := utf8.DecodeLastRuneInString(typed)
		last := typed[len(typed)-n:]
		j := strings.LastIndex(p[:i], last)
		if j < 0 {
			return 0, false
		}
		if j+len(last) != i {
			gaps++
		}
		i = j
		typed = typed[:len(typed)-len(last)]
	}
	return gaps, true
}

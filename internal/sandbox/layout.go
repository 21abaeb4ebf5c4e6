package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/protocol"
)

// layout is which paths may be written, and which not although they lie in
// such a path. Roots are free of symbolic links.
type layout struct {
	home      string   // resolved, or empty
	roots     []string // all that may be written
	own       []string // those that the user chose: the others are for everybody
	protected []string
	missing   []string // would be protected if they existed
	notes     []string
}

func newLayout(policy protocol.SandboxPolicy, place Place) *layout {
	l := &layout{home: resolved(place.Home)}
	if policy.Mode != protocol.SandboxWorkspaceWrite {
		return l
	}

	l.addOwn("working directory", place.Cwd)
	for _, root := range policy.WritableRoots {
		l.addOwn("writable root", root)
	}
	if !policy.ExcludeSlashTmp && exists(slashTmp) {
		l.add("directory for temporary files", slashTmp)
	}
	if tmp := place.tmpdir(); tmp != "" && !policy.ExcludeTmpdirEnvVar {
		l.add("directory for temporary files", tmp)
	}
	l.protect()
	return l
}

const slashTmp = "/tmp"

// addOwn is add for a root that the user chose.
func (l *layout) addOwn(what, name string) {
	if root := l.add(what, name); root != "" && !slices.Contains(l.own, root) {
		l.own = append(l.own, root)
	}
}

// add makes name a root, if it may be one, and returns it resolved.
func (l *layout) add(what, name string) string {
	root, err := l.rootAt(name)
	if err != nil {
		l.notes = append(l.notes, fmt.Sprintf("%s %s stays read-only: %v", what, name, err))
		return ""
	}
	if !slices.Contains(l.roots, root) {
		l.roots = append(l.roots, root)
	}
	return root
}

func (l *layout) rootAt(name string) (string, error) {
	if !filepath.IsAbs(name) {
		return "", errors.New("it is not an absolute path")
	}
	root, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("it does not exist")
	}
	if err != nil {
		return "", err
	}

	if root == "/" {
		return "", errors.New("it is the whole file system")
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if within(root, dir) {
			return "", fmt.Errorf("%s belongs to the system", dir)
		}
	}
	if l.home != "" && within(root, l.home) {
		return "", errors.New("it belongs to fermata")
	}
	return root, nil
}

// protect finds what is protected in the roots.
func (l *layout) protect() {
	found := make(map[string]bool)
	for _, root := range l.roots {
		for dir := root; l.writable(dir); dir = filepath.Dir(dir) {
			for _, name := range gitPaths(dir) {
				// What the user listed by name shall be writable.
				found[name] = !slices.Contains(l.own, name)
			}
		}
	}
	if l.home != "" {
		found[l.home] = true
	}
	for name, isProtected := range found {
		if isProtected && l.writable(name) {
			l.protected = append(l.protected, name)
		}
	}
	slices.Sort(l.protected)
	for _, root := range l.own {
		if name := filepath.Join(root, ".git"); !exists(name) && isDir(root) {
			l.missing = append(l.missing, name)
		}
	}
}

// writable reports whether name is a root or lies in one.
func (l *layout) writable(name string) bool {
	return slices.ContainsFunc(l.roots, func(root string) bool { return within(name, root) })
}

// opened lists the roots in which something is protected.
func (l *layout) opened() []string {
	var list []string
	for _, root := range l.roots {
		if slices.ContainsFunc(l.protected, func(p string) bool { return within(p, root) }) {
			list = append(list, root)
		}
	}
	return list
}

// binds turns the layout into mounts, outer ones first: the roots that lie in no
// other, the protected paths, the roots inside those, and every directory on the
// way from a root to a protected path, so that none of them can be renamed and
// replaced.
func (l *layout) binds() []bind {
	write := make(map[string]bool)
	for _, root := range l.roots {
		if l.outermost(root) == root {
			write[root] = true
		}
	}
	for _, name := range l.protected {
		top := l.outermost(name)
		for dir := filepath.Dir(name); dir != top && within(dir, top); dir = filepath.Dir(dir) {
			write[dir] = !l.isProtected(dir)
		}
	}
	for _, name := range l.protected {
		write[name] = false
	}
	for _, root := range l.roots {
		if l.isProtected(root) {
			write[root] = true
		}
	}

	list := make([]bind, 0, len(write))
	for name, w := range write {
		list = append(list, bind{path(name), w})
	}
	slices.SortFunc(list, func(a, b bind) int {
		if d := strings.Count(string(a.Path), "/") - strings.Count(string(b.Path), "/"); d != 0 {
			return d
		}
		return strings.Compare(string(a.Path), string(b.Path))
	})
	return list
}

// outermost returns the outermost root that holds name, which must be in one.
func (l *layout) outermost(name string) string {
	top := ""
	for _, root := range l.roots {
		if within(name, root) && (top == "" || len(root) < len(top)) {
			top = root
		}
	}
	return top
}

// isProtected reports whether name lies in a protected path, or is one.
func (l *layout) isProtected(name string) bool {
	return slices.ContainsFunc(l.protected, func(p string) bool { return within(name, p) })
}

// within reports whether name is dir or lies in it.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// exists reports whether there is something under that name, be it a link that
// leads nowhere.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// resolved returns name without symbolic links, or nothing if it does not exist.
func resolved(name string) string {
	if name == "" {
		return ""
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil || !filepath.IsAbs(real) {
		return ""
	}
	return real
}

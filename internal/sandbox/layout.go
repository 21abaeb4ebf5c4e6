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
	homes     []string // this one and those of other runs, resolved
	guarded   []string // what fermata reads or executes, and the links to it
	roots     []string // all that may be written
	own       []string // those that the user chose: the others are for everybody
	protected []string
	missing   []string // would be protected if they existed
	notes     []string
}

func newLayout(policy protocol.SandboxPolicy, place Place) *layout {
	l := &layout{home: resolved(place.Home)}
	if policy.Mode != protocol.SandboxWorkspaceWrite {
		l.guard(place)
		return l
	}

	wanted := []candidate{{what: "working directory", name: place.Cwd, own: true}}
	for _, root := range policy.WritableRoots {
		wanted = append(wanted, candidate{what: "writable root", name: root, own: true})
	}
	if !policy.ExcludeSlashTmp && exists(slashTmp) {
		wanted = append(wanted, candidate{what: "directory for temporary files", name: slashTmp})
	}
	if tmp := place.tmpdir(); tmp != "" && !policy.ExcludeTmpdirEnvVar {
		wanted = append(wanted, candidate{what: "directory for temporary files", name: tmp})
	}
	l.findHomes(place)
	l.choose(wanted)
	l.guard(place)
	l.protect()
	return l
}

// findHomes resolves the homes that exist.
func (l *layout) findHomes(place Place) {
	l.home, l.homes = resolved(place.Home), nil
	for _, home := range place.homes() {
		if real := resolved(home); real != "" {
			l.homes = appendNew(l.homes, real)
		}
	}
}

const slashTmp = "/tmp"

// candidate is a path that may become a root.
type candidate struct {
	what, name string
	own        bool // the user chose it

	real  string   // resolved
	links []string // the directories of the symbolic links on the way
	err   error
}

// choose makes roots of the candidates that may be some.
func (l *layout) choose(wanted []candidate) {
	for i := range wanted {
		c := &wanted[i]
		c.real, c.links, c.err = l.rootAt(c.name)
	}
	for i := range wanted {
		c := &wanted[i]
		if c.err == nil {
			c.err = c.distrust(wanted)
		}
		if c.err != nil {
			l.notes = append(l.notes, fmt.Sprintf("%s %s stays read-only: %v", c.what, c.name, c.err))
			continue
		}
		l.roots = appendNew(l.roots, c.real)
		if c.own {
			l.own = appendNew(l.own, c.real)
		}
	}
}

// distrust refuses a name that leads through a symbolic link in a root: a command
// may have put it there, and choose with it what the next one may write.
func (c *candidate) distrust(all []candidate) error {
	for _, dir := range c.links {
		for _, other := range all {
			if other.real != "" && within(dir, other.real) {
				return fmt.Errorf("it leads to %s through a link in %s, where commands can write", c.real, dir)
			}
		}
	}
	return nil
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// rootAt resolves the name of a root.
func (l *layout) rootAt(name string) (real string, links []string, err error) {
	if !filepath.IsAbs(name) {
		return "", nil, errors.New("it is not an absolute path")
	}
	real, links, err = follow(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, errors.New("it does not exist")
	}
	if err != nil {
		return "", nil, err
	}

	if real == "/" {
		return "", nil, errors.New("it is the whole file system")
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if within(real, dir) {
			return "", nil, fmt.Errorf("%s belongs to the system", dir)
		}
	}
	if slices.ContainsFunc(l.homes, func(home string) bool { return within(real, home) }) {
		return "", nil, errors.New("it belongs to fermata")
	}
	return real, links, nil
}

// protect finds what is protected in the roots.
func (l *layout) protect() {
	found := make(map[string]bool)
	for _, root := range l.roots {
		// A repository that a root lies in may itself lie in another root.
		for dir := root; l.writable(dir); dir = filepath.Dir(dir) {
			names := gitPaths(dir)
			if len(names) == 0 && slices.Contains(l.own, root) && isDir(dir) {
				l.missing = appendNew(l.missing, filepath.Join(dir, ".git"))
			}
			for _, name := range names {
				// What the user listed by name shall be writable.
				found[name] = !slices.Contains(l.own, name)
			}
		}
	}
	for _, name := range l.guarded {
		found[name] = true
	}
	for name, isProtected := range found {
		if isProtected && l.writable(name) {
			l.protected = append(l.protected, name)
		}
	}
	slices.Sort(l.protected)
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

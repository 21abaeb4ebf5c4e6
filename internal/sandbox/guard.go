package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/secrets"
)

// What fermata reads or executes unconfined must not be writable for a confined
// command, now or through a name that it can change: else it would plant
// something and wait for the next run. So not only the files are protected, but
// every symbolic link on the way to them, and what does not exist yet is made
// before a command could make it.

// guard finds all that is to be protected of a place: the homes, what the links
// in them lead to, and other files. Only what lies in a root matters.
func (l *layout) guard(place Place) {
	for _, home := range place.homes() {
		l.guardPath(home, makeDir)
	}
	l.findHomes(place) // one may be new
	for _, home := range l.homes {
		for _, link := range linksIn(home) {
			l.guardPath(link, makeLike(link))
		}
	}
	for _, name := range place.Guarded {
		l.guardPath(name, nil)
	}
	for _, home := range l.homes {
		for _, name := range secrets.Home(home).Registered() { // who could change one would choose the next secret
			l.guardPath(name, nil)
		}
	}
	if l.home == "" {
		return
	}
	for _, name := range secrets.Dirs { // so that there is something to hide
		_ = os.Mkdir(filepath.Join(l.home, name), 0o700)
	}
}

// homes lists the homes of this and of other runs of fermata, in absolute form.
func (p Place) homes() []string {
	var list []string
	for _, home := range append([]string{p.Home}, p.OtherHomes...) {
		if filepath.IsAbs(home) {
			list = appendNew(list, home)
		}
	}
	return list
}

// guardPath protects what name leads to and the links on the way. A component
// that does not exist is made if a command could make it; without mk nothing is.
func (l *layout) guardPath(name string, mk func(name string, last bool) error) {
	real, links, err := walk(name, func(missing string, last bool) error {
		if mk == nil || !l.writable(missing) {
			return fs.ErrNotExist
		}
		return mk(missing, last)
	})
	for _, link := range links {
		l.guarded = appendNew(l.guarded, link)
	}
	if err == nil {
		l.guarded = appendNew(l.guarded, real)
	}
}

// Guarded lists what fermata reads or executes in a place, and the links that lead there, for those who
// write files without being confined. Nothing is made: what does not exist is listed where it would be.
func Guarded(place Place) []string {
	var list []string
	add := func(name string) string {
		real, links, err := walk(name, func(string, bool) error { return nil })
		for _, link := range links {
			list = appendNew(list, link)
		}
		if err != nil {
			return ""
		}
		list = appendNew(list, real)
		return real
	}
	for _, home := range place.homes() {
		if real := add(home); real != "" {
			for _, link := range linksIn(real) {
				add(link)
			}
		}
	}
	for _, home := range place.homes() {
		for _, name := range secrets.Home(resolved(home)).Registered() {
			add(name)
		}
	}
	for _, name := range place.Guarded {
		add(name)
	}
	return list
}

// makeDir makes a directory.
func makeDir(name string, _ bool) error { return os.Mkdir(name, 0o700) }

// makeLike makes what a link that leads nowhere is meant for: a file, if its name
// has an extension, otherwise a directory.
func makeLike(link string) func(string, bool) error {
	return func(name string, last bool) error {
		if !last || filepath.Ext(link) == "" {
			return makeDir(name, last)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		return f.Close()
	}
}

// bulky are directories of a home that only fermata writes, and in which there may be
// much: no links are looked for there.
var bulky = []string{"cache", "conversations", "drafts", "keys", "log", "queues", "run", "snapshots", "tmp", "worktrees"}

// linksIn lists the symbolic links in a home: people keep their configuration in a
// repository and link to it. What is near the top is looked at first, so that nothing
// large hides a link beside it.
func linksIn(home string) []string {
	const maxDepth, maxEntries = 4, 2000
	var links []string
	entries := 0
	dirs := []string{home}
	for depth := range maxDepth {
		var below []string
		for _, dir := range dirs {
			list, _ := os.ReadDir(dir) // what cannot be read is not read by fermata either
			for _, d := range list {
				if entries++; entries > maxEntries {
					return links
				}
				name := filepath.Join(dir, d.Name())
				switch {
				case d.Type()&fs.ModeSymlink != 0:
					links = append(links, name)
				case d.IsDir() && (depth > 0 || !slices.Contains(bulky, d.Name())):
					below = append(below, name)
				}
			}
		}
		dirs = below
	}
	return links
}

// resolvedParts resolves as much of an absolute name as exists.
func resolvedParts(name string) string {
	if !filepath.IsAbs(name) {
		return ""
	}
	rest := ""
	for dir := filepath.Clean(name); ; dir = filepath.Dir(dir) {
		if real := resolved(dir); real != "" {
			return filepath.Join(real, rest)
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// walk resolves an absolute name as the kernel does. It returns the symbolic
// links that it followed, each by its real name. For a component that does not
// exist it calls missing, with whether it is the last one, and goes on if that
// returns nil.
func walk(name string, missing func(name string, last bool) error) (real string, links []string, err error) {
	const mostLinks = 40 // as the kernel has it
	real = "/"
	rest := strings.Split(name, "/")
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}

		next := filepath.Join(real, part)
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			if err = missing(next, len(rest) == 0); err == nil {
				real = next
				continue
			}
		}
		if err != nil {
			return "", links, err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			real = next
			continue
		}

		if links = append(links, next); len(links) > mostLinks {
			return "", links, &os.PathError{Op: "follow", Path: name, Err: errLoop}
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", links, err
		}
		if filepath.IsAbs(target) {
			real = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return real, links, nil
}

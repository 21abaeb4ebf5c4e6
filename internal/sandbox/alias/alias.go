// Package alias finds the other names that files have because their file system, or a part of it, is mounted at
// several places.
package alias

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A mounted is one line of /proc/self/mountinfo.
type mounted struct {
	device string // major:minor
	root   string // what of the file system is mounted
	point  string // and where
}

// Names adds the other names of files to a list. Names in it are free of symbolic links.
func Names(list []string) []string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil { // not Linux: other systems have no mounts of a part of a file system
		return list
	}
	return among(list, parse(string(text)), sameFile)
}

// among is Names among the given mounts.
func among(list []string, mounts []mounted, same func(a, b string) bool) []string {
	all := list
	for _, name := range list {
		at := mountOf(name, mounts)
		if at == nil {
			continue
		}
		inside := filepath.Join(at.root, strings.TrimPrefix(name, strings.TrimSuffix(at.point, "/")))
		for i := range mounts {
			m := &mounts[i]
			if m.device != at.device || !within(inside, m.root) {
				continue
			}
			alias := filepath.Join(m.point, strings.TrimPrefix(inside, strings.TrimSuffix(m.root, "/")))
			if !slices.Contains(all, alias) && same(alias, name) { // nothing else is mounted above it
				all = append(all, alias)
			}
		}
	}
	return all
}

// mountOf returns the mount that a name is in: the innermost, and of those at one place the last.
func mountOf(name string, mounts []mounted) *mounted {
	var found *mounted
	for i := range mounts {
		m := &mounts[i]
		if within(name, m.point) && (found == nil || len(m.point) >= len(found.point)) {
			found = m
		}
	}
	return found
}

var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func parse(text string) []mounted {
	var list []mounted
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // id parent major:minor root point ...
		if len(f) >= 5 {
			list = append(list, mounted{f[2], unescapeMount.Replace(f[3]), unescapeMount.Replace(f[4])})
		}
	}
	return list
}

func sameFile(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}

// within reports whether name is dir or lies in it.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/protocol"
)

// Roots are the directories below which may be written without asking, and the
// places among them where it may not. All are absolute and clean. Symbolic links
// are not followed here: resolve the roots, and the paths that are compared.
type Roots struct {
	Writable  []string
	Protected []string // with all below; besides these, anything named .git
}

// Workspace returns the roots that a sandbox policy means: none unless it is
// workspace-write; then the directory of the conversation, the configured ones,
// /tmp and $TMPDIR unless they are excluded.
func Workspace(p protocol.SandboxPolicy, cwd, tmpdir string, protected ...string) Roots {
	if p.Mode != protocol.SandboxWorkspaceWrite {
		return Roots{}
	}

	var r Roots
	add := func(dir string) {
		if dir != "" && !filepath.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
		if !filepath.IsAbs(dir) {
			return // also a relative cwd: it would mean another place in every process
		}
		if dir = filepath.Clean(dir); !slices.Contains(r.Writable, dir) {
			r.Writable = append(r.Writable, dir)
		}
	}
	add(cwd)
	for _, dir := range p.WritableRoots {
		add(dir)
	}
	if !p.ExcludeSlashTmp {
		add("/tmp")
	}
	if !p.ExcludeTmpdirEnvVar && filepath.IsAbs(tmpdir) {
		add(tmpdir)
	}
	for _, dir := range protected {
		if filepath.IsAbs(dir) {
			r.Protected = append(r.Protected, filepath.Clean(dir))
		}
	}
	return r
}

// Hold reports whether path may be written without asking. What lies in a .git
// at any depth is not held: its hooks and configuration name programs that git
// runs. A path that is not absolute is never held.
func (r Roots) Hold(path string) bool {
	if !filepath.IsAbs(path) {
		return false
	}

	path = filepath.Clean(path)
	for _, dir := range r.Protected {
		// A file system that ignores case must not open a way in.
		if _, ok := below(strings.ToLower(dir), strings.ToLower(path)); ok {
			return false
		}
	}
	return slices.ContainsFunc(r.Writable, func(dir string) bool {
		rel, ok := below(dir, path)
		return ok && !strings.Contains("/"+strings.ToLower(filepath.ToSlash(rel))+"/", "/.git/")
	})
}

// below returns path as seen from dir, if it is dir or below it.
func below(dir, path string) (string, bool) {
	if path == dir {
		return ".", true
	}
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return strings.CutPrefix(path, dir)
}

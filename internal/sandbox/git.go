package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// gitPaths lists what makes dir a git repository: its .git, and where that leads
// if it is a symbolic link, or the file of a worktree or submodule. It is empty
// if dir is none.
func gitPaths(dir string) []string {
	name := filepath.Join(dir, ".git")
	info, err := os.Lstat(name)
	if err != nil {
		return nil
	}

	list := []string{name}
	if info.Mode()&os.ModeSymlink != 0 {
		name = resolved(name)
		if info, err = os.Stat(name); err != nil {
			return list
		}
		list = append(list, name)
	}
	if !info.Mode().IsRegular() {
		return list
	}

	gitdir, ok := strings.CutPrefix(firstLine(name), "gitdir: ")
	if !ok {
		return list
	}
	if gitdir = resolved(from(dir, gitdir)); gitdir == "" {
		return list
	}
	list = append(list, gitdir)
	if common := firstLine(filepath.Join(gitdir, "commondir")); common != "" {
		if common = resolved(from(gitdir, common)); common != "" {
			list = append(list, common)
		}
	}
	return list
}

// from makes name absolute.
func from(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// firstLine returns the first line of a small file, or nothing. The file may be
// anything that a command has put there, so opening it must not wait as it does
// for a pipe.
func firstLine(name string) string {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()

	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	const longest = 8 << 10 // two paths
	text, err := io.ReadAll(io.LimitReader(f, longest))
	if err != nil || len(text) == longest {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r")
}

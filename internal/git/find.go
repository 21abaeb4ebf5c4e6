package git

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNotFound means that a directory is in no working tree of a repository.
var ErrNotFound = errors.New("not in a git repository")

// A Location is where a repository keeps what. The paths are absolute.
type Location struct {
	Root   string // the working tree
	Dir    string // the git directory: HEAD and the index
	Common string // objects, references and the configuration: Dir, unless this is a linked worktree
}

// Find returns the repository whose working tree dir is in. It runs nothing, and
// knows of no other way to name a repository than a .git in a directory above.
func Find(dir string) (Location, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Location{}, err
	}
	for {
		if l, ok := at(dir); ok {
			return l, nil
		}
		if filepath.Dir(dir) == dir {
			return Location{}, ErrNotFound
		}
		dir = filepath.Dir(dir)
	}
}

// at returns the repository whose working tree begins at root.
func at(root string) (Location, bool) {
	l := Location{Root: root, Dir: filepath.Join(root, ".git")}
	info, err := os.Stat(l.Dir)
	if err != nil {
		return l, false
	}
	if info.Mode().IsRegular() { // a linked worktree or a submodule
		text, err := readSmall(l.Dir)
		rest, ok := strings.CutPrefix(text, "gitdir: ")
		if err != nil || !ok {
			return l, false
		}
		l.Dir = join(root, rest)
	}
	l.Common = l.Dir
	if text, err := readSmall(filepath.Join(l.Dir, "commondir")); err == nil {
		l.Common = join(l.Dir, text)
	}
	_, err = readSmall(filepath.Join(l.Dir, "HEAD"))
	objects, objectsErr := os.Stat(filepath.Join(l.Common, "objects"))
	return l, err == nil && objectsErr == nil && objects.IsDir()
}

func join(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// smallMax is more than any of the files that name something else has.
const smallMax = 64 << 10

// readSmall reads a file that holds a name, without the line feed at its end. A
// pipe or a device in its place fails at once.
func readSmall(name string) (string, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("read %s: not a regular file", name)
	}
	text, err := io.ReadAll(io.LimitReader(f, smallMax))
	return strings.TrimRight(string(text), "\r\n"), err
}

// Branch returns the name of the branch that dir is on, or the beginning of the
// commit, or nothing. It runs nothing.
func Branch(dir string) string {
	l, err := Find(dir)
	if err != nil {
		return ""
	}
	head, err := readSmall(filepath.Join(l.Dir, "HEAD"))
	if err != nil {
		return ""
	}
	ref, ok := strings.CutPrefix(head, "ref: ")
	if !ok {
		return head[:min(len(head), shortHash)]
	}
	if ref == invalidHead {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(ref), "refs/heads/")
}

const (
	shortHash   = 7
	invalidHead = "refs/heads/.invalid" // the references are in another format, and so is HEAD
)

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// movedSuffix and a number are behind the name of what was moved away.
const movedSuffix = ".moved"

// A NotRegularError says that something else than a regular file is in the place of one. It is not opened: what a
// symbolic link leads to can be anything, and reading a pipe or a device may never end.
type NotRegularError struct {
	Path string
	Mode fs.FileMode
}

func (e *NotRegularError) Error() string {
	if e.Mode.Type() == fs.ModeSymlink {
		return e.Path + " is a symbolic link, not a file: fermata fsck --repair puts a copy of what it leads to in its place"
	}
	return fmt.Sprintf("%s is %s, not a file: move it away", e.Path, e.kind())
}

func (e *NotRegularError) kind() string {
	switch e.Mode.Type() {
	case fs.ModeDir:
		return "a directory"
	case fs.ModeNamedPipe:
		return "a named pipe"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}

// Open opens a file, or returns a *NotRegularError if something else is in its place.
func Open(fsys FS, name string, flag int, perm fs.FileMode) (File, error) {
	f, err := fsys.OpenFile(name, flag, perm)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if st, lstatErr := fsys.Lstat(name); lstatErr == nil && !st.Mode().IsRegular() {
		return nil, &NotRegularError{Path: name, Mode: st.Mode()}
	}
	return nil, err
}

// MaxMoved is how many things can be moved out of the way of one file.
const MaxMoved = 9

// MovedPath is where they are moved to.
func MovedPath(path string, n int) string { return fmt.Sprintf("%s%s%d", path, movedSuffix, n) }

// OpenBeside opens a file beside a journal that only fermata writes, and makes it if it is not there. Such a
// file must not keep a conversation from being opened: what is in its place and is not a regular file is moved away.
func OpenBeside(fsys FS, path string, flag int) (File, error) {
	f, err := Open(fsys, path, flag|os.O_CREATE, 0o600)
	var other *NotRegularError
	if !errors.As(err, &other) {
		return f, err
	}
	for n := range MaxMoved {
		to := MovedPath(path, n+1)
		if _, lstatErr := fsys.Lstat(to); !errors.Is(lstatErr, fs.ErrNotExist) {
			continue
		}
		if err := fsys.Rename(path, to); err != nil {
			return nil, err
		}
		return Open(fsys, path, flag|os.O_CREATE, 0o600)
	}
	return nil, err
}

// maxLinks is how many links one after the other are followed.
const maxLinks = 8

// Follow opens the file that a link leads to.
func Follow(fsys FS, path string) (File, error) {
	for range maxLinks {
		to, err := fsys.Readlink(path)
		if err != nil {
			return nil, err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		f, err := Open(fsys, to, os.O_RDONLY, 0)
		var other *NotRegularError
		if !errors.As(err, &other) || other.Mode.Type() != fs.ModeSymlink {
			return f, err
		}
		path = to
	}
	return nil, errors.New("too many links one after the other")
}

package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

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

// openFile opens a file, or returns a *NotRegularError if something else is in its place.
func openFile(fsys FS, name string, flag int, perm fs.FileMode) (File, error) {
	f, err := fsys.OpenFile(name, flag, perm)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if st, lstatErr := fsys.Lstat(name); lstatErr == nil && !st.Mode().IsRegular() {
		return nil, &NotRegularError{Path: name, Mode: st.Mode()}
	}
	return nil, err
}

// maxMoved is how many things can be moved out of the way of one file.
const maxMoved = 9

// movedPath is where they are moved to.
func movedPath(path string, n int) string { return fmt.Sprintf("%s%s%d", path, movedSuffix, n) }

// openBeside opens a file beside a journal that only fermata writes, and makes it if it is not there. Such a
// file must not keep a conversation from being opened: what is in its place and is not a regular file is moved away.
func openBeside(fsys FS, path string, flag int) (File, error) {
	f, err := openFile(fsys, path, flag|os.O_CREATE, 0o600)
	var other *NotRegularError
	if !errors.As(err, &other) {
		return f, err
	}
	for n := range maxMoved {
		to := movedPath(path, n+1)
		if _, lstatErr := fsys.Lstat(to); !errors.Is(lstatErr, fs.ErrNotExist) {
			continue
		}
		if err := fsys.Rename(path, to); err != nil {
			return nil, err
		}
		return openFile(fsys, path, flag|os.O_CREATE, 0o600)
	}
	return nil, err
}

// maxLinks is how many links one after the other are followed.
const maxLinks = 8

// replaceLink puts a copy of the file that a link leads to in the link's place, if a conversation's journal is
// one. That file is left as it is.
func (s *Store) replaceLink(ctx context.Context, id string) error {
	path, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	if st, err := s.fs.Lstat(path); err != nil || st.Mode().Type() != fs.ModeSymlink {
		return err
	}
	l, err := lock(s.fs, path+lockSuffix, s.self())
	if err != nil {
		return err
	}
	defer l.release()
	from, err := s.follow(path)
	if err != nil {
		return fmt.Errorf("%s is a symbolic link that leads to no file: %w", path, err)
	}
	defer from.Close()
	if err := from.Lock(); err != nil {
		return fmt.Errorf("lock what %s leads to: %w", path, err)
	}
	st, err := from.Stat()
	if err != nil {
		return err
	}
	to, err := s.replace(path, func(to File) error {
		_, err := io.Copy(to, io.NewSectionReader(from, 0, st.Size()))
		return err
	})
	if err != nil {
		return err
	}
	return to.Close()
}

// follow opens the file that a link leads to.
func (s *Store) follow(path string) (File, error) {
	for range maxLinks {
		to, err := s.fs.Readlink(path)
		if err != nil {
			return nil, err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		f, err := openFile(s.fs, to, os.O_RDONLY, 0)
		var other *NotRegularError
		if !errors.As(err, &other) || other.Mode.Type() != fs.ModeSymlink {
			return f, err
		}
		path = to
	}
	return nil, errors.New("too many links one after the other")
}

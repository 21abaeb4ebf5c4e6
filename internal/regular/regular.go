// Package regular opens files of which only regular ones make sense: settings, keys, drafts, whatever fermata keeps
// or reads by a fixed name. Anything else in their place is an error at once. Package os would wait for the other end of a named
// pipe, and read a device for ever.
//
// Links are followed: people link their settings. Nothing here is for a file that a person names on the command line,
// which may well be a pipe.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ErrNotRegular means that something is a directory, a device, a pipe or a socket.
var ErrNotRegular = errors.New("not a regular file")

// maxBytes is more than any such file has.
const maxBytes = 256 << 20

// Open opens a file for reading.
func Open(name string) (*os.File, error) { return OpenFile(name, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile for a regular file.
func OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NONBLOCK, perm)
	if errors.Is(err, syscall.ENXIO) { // a pipe without a reader, a socket
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadFile is os.ReadFile for a regular file of a reasonable size.
func ReadFile(name string) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, maxBytes)
}

// ErrTooLarge means that a file is larger than it can be if it is what its name says.
var ErrTooLarge = errors.New("the file is too large")

// readAll reads a file of at most limit bytes. A larger one is an error before anything is read; the rest of one that grows
// meanwhile is not left out in silence.
func readAll(f *os.File, limit int64) ([]byte, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var data []byte
	if st.Size() <= limit {
		data, err = io.ReadAll(io.LimitReader(f, limit+1))
	}
	if err == nil && max(st.Size(), int64(len(data))) > limit {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)}
	}
	return data, err
}

// WriteFile is os.WriteFile for a regular file.
func WriteFile(name string, data []byte, perm fs.FileMode) error {
	f, err := OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Replace writes a file whole or not at all: whoever reads it, also after a crash, finds the old text or the new one.
func Replace(name string, data []byte, perm fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // when it has its name this finds nothing
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// OpenDir opens a directory.
func OpenDir(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
}

// ReadDir is os.ReadDir for a directory.
func ReadDir(name string) ([]fs.DirEntry, error) {
	d, err := OpenDir(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

package patch

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links one path may lead through, as in Linux.
const maxLinks = 40

// resolver finds out which file a path means, the way the system would: one
// component after the other, following symbolic links, and taking ".." from
// where the links led. Missing components are taken as they are.
type resolver struct {
	lstat    func(path string) (fs.FileInfo, error)
	readlink func(path string) (string, error)
}

// file resolves the whole path; a link at its end is followed.
func (r resolver) file(path string) (string, error) {
	return r.walk(path, true)
}

// entry resolves all but the last component: the result names what is in the
// directory, be it a link.
func (r resolver) entry(path string) (string, error) {
	return r.walk(path, false)
}

func (r resolver) walk(path string, followLast bool) (string, error) {
	at := "/"
	rest := strings.Split(path, "/")
	links := 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		info, err := r.lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			at = next
		case err != nil:
			return "", err
		case info.Mode().Type() == fs.ModeSymlink && (followLast || len(rest) > 0):
			if links++; links > maxLinks {
				return "", &fs.PathError{Op: "resolve", Path: path, Err: syscall.ELOOP}
			}
			target, err := r.readlink(next)
			if err != nil {
				return "", err
			}
			if filepath.IsAbs(target) {
				at = "/"
			}
			rest = append(strings.Split(target, "/"), rest...)
		case len(rest) > 0 && !info.IsDir():
			return "", fmt.Errorf("%s is not a directory", next)
		default:
			at = next
		}
	}
	return at, nil
}

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// follow resolves an absolute name as filepath.EvalSymlinks does, and tells in
// which directories the symbolic links were that it followed.
func follow(name string) (real string, links []string, err error) {
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
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			real = next
			continue
		}

		if links = append(links, real); len(links) > mostLinks {
			return "", nil, &os.PathError{Op: "follow", Path: name, Err: syscall.ELOOP}
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(target) {
			real = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return real, links, nil
}

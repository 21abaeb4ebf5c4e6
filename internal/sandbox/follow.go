package sandbox

import (
	"path/filepath"
	"syscall"
)

const errLoop = syscall.ELOOP

// follow resolves an absolute name as filepath.EvalSymlinks does, and tells in
// which directories the symbolic links were that it followed.
func follow(name string) (real string, links []string, err error) {
	real, links, err = walk(name, func(string, bool) error { return syscall.ENOENT })
	if err != nil {
		return "", nil, err
	}
	for i, link := range links {
		links[i] = filepath.Dir(link)
	}
	return real, links, nil
}

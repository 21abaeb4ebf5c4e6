package patch

import (
	"io/fs"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"
)

// Mem is a file system in memory, for tests and for trying a patch out. The
// root directory exists from the start. It is not safe for concurrent use.
type Mem struct {
	nodes map[string]*node // by absolute path; two paths may share a node
}

var _ FS = (*Mem)(nil)

// node is a file, a directory or a symbolic link.
type node struct {
	mode fs.FileMode // type bits as well
	data string      // content, or where a link points
}

// NewMem returns a file system that holds the given files and their parent
// directories.
func NewMem(files map[string]string) *Mem {
	m := &Mem{nodes: map[string]*node{"/": {mode: fs.ModeDir | 0o777}}}
	for path, data := range files {
		m.Put(path, data, 0o644)
	}
	return m
}

// Put writes a file, over whatever is there, and makes its parents. A mode with
// fs.ModeSymlink makes a link that points to data, one with fs.ModeDir a
// directory.
func (m *Mem) Put(path, data string, mode fs.FileMode) {
	for dir := filepath.Dir(path); m.nodes[dir] == nil; dir = filepath.Dir(dir) {
		m.nodes[dir] = &node{mode: fs.ModeDir | 0o777}
	}
	m.nodes[path] = &node{mode: mode, data: data}
}

// Paths returns all paths in order, the root apart.
func (m *Mem) Paths() []string {
	var paths []string
	for path := range m.nodes {
		if path != "/" {
			paths = append(paths, path)
		}
	}
	sort.Strings(paths)
	return paths
}

func (m *Mem) get(op, path string) (*node, error) {
	n := m.nodes[path]
	if n == nil {
		return nil, &fs.PathError{Op: op, Path: path, Err: syscall.ENOENT}
	}
	return n, nil
}

// room checks that something new can be made at the path.
func (m *Mem) room(op, path string) error {
	if m.nodes[path] != nil {
		return &fs.PathError{Op: op, Path: path, Err: syscall.EEXIST}
	}
	parent, err := m.get(op, filepath.Dir(path))
	if err != nil {
		return err
	}
	if !parent.mode.IsDir() {
		return &fs.PathError{Op: op, Path: path, Err: syscall.ENOTDIR}
	}
	return nil
}

// Lstat returns the kind, size and mode of what is at the path.
func (m *Mem) Lstat(path string) (fs.FileInfo, error) {
	n, err := m.get("lstat", path)
	if err != nil {
		return nil, err
	}
	return memInfo{filepath.Base(path), *n}, nil
}

// Readlink returns where a link points.
func (m *Mem) Readlink(path string) (string, error) {
	n, err := m.get("readlink", path)
	if err != nil {
		return "", err
	}
	if n.mode.Type() != fs.ModeSymlink {
		return "", &fs.PathError{Op: "readlink", Path: path, Err: syscall.EINVAL}
	}
	return n.data, nil
}

// ReadFile returns the content of a file.
func (m *Mem) ReadFile(path string) ([]byte, error) {
	n, err := m.get("open", path)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	return []byte(n.data), nil
}

// Create makes a file. The default mode is 0644; there are no owners.
func (m *Mem) Create(path string, data []byte, mode fs.FileMode, _ string) error {
	if err := m.room("create", path); err != nil {
		return err
	}
	if mode == 0 {
		mode = 0o644
	}
	m.nodes[path] = &node{mode: mode.Perm(), data: string(data)}
	return nil
}

// Symlink makes a link.
func (m *Mem) Symlink(target, path string) error {
	if err := m.room("symlink", path); err != nil {
		return err
	}
	m.nodes[path] = &node{mode: fs.ModeSymlink | 0o777, data: target}
	return nil
}

// Link gives a file a second name.
func (m *Mem) Link(path, link string) error {
	n, err := m.get("link", path)
	if err != nil {
		return err
	}
	if err := m.room("link", link); err != nil {
		return err
	}
	m.nodes[link] = n
	return nil
}

// Mkdir makes a directory.
func (m *Mem) Mkdir(path string) error {
	if err := m.room("mkdir", path); err != nil {
		return err
	}
	m.nodes[path] = &node{mode: fs.ModeDir | 0o755}
	return nil
}

// Rename moves a file or a link, over another one if need be. As the standard
// has it, renaming a file to another name of the same file does nothing.
func (m *Mem) Rename(from, to string) error {
	n, err := m.get("rename", from)
	if err != nil {
		return err
	}
	switch over := m.nodes[to]; {
	case over == n:
		return nil
	case over != nil && over.mode.IsDir():
		return &fs.PathError{Op: "rename", Path: to, Err: syscall.EISDIR}
	case over == nil:
		if err := m.room("rename", to); err != nil {
			return err
		}
	}
	m.nodes[to] = n
	delete(m.nodes, from)
	return nil
}

// Remove removes a file, a link or an empty directory.
func (m *Mem) Remove(path string) error {
	n, err := m.get("remove", path)
	if err != nil {
		return err
	}
	if n.mode.IsDir() {
		for other := range m.nodes {
			if strings.HasPrefix(other, path+"/") {
				return &fs.PathError{Op: "remove", Path: path, Err: syscall.ENOTEMPTY}
			}
		}
	}
	delete(m.nodes, path)
	return nil
}

// SyncDir only checks that there is such a directory.
func (m *Mem) SyncDir(path string) error {
	_, err := m.get("sync", path)
	return err
}

type memInfo struct {
	name string
	node
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return int64(len(i.data)) }
func (i memInfo) Mode() fs.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return nil }

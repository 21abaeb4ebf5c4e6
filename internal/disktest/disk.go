// Package disktest is a file system in memory that knows what a power cut would
// leave of it. It is one model for all code whose files have to survive one:
//
//   - What was written to a file is durable after [File.Sync], not before. Of the
//     rest a power cut keeps a part: some of the writes, half of one, zeros in the
//     place of some.
//   - What was done to names (create, link, mkdir, rename, remove) is durable after
//     [Disk.SyncDir] of each directory concerned, not before. Of the rest a power cut
//     keeps any part. A rename happens whole or not at all.
//   - A process that is killed loses nothing but its locks.
//
// A test runs the code over a [Disk] whose Hook kills the process, or fails, at one
// operation after the other, and looks at what [Disk.PowerCut] or [Disk.Reopen] finds.
package disktest

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrKilled is what every operation returns after Kill.
var ErrKilled = errors.New("the process was killed")

// An Op is an operation that changes the disk or makes a change durable.
type Op struct {
	Name string // create, write, truncate, chmod, sync, symlink, link, mkdir, rename, remove, syncdir
	Path string
	To   string // of a rename, a link
	Size int    // of a write
}

// A Disk is a file system as one process sees it. Paths are absolute and have no
// links but in their last component. All methods may be called from any goroutine.
type Disk struct {
	// Hook is called before each operation, if it is set: an error from it is the
	// operation's error. It may wait, fail, or kill the process.
	Hook func(Op) error

	disk   *platter
	mu     sync.Mutex
	killed bool
}

// A platter is what several processes can use one after the other.
type platter struct {
	mu      sync.Mutex
	names   map[string]*node // as programs see it; two names may be of one node
	durable map[string]*node // as it is on disk
	changes []*change        // what leads from the one to the other, in order
}

// A node is a file, a directory or a symbolic link. It is guarded by the platter's mutex.
type node struct {
	mode     fs.FileMode // type bits as well
	data     []byte      // content, or where a link points
	synced   []byte      // content that is durable
	written  int         // how many writes that was
	writes   []write     // those since
	modified time.Time
	lock     *File // whoever has locked it
}

// New returns an empty disk with a root directory.
func New() *Disk {
	root := map[string]*node{"/": {mode: fs.ModeDir | 0o777}}
	return &Disk{disk: &platter{names: root, durable: maps.Clone(root)}}
}

// Put writes a file, over whatever is there, and makes its parents; all of it is
// durable. A mode with fs.ModeSymlink makes a link that points to data, one with
// fs.ModeDir a directory.
func (d *Disk) Put(path, data string, mode fs.FileMode) {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	for dir := filepath.Dir(path); d.disk.names[dir] == nil; dir = filepath.Dir(dir) {
		d.disk.set(dir, &node{mode: fs.ModeDir | 0o777, modified: time.Now()})
	}
	d.disk.set(path, &node{mode: mode, data: []byte(data), synced: []byte(data), modified: time.Now()})
}

// Drop removes a name, durably.
func (d *Disk) Drop(path string) {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	d.disk.set(path, nil)
}

// Paths returns all paths in order, the root apart.
func (d *Disk) Paths() []string {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	paths := slices.Sorted(maps.Keys(d.disk.names))
	return slices.DeleteFunc(paths, func(p string) bool { return p == "/" })
}

// Clone returns a disk of its own that has the same on it, all of it durable.
func (d *Disk) Clone() *Disk {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	copies := make(map[*node]*node)
	p := &platter{names: make(map[string]*node)}
	for path, n := range d.disk.names {
		if copies[n] == nil {
			copies[n] = &node{mode: n.mode, data: slices.Clone(n.data), synced: slices.Clone(n.data), modified: n.modified}
		}
		p.names[path] = copies[n]
	}
	p.durable = maps.Clone(p.names)
	return &Disk{disk: p}
}

// Kill ends the process: nothing that uses this Disk works any more, and its
// locks are free.
func (d *Disk) Kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.killed = true
}

// Killed reports whether the process was killed.
func (d *Disk) Killed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.killed
}

// Reopen returns the disk as the next process sees it.
func (d *Disk) Reopen() *Disk { return &Disk{disk: d.disk} }

// do runs an operation, if nothing prevents it, with the platter's mutex.
func (d *Disk) do(op Op, run func() error) error {
	if err := d.before(op); err != nil {
		return err
	}
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	return run()
}

// before calls the hook.
func (d *Disk) before(op Op) error {
	if d.Killed() {
		return ErrKilled
	}
	if d.Hook != nil {
		if err := d.Hook(op); err != nil {
			return err
		}
	}
	if d.Killed() {
		return ErrKilled
	}
	return nil
}

// look runs an operation that changes nothing.
func (d *Disk) look(run func() error) error {
	if d.Killed() {
		return ErrKilled
	}
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	return run()
}

func fail(op, path string, err error) error { return &fs.PathError{Op: op, Path: path, Err: err} }

func (p *platter) get(op, path string) (*node, error) {
	n := p.names[path]
	if n == nil {
		return nil, fail(op, path, syscall.ENOENT)
	}
	return n, nil
}

// room checks that something new can be made at the path.
func (p *platter) room(op, path string) error {
	if p.names[path] != nil {
		return fail(op, path, syscall.EEXIST)
	}
	parent, err := p.get(op, filepath.Dir(path))
	if err != nil {
		return err
	}
	if !parent.mode.IsDir() {
		return fail(op, path, syscall.ENOTDIR)
	}
	return nil
}

// Lstat returns the kind, size and mode of what is at the path.
func (d *Disk) Lstat(path string) (info fs.FileInfo, err error) {
	err = d.look(func() error {
		n, err := d.disk.get("lstat", path)
		if err == nil {
			info = n.info(path)
		}
		return err
	})
	return info, err
}

// ReadDir returns what is in a directory, sorted by name.
func (d *Disk) ReadDir(path string) (entries []fs.DirEntry, err error) {
	err = d.look(func() error {
		n, err := d.disk.get("open", path)
		if err != nil {
			return err
		}
		if !n.mode.IsDir() {
			return fail("readdirent", path, syscall.ENOTDIR)
		}
		for name, n := range d.disk.names {
			if name != "/" && filepath.Dir(name) == path {
				entries = append(entries, fs.FileInfoToDirEntry(n.info(name)))
			}
		}
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return nil
	})
	return entries, err
}

// Readlink returns where a link points.
func (d *Disk) Readlink(path string) (to string, err error) {
	err = d.look(func() error {
		n, err := d.disk.get("readlink", path)
		if err != nil {
			return err
		}
		if n.mode.Type() != fs.ModeSymlink {
			return fail("readlink", path, syscall.EINVAL)
		}
		to = string(n.data)
		return nil
	})
	return to, err
}

// ReadFile returns the content of a file.
func (d *Disk) ReadFile(path string) (data []byte, err error) {
	err = d.look(func() error {
		n, err := d.disk.get("open", path)
		if err != nil {
			return err
		}
		if !n.mode.IsRegular() {
			return fail("read", path, syscall.EISDIR)
		}
		data = slices.Clone(n.data)
		return nil
	})
	return data, err
}

// Symlink makes a link.
func (d *Disk) Symlink(target, path string) error {
	return d.do(Op{Name: "symlink", Path: path}, func() error {
		if err := d.disk.room("symlink", path); err != nil {
			return err
		}
		n := &node{mode: fs.ModeSymlink | 0o777, data: []byte(target), synced: []byte(target), modified: time.Now()}
		d.disk.change(&change{node: n, to: path})
		return nil
	})
}

// Link gives a file a second name.
func (d *Disk) Link(path, link string) error {
	return d.do(Op{Name: "link", Path: path, To: link}, func() error {
		n, err := d.disk.get("link", path)
		if err != nil {
			return err
		}
		if err := d.disk.room("link", link); err != nil {
			return err
		}
		d.disk.change(&change{node: n, to: link})
		return nil
	})
}

// Mkdir makes a directory.
func (d *Disk) Mkdir(path string, perm fs.FileMode) error {
	return d.do(Op{Name: "mkdir", Path: path}, func() error {
		if err := d.disk.room("mkdir", path); err != nil {
			return err
		}
		d.disk.change(&change{node: &node{mode: fs.ModeDir | perm.Perm(), modified: time.Now()}, to: path})
		return nil
	})
}

// Rename moves a file or a link, over another one if there is one. As POSIX has
// it, renaming a file to another name of the same file does nothing.
func (d *Disk) Rename(from, to string) error {
	return d.do(Op{Name: "rename", Path: from, To: to}, func() error {
		n, err := d.disk.get("rename", from)
		if err != nil {
			return err
		}
		switch over := d.disk.names[to]; {
		case over == n:
			return nil
		case over != nil && over.mode.IsDir():
			return fail("rename", to, syscall.EISDIR)
		case over == nil:
			if err := d.disk.room("rename", to); err != nil {
				return err
			}
		}
		d.disk.change(&change{node: n, from: from, to: to})
		return nil
	})
}

// Remove removes a file, a link or an empty directory.
func (d *Disk) Remove(path string) error {
	return d.do(Op{Name: "remove", Path: path}, func() error {
		n, err := d.disk.get("remove", path)
		if err != nil {
			return err
		}
		if n.mode.IsDir() && !empty(d.disk.names, path) {
			return fail("remove", path, syscall.ENOTEMPTY)
		}
		d.disk.change(&change{node: n, from: path})
		return nil
	})
}

// SyncDir makes the names in a directory durable.
func (d *Disk) SyncDir(path string) error {
	return d.do(Op{Name: "syncdir", Path: path}, func() error {
		if _, err := d.disk.get("sync", path); err != nil {
			return err
		}
		d.disk.sync(path)
		return nil
	})
}

func empty(names map[string]*node, dir string) bool {
	for name := range names {
		if strings.HasPrefix(name, dir+"/") {
			return false
		}
	}
	return true
}

// An info is what a node was when it was looked at.
type info struct {
	name     string
	mode     fs.FileMode
	size     int64
	modified time.Time
	node     *node
}

func (n *node) info(path string) info {
	return info{filepath.Base(path), n.mode, int64(len(n.data)), n.modified, n}
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.modified }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }

// SameFile is os.SameFile for what Lstat and File.Stat return.
func SameFile(a, b fs.FileInfo) bool {
	x, ok := a.(info)
	y, also := b.(info)
	if ok && also {
		return x.node == y.node
	}
	return os.SameFile(a, b)
}

package disktest

import (
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

// A File is an open file of a Disk.
type File struct {
	path   string
	flag   int
	disk   *Disk
	node   *node
	at     int64         // where Write writes; guarded by the platter's mutex
	closed chan struct{} // closed by Close
}

// A write is a change of a file's content.
type write struct {
	at       int64
	data     []byte
	truncate bool // at that offset; there is no data
}

// OpenFile is like os.OpenFile.
func (d *Disk) OpenFile(path string, flag int, perm fs.FileMode) (*File, error) {
	f := &File{path: path, flag: flag, disk: d, closed: make(chan struct{})}
	open := func() error {
		n, err := d.disk.open(path, flag, perm)
		f.node = n
		return err
	}
	run := d.look
	if flag&os.O_CREATE != 0 && !d.Exists(path) || flag&os.O_TRUNC != 0 {
		run = func(open func() error) error { return d.do(Op{Name: "create", Path: path}, open) }
	}
	if err := run(open); err != nil {
		return nil, err
	}
	return f, nil
}

// Exists reports whether there is something at the path.
func (d *Disk) Exists(path string) bool {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	return d.disk.names[path] != nil
}

func (p *platter) open(path string, flag int, perm fs.FileMode) (*node, error) {
	n := p.names[path]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, fail("open", path, syscall.ENOENT)
	case n != nil && flag&os.O_EXCL != 0:
		return nil, fail("open", path, syscall.EEXIST)
	case n != nil && n.mode.IsDir():
		return nil, fail("open", path, syscall.EISDIR)
	case n != nil && n.mode.Type() == fs.ModeSymlink:
		return nil, fail("open", path, syscall.ELOOP)
	case n != nil:
		if flag&os.O_TRUNC != 0 {
			n.write(write{truncate: true})
		}
		return n, nil
	}
	if err := p.room("open", path); err != nil {
		return nil, err
	}
	n = &node{mode: perm.Perm(), modified: time.Now()}
	p.change(&change{node: n, to: path})
	return n, nil
}

// write changes what programs see.
func (n *node) write(w write) {
	n.data = w.apply(n.data)
	n.writes = append(n.writes, w)
	n.modified = time.Now()
}

func (w write) apply(data []byte) []byte {
	end := w.at + int64(len(w.data))
	if w.truncate || end > int64(len(data)) {
		data = resize(data, end)
	}
	copy(data[w.at:], w.data)
	return data
}

// resize cuts data, or fills it with zeros.
func resize(data []byte, size int64) []byte {
	if int64(len(data)) >= size {
		return data[:size:size]
	}
	return append(data, make([]byte, size-int64(len(data)))...)
}

// alive reports whether the file is open and its process lives.
func (f *File) alive() error {
	select {
	case <-f.closed:
		return fail("use", f.path, os.ErrClosed)
	default:
	}
	if f.disk.Killed() {
		return ErrKilled
	}
	return nil
}

// Write writes at the end of the file if it was opened with O_APPEND, else where
// the last Write ended. If the hook fails, nothing is written.
func (f *File) Write(b []byte) (int, error) {
	if err := f.alive(); err != nil {
		return 0, err
	}
	if f.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return 0, fail("write", f.path, syscall.EBADF)
	}
	err := f.disk.do(Op{Name: "write", Path: f.path, Size: len(b)}, func() error {
		if f.flag&os.O_APPEND != 0 {
			f.at = int64(len(f.node.data))
		}
		f.node.write(write{at: f.at, data: slices.Clone(b)})
		f.at += int64(len(b))
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// WriteAt writes at an offset.
func (f *File) WriteAt(b []byte, at int64) (int, error) {
	if err := f.alive(); err != nil {
		return 0, err
	}
	err := f.disk.do(Op{Name: "write", Path: f.path, Size: len(b)}, func() error {
		f.node.write(write{at: at, data: slices.Clone(b)})
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// ReadAt is like that of os.File.
func (f *File) ReadAt(b []byte, at int64) (n int, err error) {
	if err := f.alive(); err != nil {
		return 0, err
	}
	err = f.disk.look(func() error {
		if at < int64(len(f.node.data)) {
			n = copy(b, f.node.data[at:])
		}
		if n < len(b) {
			return io.EOF
		}
		return nil
	})
	return n, err
}

// Truncate changes the size of the file.
func (f *File) Truncate(size int64) error {
	if err := f.alive(); err != nil {
		return err
	}
	return f.disk.do(Op{Name: "truncate", Path: f.path}, func() error {
		f.node.write(write{at: size, truncate: true})
		return nil
	})
}

// Chmod changes the mode of the file. That is durable at once: nothing depends on it.
func (f *File) Chmod(mode fs.FileMode) error {
	if err := f.alive(); err != nil {
		return err
	}
	return f.disk.do(Op{Name: "chmod", Path: f.path}, func() error {
		f.node.mode = f.node.mode.Type() | mode.Perm()
		return nil
	})
}

// Sync makes durable what was written before it was called.
func (f *File) Sync() error { return f.SyncAfter(nil) }

// SyncAfter is Sync that takes as long as wait does, and fails if wait does.
func (f *File) SyncAfter(wait func() error) error {
	if err := f.alive(); err != nil {
		return err
	}
	f.disk.disk.mu.Lock()
	data, count := slices.Clone(f.node.data), f.node.written+len(f.node.writes)
	f.disk.disk.mu.Unlock()
	if wait != nil {
		if err := wait(); err != nil {
			return err
		}
	}
	return f.disk.do(Op{Name: "sync", Path: f.path}, func() error {
		if err := f.alive(); err != nil {
			return err
		}
		if n := count - f.node.written; n > 0 { // else a sync that began later has ended before
			f.node.synced, f.node.written = data, count
			f.node.writes = slices.Clone(f.node.writes[n:])
		}
		return nil
	})
}

// Stat returns what Lstat would, of the open file.
func (f *File) Stat() (i fs.FileInfo, err error) {
	if err := f.alive(); err != nil {
		return nil, err
	}
	err = f.disk.look(func() error {
		i = f.node.info(f.path)
		return nil
	})
	return i, err
}

// Lock takes the file's advisory lock, which lasts until it is closed or its
// process is killed. If another process has it, the error is syscall.EWOULDBLOCK.
func (f *File) Lock() error {
	if err := f.alive(); err != nil {
		return err
	}
	return f.disk.look(func() error {
		if o := f.node.lock; o != nil && o != f && o.alive() == nil {
			return fail("lock", f.path, syscall.EWOULDBLOCK)
		}
		f.node.lock = f
		return nil
	})
}

// Close releases the file and its lock.
func (f *File) Close() error {
	f.disk.disk.mu.Lock()
	defer f.disk.disk.mu.Unlock()
	select {
	case <-f.closed:
		return fail("close", f.path, os.ErrClosed)
	default:
	}
	close(f.closed)
	return nil
}

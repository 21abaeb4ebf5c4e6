package watch

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// A notifier has the kernel report what happens in directories (inotify). A nil notifier works and reports
// nothing. All fields are guarded by Watcher.mu.
type notifier struct {
	watcher *Watcher
	file    *os.File
	fd      int
	dirs    map[string]*reported
	names   map[int32]string // the directories by the number that the kernel uses
}

// reported is a directory of which the kernel reports.
type reported struct {
	number int32
	files  int // how many in it are watched
}

// newNotifier returns nil if there is none to be had, because too many are in use.
func newNotifier(c *Watcher) *notifier {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	n := &notifier{watcher: c, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), dirs: make(map[string]*reported), names: make(map[int32]string)}
	go n.run() // ended by close
	return n
}

// add has the kernel report of one more file in a directory.
func (n *notifier) add(dir string) bool {
	if n == nil {
		return false
	}
	d := n.dirs[dir]
	if d == nil {
		if changesElsewhere(dir) {
			return false
		}
		const mask = unix.IN_MODIFY | unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
		number, err := unix.InotifyAddWatch(n.fd, dir, mask)
		if err != nil { // perhaps too many are watched
			return false
		}
		if _, known := n.names[int32(number)]; known { // by another name: two names cannot have one number
			return false
		}
		d = &reported{number: int32(number)}
		n.dirs[dir], n.names[d.number] = d, dir
	}
	d.files++
	return true
}

// changesElsewhere reports whether a directory is on a file system that others can change without this kernel's knowledge.
func changesElsewhere(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return true
	}
	const lustre, gpfs, beegfs = 0x0bd00bd0, 0x47504653, 0x19830326
	return slices.Contains([]int64{
		unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC,
		unix.V9FS_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC,
		lustre, gpfs, beegfs,
	}, int64(st.Type))
}

// remove undoes one add.
func (n *notifier) remove(dir string) {
	if n == nil || n.dirs[dir] == nil {
		return
	}
	d := n.dirs[dir]
	if d.files--; d.files > 0 {
		return
	}
	_, _ = unix.InotifyRmWatch(n.fd, uint32(d.number)) // the kernel may have done so: the directory is gone
	delete(n.dirs, dir)
	delete(n.names, d.number)
}

func (n *notifier) close() { _ = n.file.Close() }

// run passes on what the kernel reports.
func (n *notifier) run() {
	buf := make([]byte, 64<<10)
	for {
		size, err := n.file.Read(buf)
		if err != nil {
			return
		}
		n.watcher.mu.Lock()
		for rest := buf[:size]; len(rest) >= unix.SizeofInotifyEvent; {
			head := binary.NativeEndian
			number, mask, length := int32(head.Uint32(rest)), head.Uint32(rest[4:]), int(head.Uint32(rest[12:])) // see inotify(7)
			end := unix.SizeofInotifyEvent + length
			name, _, _ := bytes.Cut(rest[unix.SizeofInotifyEvent:end], []byte{0})
			n.happened(number, mask, string(name))
			rest = rest[end:]
		}
		n.watcher.mu.Unlock()
	}
}

// happened passes on one event.
func (n *notifier) happened(number int32, mask uint32, name string) {
	c := n.watcher
	if mask&unix.IN_Q_OVERFLOW != 0 { // some were lost: any of them
		for _, w := range c.watched {
			w.report()
		}
		return
	}
	dir, known := n.names[number]
	if !known {
		return
	}
	if mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED|unix.IN_UNMOUNT) != 0 {
		for _, w := range c.watched {
			if filepath.Dir(w.path) == dir {
				c.end(w)
			}
		}
		return
	}
	w := c.watched[filepath.Join(dir, name)]
	switch {
	case w == nil || w.polled:
	case mask&unix.IN_MODIFY != 0:
		w.report()
	default: // another file is there now, or none
		c.end(w)
	}
}

//go:build unix

package rootfs

import (
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// info is what the system says of a file.
type info struct {
	name string
	mode fs.FileMode
	st   *unix.Stat_t
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.st.Size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Unix(i.st.Mtim.Unix()) }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return i.st }

var typeBits = map[uint32]fs.FileMode{
	unix.S_IFDIR: fs.ModeDir, unix.S_IFLNK: fs.ModeSymlink, unix.S_IFIFO: fs.ModeNamedPipe, unix.S_IFSOCK: fs.ModeSocket,
	unix.S_IFBLK: fs.ModeDevice, unix.S_IFCHR: fs.ModeDevice | fs.ModeCharDevice, unix.S_IFREG: 0,
}

func newInfo(name string, st *unix.Stat_t) info {
	mode := fs.FileMode(st.Mode & 0o777)
	kind, ok := typeBits[uint32(st.Mode)&unix.S_IFMT]
	if !ok {
		kind = fs.ModeIrregular
	}
	for bit, m := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if uint32(st.Mode)&bit != 0 {
			mode |= m
		}
	}
	return info{name, mode | kind, st}
}

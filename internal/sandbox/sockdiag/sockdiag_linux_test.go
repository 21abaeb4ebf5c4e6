package sockdiag

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// Sockets that are listened on are found by their file, under any name that it has now, and by an abstract name.
func TestListeners(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	abstract := fmt.Sprintf("@fermata-sockdiag-%d", os.Getpid())
	var inodes []uint64
	for _, at := range []string{name, abstract} {
		l, err := net.Listen("unix", at)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		conn, err := l.(*net.UnixListener).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var st syscall.Stat_t
		if err := conn.Control(func(fd uintptr) { err = syscall.Fstat(int(fd), &st) }); err != nil {
			t.Fatal(err)
		}
		inodes = append(inodes, st.Ino)
	}
	if err := os.Rename(name, name+"2"); err != nil {
		t.Fatal(err)
	}
	list, err := Listeners()
	if err != nil {
		t.Skip(err) // a kernel without it
	}
	fd, err := syscall.Open(name+"2", 0x200000 /* O_PATH */, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	file, err := FileOf(fd)
	if err != nil {
		t.Fatal(err)
	}
	byFile := slices.IndexFunc(list, func(l Listener) bool { return l.File == file })
	byName := slices.IndexFunc(list, func(l Listener) bool { return l.Name == "\x00"+abstract[1:] })
	if byFile < 0 || byName < 0 || uint64(list[byFile].Inode) != inodes[0] || uint64(list[byName].Inode) != inodes[1] {
		t.Errorf("found %d and %d of inodes %d in %+v", byFile, byName, inodes, list)
	}
}

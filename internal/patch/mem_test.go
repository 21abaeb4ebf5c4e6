package patch

import (
	"errors"
	"io/fs"
	"os"

	"github.com/fermata-agent/fermata/internal/disktest"
)

// Mem is a file system in memory that knows what a power cut would leave.
type Mem struct{ *disktest.Disk }

var _ FS = (*Mem)(nil)

// NewMem returns a file system that holds the given files and their parent
// directories.
func NewMem(files map[string]string) *Mem {
	m := &Mem{disktest.New()}
	for path, data := range files {
		m.Put(path, data, 0o644)
	}
	return m
}

// Create implements FS. The default mode is 0644; there are no owners.
func (m *Mem) Create(path string, data []byte, mode fs.FileMode, _ string) error {
	if mode == 0 {
		mode = 0o644
	}
	f, err := m.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, m.Remove(path))
	}
	return nil
}

// Mkdir implements FS.
func (m *Mem) Mkdir(path string) error { return m.Disk.Mkdir(path, 0o755) }

// entry returns the mode and the content of what is at the path, or where it points.
func (m *Mem) entry(path string) (fs.FileMode, string) {
	info, err := m.Lstat(path)
	if err != nil {
		return 0, ""
	}
	if info.Mode().Type() == fs.ModeSymlink {
		target, _ := m.Readlink(path)
		return info.Mode(), target
	}
	data, _ := m.ReadFile(path)
	return info.Mode(), string(data)
}

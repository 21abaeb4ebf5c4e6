package file_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-agent/fermata/internal/journal/file"
)

// creatingFS creates a directory after it was looked at for some times, as another process may.
type creatingFS struct {
	file.OS
	t    *testing.T
	dir  string
	left int // looks before it is created
}

func (c *creatingFS) look(name string) {
	if name != c.dir {
		return
	}
	if c.left--; c.left == 0 {
		if err := os.MkdirAll(filepath.Join(c.dir, "2026"), 0o700); err != nil {
			c.t.Error(err)
		}
	}
}

func (c *creatingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	defer c.look(name)
	return c.OS.ReadDir(name)
}

func (c *creatingFS) Lstat(name string) (fs.FileInfo, error) {
	defer c.look(name)
	return c.OS.Lstat(name)
}

// A list that is made while another process begins the first conversation of a home is empty, and no error.
func TestListWhileTheHomeIsCreated(t *testing.T) {
	for looks := 1; looks < 6; looks++ {
		home := t.TempDir()
		s := file.New(home, file.Options{FS: &creatingFS{t: t, dir: filepath.Join(home, "conversations"), left: looks}})
		if list, err := s.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("created after %d looks: %v, %v", looks, list, err)
		}
	}
}

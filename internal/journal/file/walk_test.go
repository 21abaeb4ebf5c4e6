package file_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-agent/fermata/internal/journal/file"
)

// creatingFS creates a directory when it is first found to be missing, as another process may.
type creatingFS struct {
	file.OS
	dir string
}

func (c *creatingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := c.OS.ReadDir(name)
	if name == c.dir && err != nil {
		if err := os.MkdirAll(filepath.Join(c.dir, "2026"), 0o700); err != nil {
			return nil, err
		}
	}
	return entries, err
}

// A list that is made while another process begins the first conversation of a home is empty, and no error.
func TestListWhileTheHomeIsCreated(t *testing.T) {
	home := t.TempDir()
	s := file.New(home, file.Options{FS: &creatingFS{dir: filepath.Join(home, "conversations")}})
	if list, err := s.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

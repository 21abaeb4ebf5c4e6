package rootfs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/longtest"
)

func forceWalk(t *testing.T) {
	walks.Store(true)
	t.Cleanup(func() { walks.Store(false) })
}

// A file that is exchanged for a link between the look at it and the opening is not read through the link.
func TestFileThatBecomesALink(t *testing.T) {
	dir := realDir(t)
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("own"), 0o600), os.WriteFile(filepath.Join(dir, "other"), []byte("other"), 0o600), os.Symlink("other", link)); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE) // judged by what is read
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for opened := 0; opened < longtest.Default(20_000, 2_000); {
		f, err := Open(file)
		if err != nil {
			continue // it was a link
		}
		opened++
		text, err := io.ReadAll(f)
		f.Close()
		if err != nil || string(text) != "own" {
			t.Fatalf("after %d files: %q, %v", opened, text, err)
		}
	}
}

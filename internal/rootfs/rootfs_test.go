//go:build unix

package rootfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// operations does each operation that there is at a path in a directory.
func operations(dir string) map[string]error {
	name := filepath.Join(dir, "file")
	found := map[string]error{}
	_, found["lstat"] = Lstat(name)
	_, found["readlink"] = Readlink(filepath.Join(dir, "pointer"))
	_, found["read"] = ReadFile(name, 100)
	found["mkdir"] = Mkdir(filepath.Join(dir, "made"))
	found["symlink"] = Symlink("file", filepath.Join(dir, "linked"))
	found["link"] = Link(name, filepath.Join(dir, "second"))
	found["rename"] = Rename(filepath.Join(dir, "second"), filepath.Join(dir, "third"))
	found["remove"] = Remove(filepath.Join(dir, "third"))
	found["remove a directory"] = Remove(filepath.Join(dir, "made"))
	found["remove a link"] = Remove(filepath.Join(dir, "linked"))
	f, err := OpenFile(filepath.Join(dir, "new"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		CopyOwner(f, name)
		err = errors.Join(f.Close(), Remove(filepath.Join(dir, "new")))
	}
	found["create"] = err
	found["sync"] = SyncDir(dir)
	return found
}

func TestNoLinkIsFollowed(t *testing.T) {
	for _, form := range []string{"one step", "walk"} {
		t.Run(form, func(t *testing.T) {
			if form == "walk" {
				forceWalk(t)
			}
			dir := realDir(t)
			deep := filepath.Join(dir, "real", "deep")
			if err := errors.Join(os.MkdirAll(deep, 0o755), os.WriteFile(filepath.Join(deep, "file"), []byte("x"), 0o644),
				os.Symlink("file", filepath.Join(deep, "pointer")), os.Symlink("real", filepath.Join(dir, "link")),
				os.Symlink(deep, filepath.Join(dir, "last"))); err != nil {
				t.Fatal(err)
			}
			for name, err := range operations(deep) {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, linked := range []string{filepath.Join(dir, "link", "deep"), filepath.Join(dir, "last")} {
				for name, err := range operations(linked) {
					if !errors.Is(err, ErrLink) {
						t.Errorf("%s in %s: %v", name, linked, err)
					}
				}
			}
			for name, err := range operations(filepath.Join(dir, "nothing")) {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s in nothing: %v", name, err)
				}
			}
			for name, err := range operations(filepath.Join(deep, "file")) {
				if !errors.Is(err, unix.ENOTDIR) {
					t.Errorf("%s in a file: %v", name, err)
				}
			}
			if f, err := OpenFile(filepath.Join(deep, "pointer"), os.O_RDWR, 0); !errors.Is(err, unix.ELOOP) {
				t.Errorf("a link in the place of the file was opened: %v, %v", f, err)
			}
			if left, _ := os.ReadDir(deep); len(left) != 2 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	if _, err := Lstat("relative"); err == nil {
		t.Error("a relative path was taken")
	}
	if info, err := Lstat("/"); err != nil || !info.IsDir() {
		t.Errorf("the root: %v, %v", info, err)
	}
}

func TestOpenRegular(t *testing.T) {
	dir := realDir(t)
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o644), unix.Mkfifo(pipe, 0o644), os.Symlink("file", filepath.Join(dir, "link")),
		os.Symlink("pipe", filepath.Join(dir, "to pipe")), os.Symlink("/dev/zero", filepath.Join(dir, "to zero"))); err != nil {
		t.Fatal(err)
	}
	f, err := OpenRegular(filepath.Join(dir, "link"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "text" {
		t.Errorf("%q, %v", b, err)
	}
	for _, name := range []string{pipe, dir, filepath.Join(dir, "to pipe"), filepath.Join(dir, "to zero")} {
		if _, err := OpenRegular(name, nil); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", name, err)
		}
	}
	asked, errNo := "", errors.New("no")
	if _, err := OpenRegular(filepath.Join(dir, "link"), func(real string) error { asked = real; return errNo }); !errors.Is(err, errNo) || asked != file {
		t.Errorf("asked about %q, %v", asked, err)
	}
	if _, err := Open(filepath.Join(dir, "link")); err == nil {
		t.Error("a link was followed")
	}
}

func TestReadFileIsBounded(t *testing.T) {
	name := filepath.Join(realDir(t), "file")
	if err := os.WriteFile(name, []byte(strings.Repeat("x", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFile(name, 100); err != nil || len(b) != 100 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	var large *TooLargeError
	if _, err := ReadFile(name, 99); !errors.As(err, &large) || large.Max != 99 {
		t.Errorf("got %v", err)
	}
}

func TestLstatSaysWhatOsSays(t *testing.T) {
	dir := realDir(t)
	at := time.Unix(1700000000, 123456789)
	file := filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o640), os.Chmod(file, 0o640|fs.ModeSetgid), os.Chtimes(file, at, at), os.Symlink("x", filepath.Join(dir, "link")),
		unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, file, filepath.Join(dir, "link"), filepath.Join(dir, "pipe"), "/dev/null", "/tmp"} {
		want, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Lstat(name)
		if err != nil || got.Mode() != want.Mode() || got.Size() != want.Size() || !got.ModTime().Equal(want.ModTime()) || got.Name() != want.Name() || got.IsDir() != want.IsDir() {
			t.Errorf("%s: %v %v, want %v: %v", name, got, got.Mode(), want.Mode(), err)
		}
	}
}

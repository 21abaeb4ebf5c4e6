package regular

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Whatever is in the place of a file, nothing waits; a file and a link to one work as with package os.
func TestNothingWaits(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(at("file"), []byte("text"), 0o600), os.Symlink("file", at("link")), syscall.Mkfifo(at("pipe"), 0o600),
		os.Symlink("pipe", at("link to pipe")), os.Symlink("/dev/zero", at("zero")), os.Symlink("self", at("self")), os.Mkdir(at("dir"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"file": nil, "link": nil, "pipe": ErrNotRegular, "link to pipe": ErrNotRegular, "zero": ErrNotRegular, "dir": ErrNotRegular,
		"self": syscall.ELOOP, "missing": fs.ErrNotExist,
	} {
		text, err := ReadFile(at(name))
		if !errors.Is(err, want) || err == nil && string(text) != "text" {
			t.Errorf("read %s: %q, %v, want %v", name, text, err, want)
		}
		if want == nil || want == fs.ErrNotExist {
			continue
		}
		if err := WriteFile(at(name), []byte("text"), 0o600); err == nil {
			t.Errorf("%s was written to", name)
		}
		if f, err := OpenFile(at(name), os.O_RDWR|os.O_CREATE, 0o600); err == nil {
			t.Errorf("%s was opened for writing", name)
			f.Close()
		}
	}
	if err := WriteFile(at("link"), []byte("other"), 0o600); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(at("file")); string(text) != "other" || err != nil {
		t.Errorf("written: %q, %v", text, err)
	}
	for name, want := range map[string]error{".": nil, "dir": nil, "pipe": syscall.ENOTDIR, "zero": syscall.ENOTDIR, "file": syscall.ENOTDIR} {
		entries, err := ReadDir(at(name))
		if !errors.Is(err, want) || name == "." && len(entries) != 7 {
			t.Errorf("read directory %s: %d entries, %v, want %v", name, len(entries), err, want)
		}
	}
}

// A file that is larger than any of ours is not read, a sparse one of a terabyte neither; one at the limit is.
func TestFileThatIsTooLarge(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sparse")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 40); err != nil {
		t.Skip(err)
	}
	if text, err := ReadFile(name); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d bytes were read, %v", len(text), err)
	}
	const limit = 10
	for size, want := range map[int64]error{limit - 1: nil, limit: nil, limit + 1: ErrTooLarge} {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		text, err := readAll(f, limit)
		if !errors.Is(err, want) || err == nil && int64(len(text)) != size {
			t.Errorf("%d of %d bytes were read, %v, want %v", len(text), size, err, want)
		}
		if at, err := f.Seek(0, io.SeekCurrent); want != nil && (at != 0 || err != nil) {
			t.Errorf("%d bytes were read of a file that is too large, %v", at, err)
		}
	}
}

// The size of a file in /proc is 0 whatever it has, like that of one that grows after its size was read: the bytes count.
func TestFileThatGrows(t *testing.T) {
	f, err := Open("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if text, err := readAll(f, 10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%q was read, %v", text, err)
	}
}

// A file is replaced whole, with its mode, and nothing is left beside it, also if that fails.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "settings")
	for _, text := range []string{"first", "second"} {
		if err := Replace(name, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		info, statErr := os.Stat(name)
		if err != nil || statErr != nil || string(got) != text || info.Mode() != 0o640 {
			t.Errorf("it has %q and mode %v, %v, %v", got, info.Mode(), err, statErr)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(dir, "folder"), []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("there are %v, %v", left, err)
	}
}

//go:build unix

package patch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

// Both file systems do the same; each step says what it expects.
func TestFileSystemsAgree(t *testing.T) {
	systems := map[string]func(t *testing.T) (FS, string){
		"os": func(t *testing.T) (FS, string) { return OS{}, realDir(t) },
		"memory": func(*testing.T) (FS, string) {
			m := NewMem(nil)
			m.Put("/base", "", fs.ModeDir|0o755)
			return m, "/base"
		},
	}
	for name, open := range systems {
		t.Run(name, func(t *testing.T) {
			fsys, dir := open(t)
			at := func(name string) string { return filepath.Join(dir, name) }
			steps := []struct {
				what string
				err  error // what happened
				want error
			}{
				{"create", fsys.Create(at("a"), []byte("one"), 0o640, ""), nil},
				{"create again", fsys.Create(at("a"), nil, 0, ""), fs.ErrExist},
				{"create in nothing", fsys.Create(at("no/a"), nil, 0, ""), fs.ErrNotExist},
				{"create in a file", fsys.Create(at("a/b"), nil, 0, ""), syscall.ENOTDIR},
				{"link", fsys.Link(at("a"), at("b")), nil},
				{"link over", fsys.Link(at("a"), at("b")), fs.ErrExist},
				{"link nothing", fsys.Link(at("x"), at("y")), fs.ErrNotExist},
				{"rename to itself", fsys.Rename(at("a"), at("b")), nil},
				{"create other", fsys.Create(at("c"), []byte("two"), 0, ""), nil},
				{"rename over", fsys.Rename(at("c"), at("a")), nil},
				{"renamed is gone", fsys.Remove(at("c")), fs.ErrNotExist},
				{"rename nothing", fsys.Rename(at("x"), at("y")), fs.ErrNotExist},
				{"mkdir", fsys.Mkdir(at("d")), nil},
				{"mkdir again", fsys.Mkdir(at("d")), fs.ErrExist},
				{"rename over a directory", fsys.Rename(at("a"), at("d")), syscall.EEXIST},
				{"create inside", fsys.Create(at("d/f"), nil, 0, ""), nil},
				{"remove full", fsys.Remove(at("d")), syscall.ENOTEMPTY},
				{"remove inside", fsys.Remove(at("d/f")), nil},
				{"remove empty", fsys.Remove(at("d")), nil},
				{"symlink", fsys.Symlink("b", at("s")), nil},
				{"symlink over", fsys.Symlink("b", at("s")), fs.ErrExist},
				{"sync", fsys.SyncDir(dir), nil},
				{"sync nothing", fsys.SyncDir(at("d")), fs.ErrNotExist},
			}
			for _, s := range steps {
				if !errors.Is(s.err, s.want) && !isDirError(s.err, s.want) {
					t.Errorf("%s: got %v, want %v", s.what, s.err, s.want)
				}
			}
			expectEntry(t, fsys, at("a"), &Content{Data: "two", Mode: 0o644})
			expectEntry(t, fsys, at("b"), &Content{Data: "one", Mode: 0o640})
			expectEntry(t, fsys, at("s"), &Content{Link: "b"})
			expectEntry(t, fsys, at("c"), nil)
			if _, err := fsys.Readlink(at("a")); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("readlink of a file: %v", err)
			}
		})
	}
}

// isDirError accepts the two errors that systems have for a file renamed over a
// directory.
func isDirError(err, want error) bool {
	return want == syscall.EEXIST && errors.Is(err, syscall.EISDIR)
}

func expectEntry(t *testing.T, fsys FS, path string, want *Content) {
	t.Helper()
	got, err := read(fsys, path)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	if !same(got, want) || got != nil && got.Mode != want.Mode {
		t.Errorf("%s is %+v, want %+v", path, got, want)
	}
}

func TestOSKeepsModeAndOwner(t *testing.T) {
	dir := realDir(t)
	write(t, filepath.Join(dir, "run.sh"), "false\n", 0o751)
	write(t, filepath.Join(dir, "src.sh"), "false\n", 0o511)
	const nobody = 65534
	owned := os.Chown(filepath.Join(dir, "run.sh"), nobody, nobody) == nil &&
		os.Chown(filepath.Join(dir, "src.sh"), nobody, nobody) == nil
	plan := planFor(t, OS{}, dir, `*** Begin Patch
*** Update File: run.sh
-false
+true
*** Update File: src.sh
*** Move to: bin/dst.sh
-false
+true
*** End Patch
`)
	applyPlan(t, OS{}, plan)
	for name, mode := range map[string]fs.FileMode{"run.sh": 0o751, "bin/dst.sh": 0o511} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != mode {
			t.Errorf("%s: mode %v, want %v", name, info.Mode(), mode)
		}
		if st := info.Sys().(*syscall.Stat_t); owned && (st.Uid != nobody || st.Gid != nobody) {
			t.Errorf("%s: owner %d:%d", name, st.Uid, st.Gid)
		}
	}
	expectFiles(t, dir, map[string]string{"run.sh": "true\n", "bin/dst.sh": "true\n"})
	applyPlan(t, OS{}, plan.Reverse())
	expectFiles(t, dir, map[string]string{"run.sh": "false\n", "src.sh": "false\n"})
	if info, err := os.Stat(filepath.Join(dir, "src.sh")); err != nil || info.Mode() != 0o511 {
		t.Errorf("src.sh came back as %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "bin")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory that the patch made is still there: %v", err)
	}
}

func TestOSFollowsLinks(t *testing.T) {
	dir, other := realDir(t), realDir(t)
	write(t, filepath.Join(other, "real.txt"), "a\n", 0o644)
	for link, target := range map[string]string{"link": filepath.Join(other, "real.txt"), "d": other, "gone": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	plan := planFor(t, OS{}, dir, "*** Begin Patch\n*** Update File: link\n-a\n+b\n*** Add File: d/new.txt\n+n\n*** Delete File: gone\n*** End Patch\n")
	applyPlan(t, OS{}, plan)
	expectFiles(t, other, map[string]string{"real.txt": "b\n", "new.txt": "n\n"})
	if target, err := os.Readlink(filepath.Join(dir, "link")); err != nil || target != filepath.Join(other, "real.txt") {
		t.Errorf("the link is now %q, %v", target, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the deleted link is still there: %v", err)
	}
	applyPlan(t, OS{}, plan.Reverse())
	expectFiles(t, other, map[string]string{"real.txt": "a\n"})
	if target, err := os.Readlink(filepath.Join(dir, "gone")); err != nil || target != "nowhere" {
		t.Errorf("the link came back as %q, %v", target, err)
	}
}

// A named pipe must be refused, not opened: that would wait for a writer.
func TestOSRefusesPipe(t *testing.T) {
	dir := realDir(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	for _, body := range []string{"*** Update File: pipe\n-a\n+b\n", "*** Add File: pipe\n+a\n", "*** Delete File: pipe\n"} {
		p, err := syntax.Parse("*** Begin Patch\n" + body + "*** End Patch\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(t.Context(), OS{}, dir, p); err == nil {
			t.Errorf("accepted: %s", body)
		}
	}
}

func TestVerifyRefusesHugeFile(t *testing.T) {
	dir := realDir(t)
	path := filepath.Join(dir, "huge")
	write(t, path, "a\n", 0o644)
	if err := os.Truncate(path, maxFile+1); err != nil {
		t.Skip(err)
	}
	p := &syntax.Patch{Sections: []syntax.Section{{Kind: syntax.Delete, Path: "huge", Line: 2}}}
	if _, err := Verify(t.Context(), OS{}, dir, p); err == nil {
		t.Error("accepted")
	}
}

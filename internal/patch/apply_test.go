package patch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

func planFor(t *testing.T, fsys FS, dir, text string) *Plan {
	t.Helper()
	p, err := syntax.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Verify(t.Context(), fsys, dir, p)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func applyPlan(t *testing.T, fsys FS, plan *Plan) {
	t.Helper()
	if err := Apply(t.Context(), fsys, plan, plan.Record(), ignoreRecord); err != nil {
		t.Fatal(err)
	}
}

func TestApplyRefusesChangedFiles(t *testing.T) {
	const text = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** Update File: a.txt\n-a\n+A\n*** Delete File: d/b.txt\n*** End Patch\n"
	tests := map[string]struct {
		change func(*Mem)
		path   string
		says   string
	}{
		"content":        {func(m *Mem) { m.Put("/w/a.txt", "x\n", 0o644) }, "/w/a.txt", "was changed"},
		"removed":        {func(m *Mem) { m.Drop("/w/a.txt") }, "/w/a.txt", "was removed"},
		"deleted before": {func(m *Mem) { m.Drop("/w/d/b.txt") }, "/w/d/b.txt", "was removed"},
		"edited before":  {func(m *Mem) { m.Put("/w/d/b.txt", "x\n", 0o644) }, "/w/d/b.txt", "was changed"},
		"created":        {func(m *Mem) { m.Put("/w/new.txt", "mine\n", 0o644) }, "/w/new.txt", "was created"},
		"mode":           {func(m *Mem) { m.Put("/w/a.txt", "a\n", 0o600) }, "/w/a.txt", "another mode"},
		"now a link":     {func(m *Mem) { m.Put("/w/a.txt", "/etc/passwd", fs.ModeSymlink|0o777) }, "/w/a.txt", "was changed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			mem := NewMem(map[string]string{"/w/a.txt": "a\n", "/w/d/b.txt": "b\n"})
			plan := planFor(t, mem, workDir, text)
			tt.change(mem)
			want := dump(mem)
			err := Apply(t.Context(), mem, plan, plan.Record(), func(Record) error {
				t.Error("committed")
				return nil
			})
			var changed *ChangedError
			if !errors.As(err, &changed) || changed.Path != tt.path || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want that %s %s", err, tt.path, tt.says)
			}
			if diff := cmp.Diff(want, dump(mem)); diff != "" {
				t.Errorf("files changed (-before +after):\n%s", diff)
			}
		})
	}
}

// A directory that is swapped for a link between check and apply must not lead
// the patch out of where it was approved.
func TestApplyRefusesSwappedDirectory(t *testing.T) {
	work, outside := realDir(t), realDir(t)
	write(t, filepath.Join(work, "d/a.txt"), "a\n", 0o644)
	write(t, filepath.Join(outside, "a.txt"), "a\n", 0o644)
	plan := planFor(t, OS{}, work, "*** Begin Patch\n*** Update File: d/a.txt\n-a\n+A\n*** End Patch\n")
	if err := os.Rename(filepath.Join(work, "d"), filepath.Join(work, "e")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(work, "d")); err != nil {
		t.Fatal(err)
	}
	err := Apply(t.Context(), OS{}, plan, plan.Record(), ignoreRecord)
	var changed *ChangedError
	if !errors.As(err, &changed) {
		t.Errorf("got %v", err)
	}
	expectFiles(t, outside, map[string]string{"a.txt": "a\n"})
}

func TestApplyOfAnotherRecord(t *testing.T) {
	mem := NewMem(map[string]string{"/w/a.txt": "a\n"})
	plan := planFor(t, mem, workDir, "*** Begin Patch\n*** Update File: a.txt\n-a\n+A\n*** End Patch\n")
	other := planFor(t, mem, workDir, "*** Begin Patch\n*** Update File: a.txt\n-a\n+B\n*** End Patch\n")
	err := Apply(t.Context(), mem, plan, other.Record(), ignoreRecord)
	if err == nil || !strings.Contains(err.Error(), "another plan") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"a.txt\na\n"}, dump(mem)); diff != "" {
		t.Errorf("files changed:\n%s", diff)
	}
}

func TestVerifyAndApplyAfterStop(t *testing.T) {
	mem := NewMem(map[string]string{"/w/a.txt": "a\n"})
	plan := planFor(t, mem, workDir, "*** Begin Patch\n*** Update File: a.txt\n-a\n+A\n*** End Patch\n")
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := Apply(ctx, mem, plan, plan.Record(), ignoreRecord); !errors.Is(err, why) {
		t.Errorf("apply: got %v, want %v", err, why)
	}
	p := &syntax.Patch{Sections: []syntax.Section{{Kind: syntax.Delete, Path: "a.txt"}}}
	if _, err := Verify(ctx, mem, workDir, p); !errors.Is(err, why) {
		t.Errorf("verify: got %v, want %v", err, why)
	}
	if _, err := Verify(t.Context(), mem, "relative", p); err == nil {
		t.Error("verify takes a relative directory")
	}
}

// Not every file system has hard links: then the old content is copied.
func TestApplyWithoutHardLinks(t *testing.T) {
	w := newTwenty(t)
	for _, fail := range []string{"", "rename"} {
		seen := 0
		s, err := w.run(t, t.Context(), func(s *attemptState, op, _, to string) error {
			if op == "link" {
				seen++
				return syscall.EPERM
			}
			if s.committed && op == fail && strings.HasSuffix(to, "/u/f4") {
				return syscall.EBUSY
			}
			return nil
		})
		if (err != nil) != (fail != "") {
			t.Fatalf("got %v", err)
		}
		if seen == 0 {
			t.Fatal("no link was tried")
		}
		w.expect(t, "without links", s.mem, err == nil)
	}
}

func TestReverseRefusesLaterEdits(t *testing.T) {
	mem := NewMem(map[string]string{"/w/a.txt": "a\n", "/w/b.txt": "b\n"})
	plan := planFor(t, mem, workDir, "*** Begin Patch\n*** Update File: a.txt\n-a\n+A\n*** Update File: b.txt\n-b\n+B\n*** Add File: c.txt\n+c\n*** End Patch\n")
	applyPlan(t, mem, plan)
	mem.Put("/w/b.txt", "B and more\n", 0o644)
	want := dump(mem)
	back := plan.Reverse()
	err := Apply(t.Context(), mem, back, back.Record(), ignoreRecord)
	var changed *ChangedError
	if !errors.As(err, &changed) || changed.Path != "/w/b.txt" {
		t.Errorf("got %v, want that /w/b.txt changed", err)
	}
	if diff := cmp.Diff(want, dump(mem)); diff != "" {
		t.Errorf("files changed (-before +after):\n%s", diff)
	}
}

func TestReverseKeepsUsedDirectories(t *testing.T) {
	mem := NewMem(nil)
	mem.Put(workDir, "", fs.ModeDir|0o755)
	plan := planFor(t, mem, workDir, "*** Begin Patch\n*** Add File: x/y/z/a.txt\n+a\n*** End Patch\n")
	applyPlan(t, mem, plan)
	mem.Put("/w/x/mine.txt", "m\n", 0o644)
	applyPlan(t, mem, plan.Reverse())
	if diff := cmp.Diff([]string{"x dir\n", "x/mine.txt\nm\n"}, dump(mem)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	applyPlan(t, mem, plan.Reverse().Reverse())
	if got := contents(mem)["/w/x/y/z/a.txt"]; got != "a\n" {
		t.Errorf("redone: %q", got)
	}
}

// realDir returns a temporary directory without symbolic links in its path.
func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t testing.TB, path, data string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// expectFiles compares all regular files below a directory.
func expectFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		got[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

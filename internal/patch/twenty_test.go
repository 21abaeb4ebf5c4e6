package patch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

// hookFS calls a function before every operation that writes; an error from it
// is the operation's error. Once dead, nothing works any more: the process that
// used it is gone.
type hookFS struct {
	FS
	hook func(op, path, to string) error
	dead bool
}

var errDead = errors.New("the process is gone")

func (h *hookFS) do(op, path, to string, run func() error) error {
	if h.dead {
		return errDead
	}
	if err := h.hook(op, path, to); err != nil {
		return err
	}
	if h.dead {
		return errDead
	}
	return run()
}

func (h *hookFS) Create(path string, data []byte, mode fs.FileMode, like string) error {
	return h.do("create", path, "", func() error { return h.FS.Create(path, data, mode, like) })
}

func (h *hookFS) Symlink(target, path string) error {
	return h.do("symlink", path, "", func() error { return h.FS.Symlink(target, path) })
}

func (h *hookFS) Link(path, link string) error {
	return h.do("link", path, link, func() error { return h.FS.Link(path, link) })
}

func (h *hookFS) Mkdir(path string) error {
	return h.do("mkdir", path, "", func() error { return h.FS.Mkdir(path) })
}

func (h *hookFS) Rename(from, to string) error {
	return h.do("rename", from, to, func() error { return h.FS.Rename(from, to) })
}

func (h *hookFS) Remove(path string) error {
	return h.do("remove", path, "", func() error { return h.FS.Remove(path) })
}

func (h *hookFS) SyncDir(path string) error {
	return h.do("sync", path, "", func() error { return h.FS.SyncDir(path) })
}

// twenty is a patch of 20 files that has every kind of step: new files in old
// and new directories, updates, deletions, a link, moves, one over another file.
type twenty struct {
	base          *Mem
	patch         *syntax.Patch
	before, after []string // dumps
}

func twentyFiles() (map[string]string, string) {
	files := map[string]string{"m/over": "in the way\n", "old/last": "last\n"}
	var b strings.Builder
	b.WriteString("*** Begin Patch\n")
	for i := range 5 {
		fmt.Fprintf(&b, "*** Add File: new/d%d/f%d\n+new %d\n", i%2, i, i)
		files[fmt.Sprintf("u/f%d", i)] = fmt.Sprintf("one\ntwo %d\nthree\n", i)
		fmt.Fprintf(&b, "*** Update File: u/f%d\n one\n-two %d\n+TWO\n", i, i)
		files[fmt.Sprintf("old/f%d", i)] = fmt.Sprintf("old %d\n", i)
		fmt.Fprintf(&b, "*** Delete File: old/f%d\n", i)
	}
	for i, to := range []string{"m/over", "moved/x"} {
		files[fmt.Sprintf("m/f%d", i)] = fmt.Sprintf("move %d\n", i)
		fmt.Fprintf(&b, "*** Update File: m/f%d\n*** Move to: %s\n-move %d\n+moved %d\n", i, to, i, i)
	}
	b.WriteString("*** Delete File: link\n*** End Patch\n")
	return files, b.String()
}

func newTwenty(t *testing.T) *twenty {
	t.Helper()
	files, text := twentyFiles()
	base := NewMem(nil)
	for name, data := range files {
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(name, "u/") {
			mode = 0o600
		}
		base.Put(workDir+"/"+name, data, mode)
	}
	base.Put(workDir+"/link", "u/f0", fs.ModeSymlink|0o777)
	patch, err := syntax.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	w := &twenty{base: base, patch: patch, before: dump(base)}
	done := w.fresh()
	plan := w.verify(t, done)
	if n := len(plan.Record().Steps); n != 20 {
		t.Fatalf("the patch has %d steps, want 20", n)
	}
	if err := Apply(t.Context(), done, plan, plan.Record(), ignoreRecord); err != nil {
		t.Fatal(err)
	}
	w.after = dump(done)
	return w
}

func (w *twenty) fresh() *Mem {
	return &Mem{w.base.Clone()}
}

func (w *twenty) verify(t *testing.T, fsys FS) *Plan {
	t.Helper()
	plan, err := Verify(t.Context(), fsys, workDir, w.patch)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// expect compares a file system with one of the two states that may be.
func (w *twenty) expect(t *testing.T, what string, mem *Mem, applied bool) {
	t.Helper()
	want := w.before
	if applied {
		want = w.after
	}
	if diff := cmp.Diff(want, dump(mem)); diff != "" {
		t.Fatalf("%s: applied is %v, but the files are different (-want +got):\n%s", what, applied, diff)
	}
}

// attemptState is one try of the patch on a fresh copy, with a journal that says
// whether the commit was noted.
type attemptState struct {
	mem       *Mem
	fsys      *hookFS
	rec       Record
	committed bool
}

// run applies the patch; hook sees every operation, the commit as "commit".
func (w *twenty) run(t *testing.T, ctx context.Context, hook func(s *attemptState, op, path, to string) error) (*attemptState, error) {
	t.Helper()
	s := &attemptState{mem: w.fresh()}
	s.fsys = &hookFS{FS: s.mem, hook: func(op, path, to string) error { return hook(s, op, path, to) }}
	plan := w.verify(t, s.mem)
	s.rec = plan.Record()
	err := Apply(ctx, s.fsys, plan, s.rec, func(Record) error {
		if err := s.fsys.do("commit", "", "", func() error { return nil }); err != nil {
			return err
		}
		s.committed = true
		return nil
	})
	return s, err
}

// steps counts the operations of an undisturbed run.
func (w *twenty) steps(t *testing.T) int {
	t.Helper()
	n := 0
	_, err := w.run(t, t.Context(), func(*attemptState, string, string, string) error { n++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if n < 80 {
		t.Fatalf("only %d operations: the hook does not see them all", n)
	}
	return n
}

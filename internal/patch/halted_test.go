package patch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

const haltedPatch = `*** Begin Patch
*** Add File: added
+new
*** Update File: updated
@@
-old
+new
*** Delete File: deleted
*** Update File: moved
*** Move to: target
@@
-old
+new
*** End Patch
`

// A process is halted (SIGSTOP) between the commit and the first rename, or between two, and its conversation is
// settled by another one. When it continues, it changes nothing any more: neither what the other one has
// made of the files nor what the user has written since.
func TestHaltedAfterCommit(t *testing.T) {
	patched := map[string]string{"added": "new\n", "updated": "new\n", "target": "new\n"}
	mine := map[string]string{"added": "mine\n", "updated": "mine\n", "deleted": "mine\n", "moved": "mine\n", "target": "mine\n"}
	for name, write := range map[string]map[string]string{"the files are as they were settled": nil, "the user has written them": mine} {
		for steps := range 5 { // so many were done before it was halted
			t.Run(name, func(t *testing.T) {
				dir := realDir(t)
				for _, file := range []string{"updated", "deleted", "moved"} {
					put(t, dir, file, "old\n")
				}
				parsed, err := syntax.Parse(haltedPatch)
				if err != nil {
					t.Fatal(err)
				}
				plan, err := Verify(t.Context(), OS{}, dir, parsed)
				if err != nil {
					t.Fatal(err)
				}
				rec := plan.Record()
				want := patched
				halted := &haltedFS{FS: OS{}, after: steps, settle: func() {
					if applied, err := Recover(OS{}, rec, true); err != nil || !applied {
						t.Errorf("the other process: %v, %v", applied, err)
					}
					for file, text := range write {
						put(t, dir, file, text)
						want = mine
					}
				}}
				err = Apply(t.Context(), halted, plan, rec, func(Record) error {
					halted.committed = true
					return nil
				})
				if incomplete := (*IncompleteError)(nil); !errors.As(err, &incomplete) || !errors.Is(err, errSettled) {
					t.Errorf("Apply returned %v", err)
				}
				if !halted.done {
					t.Fatal("it was never halted")
				}
				got := map[string]string{}
				entries, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					data, err := os.ReadFile(filepath.Join(dir, e.Name()))
					if err != nil {
						t.Fatal(err)
					}
					got[e.Name()] = string(data)
				}
				for file := range mine {
					if got[file] != want[file] {
						t.Errorf("halted after %d steps: %s holds %q, want %q", steps, file, got[file], want[file])
					}
					delete(got, file)
				}
				if len(got) > 0 {
					t.Errorf("left behind: %q", got)
				}
			})
		}
	}
}

func put(t *testing.T, dir, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A haltedFS halts its process after so many steps of a committed patch, until another one has settled it.
type haltedFS struct {
	FS
	after     int
	committed bool
	done      bool
	settle    func()
}

// halt is called before each step.
func (f *haltedFS) halt() {
	if f.committed && !f.done {
		if f.after == 0 {
			f.done = true
			f.settle()
		}
		f.after--
	}
}

func (f *haltedFS) Rename(from, to string) error {
	f.halt()
	return f.FS.Rename(from, to)
}

// Lstat of the old content begins a step that removes a file.
func (f *haltedFS) Lstat(path string) (fs.FileInfo, error) {
	if strings.HasSuffix(path, ".old") {
		f.halt()
	}
	return f.FS.Lstat(path)
}

// A file that the user writes between the commit and its removal stays, and the rest of the patch is taken back.
func TestWrittenBeforeRemoval(t *testing.T) {
	dir := realDir(t)
	put(t, dir, "deleted", "old\n")
	parsed, err := syntax.Parse("*** Begin Patch\n*** Add File: added\n+new\n*** Delete File: deleted\n*** End Patch\n")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Verify(t.Context(), OS{}, dir, parsed)
	if err != nil {
		t.Fatal(err)
	}
	err = Apply(t.Context(), OS{}, plan, plan.Record(), func(Record) error {
		if err := os.Remove(filepath.Join(dir, "deleted")); err != nil { // its old content has a second name
			return err
		}
		put(t, dir, "deleted", "mine\n")
		return nil
	})
	if changed := (*ChangedError)(nil); !errors.As(err, &changed) || filepath.Base(changed.Path) != "deleted" {
		t.Errorf("Apply returned %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "deleted")); err != nil || string(data) != "mine\n" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "added")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the added file: %v", err)
	}
}

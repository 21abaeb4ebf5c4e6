package tool

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/protocol"
)

// history applies patches and returns what they kept.
func history(t *testing.T, dir string, texts ...string) []json.RawMessage {
	t.Helper()
	var kept []json.RawMessage
	for _, text := range texts {
		h := &fakeHost{}
		if res := (&Patch{}).Run(t.Context(), patchCall(h, dir, text)); res.Output.Failed {
			t.Fatalf("%s: %+v", text, res.Output)
		}
		kept = append(kept, h.events[0].(*protocol.PatchStarted).Back)
	}
	return kept
}

func takeBack(t *testing.T, kept []json.RawMessage) {
	t.Helper()
	plan, err := TakeBack(patch.OS{}, kept, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := patch.Apply(t.Context(), patch.OS{}, plan, plan.Record(), func(patch.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestTakeBack(t *testing.T) {
	dir := realDir(t)
	put(t, dir, "a", "1\nx\n2\n")
	put(t, dir, "gone", "gone\n")
	put(t, dir, "old", "moves\n")
	put(t, dir, "bytes", "\xff\xfe 1\n")
	if err := os.Symlink("a", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "gone"), 0o750); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	kept := history(t, dir,
		update("a", "x", "y"), update("a", "y", "a longer z"), add("new/deep/n"),
		begin("*** Delete File: gone\n"), begin("*** Delete File: link\n"),
		begin("*** Update File: old\n*** Move to: new/moved\n@@\n-moves\n+moved\n"),
		begin("*** Update File: new/moved\n@@\n-moved\n+moved again\n"),
		add("gone"), begin("*** Delete File: gone\n"),
	)
	takeBack(t, kept)
	if d := cmp.Diff(before, files(t, dir)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	if target, err := os.Readlink(filepath.Join(dir, "link")); err != nil || target != "a" {
		t.Errorf("the link is %q, %v", target, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "gone")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a directory that was made is left")
	}
}

// All files that changed since are named, and nothing is touched.
func TestTakeBackRefuses(t *testing.T) {
	dir := realDir(t)
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		put(t, dir, n, "1\n")
	}
	kept := history(t, dir, update("a", "1", "2"), update("b", "1", "2"), update("c", "1", "2"),
		begin("*** Delete File: d\n"), update("e", "1", "2"), update("e", "2", "3"))
	put(t, dir, "a", "mine\n")
	os.Remove(filepath.Join(dir, "b"))
	put(t, dir, "d", "is back\n")
	_, err := TakeBack(patch.OS{}, kept, nil)
	var stale *ChangedSinceError
	if !errors.As(err, &stale) || !cmp.Equal(stale.Paths, []string{filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "d")}) {
		t.Errorf("got %v", err)
	}
	if _, err := TakeBack(patch.OS{}, []json.RawMessage{json.RawMessage("7")}, nil); err == nil {
		t.Error("a record that is none is taken back")
	}
	if err := os.Mkdir(filepath.Join(dir, "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := TakeBack(patch.OS{}, kept, nil); err == nil || !strings.Contains(err.Error(), "no longer a file") {
		t.Errorf("a directory in its place: %v", err)
	}
}

func TestTakeBackExcept(t *testing.T) {
	dir := realDir(t)
	kept := history(t, dir, add("a", "b"))
	put(t, dir, "a", "mine\n")
	plan, err := TakeBack(patch.OS{}, kept, func(path string) bool { return path == filepath.Join(dir, "a") })
	if err != nil || !cmp.Equal(plan.Paths(), []string{filepath.Join(dir, "b")}) {
		t.Errorf("plan %v, %v", plan, err)
	}
}

func TestPutBack(t *testing.T) {
	for name, tt := range map[string]struct {
		failAt string // the note that fails
		late   bool   // a file changes after the plan is made
		notes  string
		back   bool
	}{
		"all is well":                {"", false, "started committed done", true},
		"cannot begin":               {"started", false, "started", false},
		"cannot commit":              {"committed", false, "started committed settled", false},
		"a file changes meanwhile":   {"", true, "started settled", false},
		"cannot say that it is done": {"done", false, "started committed done", true},
	} {
		dir := realDir(t)
		kept := history(t, dir, add("a", "b"))
		plan, err := TakeBack(patch.OS{}, kept, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tt.late {
			put(t, dir, "b", "mine\n")
		}
		var notes []string
		err = PutBack(t.Context(), patch.OS{}, plan, 3, func(u protocol.Undo) error {
			word := noted(t, u, dir)
			notes = append(notes, word)
			if word == tt.failAt {
				return errors.New("disk full")
			}
			return nil
		})
		if (err != nil) != (tt.failAt != "" || tt.late) || strings.Join(notes, " ") != tt.notes {
			t.Errorf("%s: %v, noted %q", name, err, notes)
		}
		if left := len(files(t, dir)); (left == 0) != tt.back || left == 1 {
			t.Errorf("%s: %d files are left", name, left)
		}
	}
}

// noted names a step of an undo, and checks what it says.
func noted(t *testing.T, u protocol.Undo, dir string) string {
	t.Helper()
	switch {
	case u.Started != nil:
		if u.Started.Undoes != 3 || u.Started.Patch == "" || !strings.Contains(string(u.Started.Changes), dir) {
			t.Errorf("started %+v", u.Started)
		}
		return "started"
	case u.Committed != nil:
		return "committed"
	case u.Settled != nil:
		if u.Settled.Applied {
			t.Errorf("settled %+v", u.Settled)
		}
		return "settled"
	}
	if u.Done.Of != 3 || len(u.Done.Files) != 2 {
		t.Errorf("done %+v", u.Done)
	}
	return "done"
}

// A small change to a big file is a small record.
func TestWayBackIsSmall(t *testing.T) {
	dir := realDir(t)
	var b strings.Builder
	for range 20_000 {
		b.WriteString("a line\n")
	}
	put(t, dir, "big", b.String()+"last\n")
	kept := history(t, dir, update("big", "last", "least"))
	if len(kept[0]) > 1000 {
		t.Errorf("%d bytes are kept of a change of one line", len(kept[0]))
	}
	takeBack(t, kept)
	wantFiles(t, dir, map[string]string{"big": b.String() + "last\n"})
}

// Whatever two contents are, the first can be had from the second and what is kept.
func TestWayBackIsExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	text := func() *patch.Content {
		data := make([]byte, rnd.IntN(8))
		for i := range data {
			data[i] = "ab\xc3\xa9"[rnd.IntN(4)]
		}
		return &patch.Content{Data: string(data)}
	}
	for range 5000 {
		before, after := text(), text()
		raw, err := json.Marshal(wayBack(&patch.Plan{Files: []patch.File{{Path: "/x", Before: before, After: after}}}))
		if err != nil {
			t.Fatal(err)
		}
		var b back
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatal(err)
		}
		if got := b.Files[0].before(after); got.Data != before.Data || b.Files[0].After != digest(after) {
			t.Fatalf("from %q and %s: %q, want %q", after.Data, raw, got.Data, before.Data)
		}
	}
}

package patch

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mixedPatch = `*** Begin Patch
*** Add File: new.txt
+n
*** Update File: a.txt
-a
+A
*** Update File: m.txt
*** Move to: sub/moved.txt
 one
-two
+2
*** Delete File: gone.txt
*** End Patch
`

var mixedFiles = map[string]string{"/w/a.txt": "a\n", "/w/m.txt": "one\ntwo\n", "/w/gone.txt": "gone\n"}

func TestFileChangesJSON(t *testing.T) {
	plan := planFor(t, NewMem(mixedFiles), workDir, mixedPatch)
	got, err := json.MarshalIndent(plan.FileChanges(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "/w/a.txt": {
  "update": {
   "unified_diff": "@@ -1 +1 @@\n-a\n+A\n",
   "move_path": null
  }
 },
 "/w/gone.txt": "delete",
 "/w/m.txt": {
  "update": {
   "unified_diff": "@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
   "move_path": "/w/sub/moved.txt"
  }
 },
 "/w/new.txt": {
  "add": {
   "content": "n\n"
  }
 }
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := plan.FileChanges()["/w/gone.txt"].Content; got != "gone\n" {
		t.Errorf("content of the deleted file: %q", got)
	}
}

func TestPathsAreAllThatIsTouched(t *testing.T) {
	mem := NewMem(mixedFiles)
	mem.Put("/w/link", "/etc/target", 0o777|os.ModeSymlink)
	mem.Put("/etc/target", "t\n", 0o644)
	text := strings.Replace(mixedPatch, "*** Begin Patch\n", "*** Begin Patch\n*** Update File: link\n-t\n+T\n", 1)
	want := []string{"/etc/target", "/w/a.txt", "/w/gone.txt", "/w/m.txt", "/w/new.txt", "/w/sub/moved.txt"}
	if diff := cmp.Diff(want, planFor(t, mem, workDir, text).Paths()); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	// The target of a link that is itself moved is read, not touched.
	text = "*** Begin Patch\n*** Update File: link\n*** Move to: b\n-t\n+T\n*** End Patch\n"
	if diff := cmp.Diff([]string{"/w/b", "/w/link"}, planFor(t, mem, workDir, text).Paths()); diff != "" {
		t.Errorf("paths of a moved link (-want +got):\n%s", diff)
	}
}

func TestDiffFormat(t *testing.T) {
	mem := NewMem(mixedFiles)
	mem.Put("/w/bin", "x\x00\n", 0o755)
	mem.Put("/else/o.txt", "o\n", 0o644)
	mem.Put("/w/link", "a.txt", 0o777|os.ModeSymlink)
	text := strings.Replace(mixedPatch, "*** End Patch\n", "*** Update File: bin\n x\x00\n+y\n*** Update File: /else/o.txt\n-o\n+p\n*** Delete File: link\n*** End Patch\n", 1)
	want := `diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+n
diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-a
+A
diff --git a/m.txt b/sub/moved.txt
rename from m.txt
rename to sub/moved.txt
--- a/m.txt
+++ b/sub/moved.txt
@@ -1,2 +1,2 @@
 one
-two
+2
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/bin b/bin
Binary files a/bin and b/bin differ
diff --git a/else/o.txt b/else/o.txt
--- a/else/o.txt
+++ b/else/o.txt
@@ -1 +1 @@
-o
+p
diff --git a/link b/link
deleted file mode 120000
--- a/link
+++ /dev/null
@@ -1 +0,0 @@
-a.txt
\ No newline at end of file
`
	if diff := cmp.Diff(want, planFor(t, mem, workDir, text).Diff(workDir)); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
}

// git is the judge: what it makes of the diff is what the patch makes.
func TestGitAcceptsDiff(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	files, text := twentyFiles()
	ours, theirs := realDir(t), realDir(t)
	for name, data := range files {
		write(t, filepath.Join(ours, name), data, 0o644)
		write(t, filepath.Join(theirs, name), data, 0o644)
	}
	for _, dir := range []string{ours, theirs} {
		if err := os.Symlink("u/f0", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		// A file that cannot be in its way: git does not rename over another.
		if err := os.Remove(filepath.Join(dir, "m/over")); err != nil {
			t.Fatal(err)
		}
	}
	plan := planFor(t, OS{}, ours, text)
	applyPlan(t, OS{}, plan)
	cmd := exec.Command("git", "apply", "--unsafe-paths", "-")
	cmd.Dir = theirs
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(theirs))
	cmd.Stdin = strings.NewReader(plan.Diff(ours))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s\n%s", err, out, plan.Diff(ours))
	}
	want := map[string]string{}
	for _, path := range []string{ours} {
		for _, f := range plan.Files {
			if f.After != nil {
				rel, _ := filepath.Rel(path, f.Path)
				want[rel] = f.After.Data
			}
		}
	}
	want["old/last"] = "last\n"
	expectFiles(t, ours, want)
	expectFiles(t, theirs, want)
}

func TestCombineIsTheSum(t *testing.T) {
	mem := NewMem(map[string]string{"/w/a.txt": "a\n", "/w/b.txt": "b\n", "/w/c.txt": "c\n"})
	before := dump(mem)
	var plans []*Plan
	for _, body := range []string{
		"*** Update File: a.txt\n-a\n+1\n*** Update File: b.txt\n*** Move to: x/b2.txt\n-b\n+B\n*** Add File: t.txt\n+t\n",
		"*** Update File: a.txt\n-1\n+2\n*** Update File: x/b2.txt\n*** Move to: x/b3.txt\n B\n+more\n*** Delete File: t.txt\n",
		"*** Update File: c.txt\n-c\n+C\n*** Add File: b.txt\n+fresh\n",
		"*** Update File: c.txt\n-C\n+c\n*** Delete File: b.txt\n",
	} {
		plan := planFor(t, mem, workDir, "*** Begin Patch\n"+body+"*** End Patch\n")
		applyPlan(t, mem, plan)
		plans = append(plans, plan)
	}
	sum := Combine(plans...)
	want := `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-a
+2
diff --git a/b.txt b/x/b3.txt
rename from b.txt
rename to x/b3.txt
--- a/b.txt
+++ b/x/b3.txt
@@ -1 +1,2 @@
-b
+B
+more
`
	if diff := cmp.Diff(want, sum.Diff(workDir)); diff != "" {
		t.Errorf("diff of the sum (-want +got):\n%s", diff)
	}
	takeBack(t, mem, sum, before)
	applyPlan(t, mem, sum)
	if diff := cmp.Diff(map[string]string{"/w/a.txt": "2\n", "/w/c.txt": "c\n", "/w/x/b3.txt": "B\nmore\n"}, contents(mem)); diff != "" {
		t.Errorf("the sum applied at once (-want +got):\n%s", diff)
	}
}

func TestCombineOfNothing(t *testing.T) {
	if sum := Combine(); len(sum.Files) != 0 || sum.Diff("/") != "" {
		t.Errorf("got %+v", sum)
	}
}

func TestPlanKeepsBytesInJSON(t *testing.T) {
	plan := &Plan{Files: []File{{
		Path: "/a", Name: "a",
		Before: &Content{Data: "\xff\x00\r\n", Mode: 0o640},
		After:  &Content{Data: "text\r\n\u2028", Mode: 0o755},
	}, {
		Path: "/l", Name: "l", Before: &Content{Link: "../x"},
	}}}
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var got Plan
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, &got); diff != "" {
		t.Errorf("plan (-made +read):\n%s\n%s", diff, data)
	}
}

func TestRecordSurvivesJSON(t *testing.T) {
	rec := planFor(t, NewMem(mixedFiles), workDir, mixedPatch).Record()
	data, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	var got Record
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rec, got); diff != "" {
		t.Errorf("record (-made +read):\n%s", diff)
	}
	for _, s := range rec.Steps {
		for _, path := range []string{s.New, s.Old} {
			if path != "" && filepath.Dir(path) != filepath.Dir(s.Path) {
				t.Errorf("%s is not beside %s", path, s.Path)
			}
		}
	}
}

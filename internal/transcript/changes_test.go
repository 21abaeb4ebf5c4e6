package transcript

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

var changes = json.RawMessage(`{"/w/new":{"add":{"content":"a\nb"}},"/w/old":"delete","/x/far":{"add":{"content":""}},` +
	`"/w/mod":{"update":{"unified_diff":"@@ -1,2 +1,3 @@\n a\n--- b\n+b\n+c\n","move_path":"/w/to"}},"/w/odd":{"later":{}},"/w/odder":7}`)

func TestChanges(t *testing.T) {
	want := []Change{
		{Path: "/w/mod", Kind: "update", Move: "/w/to", Added: 2, Removed: 1, Diff: "@@ -1,2 +1,3 @@\n a\n--- b\n+b\n+c\n"},
		{Path: "/w/new", Kind: "add", Added: 2, Diff: "+a\n+b\n\\ No newline at end of file\n"},
		{Path: "/w/old", Kind: "delete"},
		{Path: "/x/far", Kind: "add"},
	}
	got := Changes(changes)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var lines []string
	for _, c := range got {
		lines = append(lines, c.Line("/w"))
	}
	if d := cmp.Diff("M mod → to (+2 -1)|A new (+2 -0)|D old|A /x/far", strings.Join(lines, "|")); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
	if Changes(nil) != nil || Changes(json.RawMessage("7")) != nil || got[2].Line("") != "D /w/old" {
		t.Error("nothing, nonsense, or no directory")
	}
}

func TestPatchItem(t *testing.T) {
	begun := []p.Body{
		&p.TurnStarted{}, &p.ToolCall{Call: call, Name: "apply_patch"}, &p.CallStarted{Call: call},
	}
	applied := &p.PatchResult{Applied: true, Diff: "d"}
	for name, tt := range map[string]struct {
		events []p.Body
		status Status
		patch  *p.PatchResult
	}{
		"asking": {[]p.Body{&p.ApprovalRequested{Call: call, Kind: p.ApprovePatch, Detail: changes}}, Asking, nil},
		"begun":  {[]p.Body{&p.PatchStarted{Call: call, Changes: changes}}, Open, nil},
		"done":   {[]p.Body{&p.PatchStarted{Call: call, Changes: changes}, &p.ToolOutput{Call: call, Patch: applied}, &p.TurnDiff{Diff: "d"}}, Done, applied},
		"cut":    {[]p.Body{&p.PatchStarted{Call: call, Changes: changes}, &p.ToolOutput{Call: call, Aborted: true, Patch: &p.PatchResult{}}}, Interrupted, &p.PatchResult{}},
	} {
		tr := fold(append(begun[:3:3], tt.events...)...)
		it := tr.Items[0]
		if len(tr.Items) != 1 || it.Status != tt.status || len(it.Changes) != 4 || !cmp.Equal(it.Patch, tt.patch) {
			t.Errorf("%s: %d items, %s, changes %v, patch %+v", name, len(tr.Items), it.Status, it.Changes, it.Patch)
		}
		if (tr.Diff == "d") != (name == "done") {
			t.Errorf("%s: diff %q", name, tr.Diff)
		}
	}
}

// A patch is not a command that was killed.
func TestEndLineDoesNotCountPatches(t *testing.T) {
	tr := fold(&p.TurnStarted{}, &p.ToolCall{Call: call}, &p.ToolOutput{Call: call, Aborted: true, Output: "aborted", Patch: &p.PatchResult{}},
		&p.TurnEnded{Reason: p.Interrupted})
	if d := cmp.Diff("call interrupted | aborted\nend done | interrupted after 0 ms\n", show(tr)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// What waited for a person, or for its place in the line, was not killed.
func TestEndLineDoesNotCountWhatDidNotRun(t *testing.T) {
	second := p.CallID{Turn: 1, Response: 1, Index: 2}
	tr := fold(&p.TurnStarted{}, &p.ToolCall{Call: call}, &p.ToolCall{Call: second}, &p.CallStarted{Call: call},
		&p.ApprovalRequested{Call: call, Command: []string{"rm"}}, &p.StopRequested{Reason: p.Interrupted},
		&p.ToolOutput{Call: call, Aborted: true}, &p.ToolOutput{Call: second, Aborted: true}, &p.TurnEnded{Reason: p.Interrupted})
	if d := cmp.Diff("call interrupted | rm\ncall interrupted\nend done | interrupted after 0 ms\n", show(tr)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestUndoItem(t *testing.T) {
	tr := fold(&p.PatchStarted{Patch: "u", Undoes: 2, Changes: changes}, &p.PatchCommitted{Patch: "u"},
		&p.Undone{Of: 2, Patch: "u", Files: []string{"/w/a", "/w/b"}}, &p.Undone{Of: 1})
	want := "notice done | what turn 2 changed in files was undone: /w/a, /w/b\nnotice done | what turn 1 changed in files was undone\n"
	if d := cmp.Diff(want, show(tr)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	tr.Apply(p.Event{Body: &p.TurnDiff{Diff: "d"}})
	if tr.Apply(p.Event{Turn: 2, Body: &p.TurnStarted{}}); tr.Diff != "" {
		t.Error("a new turn begins with the diff of the last")
	}
}

const turnDiff = `diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+n
diff --git a/m.txt b/sub/moved.txt
rename from m.txt
rename to sub/moved.txt
--- a/m.txt
+++ b/sub/moved.txt
@@ -1,2 +1,2 @@
 one
--- two
+2
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/bin b/bin
Binary files a/bin and b/bin differ
`

func TestParseDiff(t *testing.T) {
	want := []Change{
		{Path: "new.txt", Kind: "add", Added: 1, Diff: "@@ -0,0 +1 @@\n+n\n"},
		{Path: "m.txt", Kind: "update", Move: "sub/moved.txt", Added: 1, Removed: 1, Diff: "@@ -1,2 +1,2 @@\n one\n--- two\n+2\n"},
		{Path: "gone.txt", Kind: "delete", Removed: 1, Diff: "@@ -1 +0,0 @@\n-gone\n"},
		{Path: "bin", Kind: "update", Diff: "Binary files a/bin and b/bin differ\n"},
	}
	if d := cmp.Diff(want, ParseDiff(turnDiff)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := ParseDiff("no diff\n@@ -1 +1 @@\n+x\n"); got != nil {
		t.Errorf("nonsense is %+v", got)
	}
}

// An applied patch shows what was in the files that it deleted.
func TestAppliedPatchHasItsDiff(t *testing.T) {
	raw := json.RawMessage(`{"/w/gone.txt":"delete","/w/m.txt":{"update":{"unified_diff":"@@ -2 +2 @@\n-two\n+2\n","move_path":"/w/sub/moved.txt"}}}`)
	tr := fold(&p.TurnStarted{}, &p.PatchStarted{Call: call, Cwd: "/w", Changes: raw},
		&p.ToolOutput{Call: call, Patch: &p.PatchResult{Applied: true, Diff: turnDiff}})
	want := []Change{
		{Path: "/w/gone.txt", Kind: "delete", Removed: 1, Diff: "@@ -1 +0,0 @@\n-gone\n"},
		{Path: "/w/m.txt", Kind: "update", Move: "/w/sub/moved.txt", Added: 1, Removed: 1, Diff: "@@ -1,2 +1,2 @@\n one\n--- two\n+2\n"},
	}
	if d := cmp.Diff(want, tr.Items[0].Changes); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestEndLineCountsFiles(t *testing.T) {
	second := p.CallID{Turn: 1, Response: 1, Index: 2}
	patch := func(c p.CallID, path string, applied bool) []p.Body {
		raw := json.RawMessage(`{"` + path + `":{"add":{"content":"x\n"}}}`)
		return []p.Body{&p.PatchStarted{Call: c, Changes: raw}, &p.ToolOutput{Call: c, Patch: &p.PatchResult{Applied: applied}}}
	}
	stop := &p.TurnEnded{Reason: p.Interrupted, Elapsed: 12 * time.Second}
	for name, tt := range map[string]struct {
		events []p.Body
		want   string
	}{
		"one patch twice": {append(patch(call, "/w/a", true), patch(second, "/w/a", true)...), "1 file changed"},
		"two files":       {append(patch(call, "/w/a", true), patch(second, "/w/b", true)...), "2 files changed"},
		"not applied":     {patch(call, "/w/a", false), ""},
		"the diff knows":  {append(patch(call, "/w/a", true), &p.TurnDiff{Diff: turnDiff}), "4 files changed"},
		"changed back":    {append(patch(call, "/w/a", true), &p.TurnDiff{}), ""},
	} {
		tr := fold(append(append([]p.Body{&p.TurnStarted{}}, tt.events...), stop)...)
		want := "interrupted after 12 s"
		if tt.want != "" {
			want += " · " + tt.want
		}
		if got := tr.Items[len(tr.Items)-1].Text; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		tr.Apply(p.Event{Turn: 2, Body: &p.TurnStarted{}})
		if tr.files() != 0 {
			t.Errorf("%s: a new turn begins with %d files", name, tr.files())
		}
		for _, b := range patch(second, "/w/c", true) {
			tr.Apply(p.Event{Turn: 2, Body: b})
		}
		if tr.files() != 1 {
			t.Errorf("%s: a new turn with a patch has %d files", name, tr.files())
		}
	}
}

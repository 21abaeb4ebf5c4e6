package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

var changes = json.RawMessage(`{"/w/new":{"add":{"content":"a\nb"}},"/w/old":"delete","/x/far":{"add":{"content":""}},` +
	`"/w/mod":{"update":{"unified_diff":"@@ -1,2 +1,3 @@\n a\n--- b\n+b\n+c\n","move_path":"/w/to"}},"/w/odd":{"later":{}},"/w/odder":7}`)

func TestChanges(t *testing.T) {
	want := []Change{
		{Path: "/w/mod", Kind: "update", Move: "/w/to", Added: 2, Removed: 1},
		{Path: "/w/new", Kind: "add", Added: 2},
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
		"cut":    {[]p.Body{&p.PatchStarted{Call: call, Changes: changes}, &p.ToolOutput{Call: call, Aborted: true, Patch: &p.PatchResult{}}}, Cut, &p.PatchResult{}},
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
	if d := cmp.Diff("call cut | aborted\nend done | stopped after 0 ms\n", show(tr)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestUndoItem(t *testing.T) {
	tr := fold(&p.PatchStarted{Patch: "u", Undoes: 2, Changes: changes}, &p.PatchCommitted{Patch: "u"},
		&p.Undone{Of: 2, Patch: "u", Files: []string{"/w/a", "/w/b"}}, &p.Undone{Of: 1})
	want := "notice done | what turn 2 changed in files was taken back: /w/a, /w/b\nnotice done | what turn 1 changed in files was taken back\n"
	if d := cmp.Diff(want, show(tr)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	tr.Apply(p.Event{Body: &p.TurnDiff{Diff: "d"}})
	if tr.Apply(p.Event{Turn: 2, Body: &p.TurnStarted{}}); tr.Diff != "" {
		t.Error("a new turn begins with the diff of the last")
	}
}

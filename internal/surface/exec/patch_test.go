package exec

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

var changes = json.RawMessage(`{"/w/a.go":{"update":{"unified_diff":"@@ -1 +1 @@\n-a\n+b\n","move_path":null}},"/w/b":"delete"}`)

// startPatch runs a call that has begun to apply a patch.
func startPatch(t *testing.T, r *run, changes json.RawMessage) *enginetest.Run {
	t.Helper()
	m := r.e.Request()
	m.Call("c", "work", `{"input":"…"}`)
	m.End()
	w := r.e.Run()
	if err := w.Call.Host.Record(t.Context(), &p.PatchStarted{Patch: "p", Call: w.Call.ID, Cwd: "/w", Changes: changes}); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestPrintPatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		startPatch(t, r, changes).Return(p.ToolOutput{Output: "done", Patch: &p.PatchResult{Applied: true}})
		startPatch(t, r, changes).Return(p.ToolOutput{Output: "no room\nNothing was applied.", Failed: true, Patch: &p.PatchResult{}})
		r.e.Request().Answer("Changed.")
		r.want(t, "Changed.\n", "$ apply_patch\n  M a.go (+1 -1)\n  D b\n  (ok, 0 ms)\n"+
			"$ apply_patch\n  M a.go (+1 -1)\n  D b\n  (failed: no room, 0 ms)\n")
	})
}

func TestPrintPatchOfManyFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []string
		for i := range 23 {
			many = append(many, fmt.Sprintf(`"/w/%02d":"delete"`, i))
		}
		r := start(t, nil)
		startPatch(t, r, json.RawMessage("{"+strings.Join(many, ",")+"}")).Return(p.ToolOutput{Patch: &p.PatchResult{Applied: true}})
		r.e.Request().Answer("Changed.")
		<-r.done
		if got := r.err.String(); !strings.Contains(got, "  D 19\n  … 3 more files\n  (ok") {
			t.Errorf("printed\n%s", got)
		}
	})
}

func TestJSONOfPatches(t *testing.T) {
	const shape = `{"type":"item.%s","item":{"id":"item_%d","type":"file_change","changes":[{"path":"/w/a.go","kind":"update"},{"path":"/w/b","kind":"delete"}],"status":"%s"}}`
	synctest.Test(t, func(t *testing.T) {
		r := start(t, asJSON)
		startPatch(t, r, changes).Return(p.ToolOutput{Output: "done", Patch: &p.PatchResult{Applied: true}})
		startPatch(t, r, changes).Return(p.ToolOutput{Output: "no room", Failed: true, Patch: &p.PatchResult{}})
		m := r.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		r.e.Run().Question(p.ApprovalRequested{Kind: p.ApprovePatch, Reason: "outside", Detail: changes})
		r.e.Request().Answer("Changed.")
		r.wantLines(t,
			fmt.Sprintf(shape, "started", 0, "in_progress"), fmt.Sprintf(shape, "completed", 0, "completed"),
			fmt.Sprintf(shape, "started", 1, "in_progress"), fmt.Sprintf(shape, "completed", 1, "failed"),
			fmt.Sprintf(shape, "completed", 2, "failed"), // declined: there is no client
			`{"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"Changed."}}`,
			`{"type":"turn.completed","usage":{"input_tokens":140,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":4,"reasoning_output_tokens":0}}`)
	})
}

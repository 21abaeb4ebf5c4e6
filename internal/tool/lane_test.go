package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/internal/turn"
	"github.com/fermata-agent/fermata/protocol"
)

// What a call may run beside depends on its arguments and on the settings.
func TestLanes(t *testing.T) {
	sh := &Shell{CanAsk: true, Patch: &Patch{}}
	exec, write := &Exec{Shell: sh}, WriteStdin{}
	confinable := sandbox.Probe().Missing() == ""
	unlessConfined := func(l turn.Lane) turn.Lane {
		if confinable {
			return turn.Beside
		}
		return l
	}
	asking := protocol.Settings{Cwd: "/w", Approval: protocol.ApprovalUntrusted, Sandbox: protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite}}
	confined, full, never := asking, asking, asking
	confined.Approval = protocol.ApprovalOnRequest
	full.Approval, full.Sandbox.Mode = protocol.ApprovalOnRequest, protocol.SandboxFullAccess
	never.Approval, never.Sandbox.Mode = protocol.ApprovalNever, protocol.SandboxReadOnly
	for _, tt := range []struct {
		name     string
		tool     Tool
		settings protocol.Settings
		args     string
		want     turn.Lane
	}{
		{"a safe command", exec, asking, `{"cmd":"ls -l"}`, turn.Beside},
		{"one that is not known to be safe", exec, asking, `{"cmd":"make"}`, turn.Asks},
		{"a confined one", exec, confined, `{"cmd":"make"}`, unlessConfined(turn.Asks)},
		{"one that asks to leave the sandbox", exec, confined, `{"cmd":"make","with_escalated_permissions":true}`, turn.Asks},
		{"one that asks in another form", exec, confined, `{"cmd":"make","sandbox_permissions":"require_escalated"}`, turn.Asks},
		{"one that asks for nothing", exec, confined, `{"cmd":"make","sandbox_permissions":"use_default"}`, unlessConfined(turn.Asks)},
		{"one that asks in no known form", exec, confined, `{"cmd":"make","sandbox_permissions":"all"}`, turn.Beside},
		{"an unconfined one", exec, full, `{"cmd":"make"}`, turn.Beside},
		{"one that is refused", exec, never, `{"cmd":"make"}`, turn.Beside},
		{"one that was approved for the session", exec, asking, `{"cmd":"echo approved > f"}`, turn.Beside},
		{"a patch", exec, full, `{"cmd":"apply_patch <<'E'\n*** Begin Patch\n*** Add File: a\n+a\n*** End Patch\nE"}`, turn.Alone},
		{"a script with a patch", exec, full, `{"cmd":"cd x; true && apply_patch p"}`, turn.Alone},
		{"no command", exec, full, `{"cmd":""}`, turn.Beside},
		{"no arguments", exec, full, `nonsense`, turn.Beside},
		{"a list", sh, full, `{"command":["make"]}`, turn.Beside},
		{"a list that asks", sh, asking, `{"command":["make"]}`, turn.Asks},
		{"a list with a patch", sh, full, `{"command":["apply_patch","*** Begin Patch\n*** End Patch"]}`, turn.Alone},
		{"no list", sh, full, `{}`, turn.Beside},
		{"typing", write, full, `{"session_id":3,"chars":"x"}`, "session 3"},
		{"typing by another name", write, full, `{"session":"3"}`, "session 3"},
		{"typing to nothing", write, full, `{}`, turn.Beside},
		{"a plan", Plan{}, full, `{}`, "plan"},
		{"a page", &Fetch{}, full, `{"url":"http://a"}`, turn.Beside},
		{"a page without a network", &Fetch{}, confined, `{"url":"http://a"}`, turn.Asks},
		{"a page that is refused", &Fetch{}, never, `{"url":"http://a"}`, turn.Beside},
		{"a file", &Read{}, full, `{}`, turn.Beside},
		{"a search", &Grep{}, full, `{}`, turn.Beside},
		{"a patch by its tool", &Patch{}, full, `{}`, turn.Alone},
		{"an edit", &Edit{}, full, `{}`, turn.Alone},
		{"a whole file", &Write{}, full, `{}`, turn.Alone},
		{"the user's own command", &UserShell{Shell: sh}, full, `{}`, turn.Alone},
	} {
		call := Call{Name: "x", Arguments: tt.args, Settings: tt.settings}
		var v struct {
			Cmd string `json:"cmd"`
		}
		if json.Unmarshal([]byte(tt.args), &v) == nil && v.Cmd == "echo approved > f" {
			call.Grants = policy.Grants{}.Answered(protocol.ApprovedForSession, []string{Interpreter(), "-c", v.Cmd}, "/w")
		}
		for _, as := range []Tool{tt.tool, Hidden(tt.tool)} {
			if got := LaneOf(as, call); got != tt.want {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
		}
	}
}

// Commands that run side by side may apply patches to one file at the same time: none is lost or refused, and the diff of the
// turn has them all.
func TestPatchesOfCommandsSideBySide(t *testing.T) {
	dir := t.TempDir()
	var lines []string
	for i := range 8 {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	patches := &Patch{Changes: &Changes{}}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			call := patchCall(&fakeHost{}, dir, "")
			call.inCommand = true
			text := fmt.Sprintf("*** Begin Patch\n*** Update File: f\n@@\n-line %d\n+LINE %d\n*** End Patch", i, i)
			if res := patches.apply(t.Context(), call, text, dir); res.Output.Failed {
				t.Errorf("patch %d: %s", i, res.Output.Output)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(filepath.Join(dir, "f"))
	if want := strings.ToUpper(strings.Join(lines, "\n") + "\n"); err != nil || string(text) != want {
		t.Errorf("the file is %q, %v", text, err)
	}
	if d := patches.Changes.diff(t.Context(), patchCall(&fakeHost{}, dir, "")); strings.Count(d.Diff, "\n+LINE") != 8 {
		t.Errorf("the diff is\n%s", d.Diff)
	}
}

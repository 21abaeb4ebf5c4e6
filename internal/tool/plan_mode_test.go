package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/protocol"
)

// In plan mode nothing that a person has allowed before lets a command write: no grant of the
// session, no permission of the project, and no answer to the call itself.
func TestPlanModeKeepsCommandsFromWriting(t *testing.T) {
	needSandbox(t)
	for name, allow := range map[string]func(*Call, *Shell){
		"nothing":  func(*Call, *Shell) {},
		"approved": func(c *Call, _ *Shell) { c.Grant = protocol.Approved },
		"session": func(c *Call, _ *Shell) {
			c.Grants = c.Grants.With([]string{"bash", "-lc", "touch ran"}, c.Settings.Cwd)
		},
		"project": func(_ *Call, s *Shell) {
			s.Prefixes = func(string) []policy.PrefixRule { return []policy.PrefixRule{policy.NewPrefix([]string{"touch"})} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, s := elsewhere(t), shell(t)
			c := confined(&fakeHost{}, dir, protocol.ApprovalOnRequest, protocol.SandboxFullAccess, sh("touch ran"))
			c.Settings.Plan = true
			c.Settings = c.Settings.ForTurn()
			allow(&c, s)
			res := s.Run(t.Context(), c)
			if res.Ask != nil {
				t.Errorf("asks %+v", res.Ask)
			}
			if refused := res.Output.Refused; !strings.HasPrefix(refused, "plan mode is on") || res.Output.RefusedFor != protocol.RefusedByPlanMode || !strings.HasSuffix(refused, filepath.Join(dir, "ran")) {
				t.Errorf("refused because %q", refused)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Error("a file was written")
			}
			c.Settings.Plan, c.Settings.Sandbox.Mode = false, protocol.SandboxFullAccess
			if s.Run(t.Context(), c); !exists(filepath.Join(dir, "ran")) {
				t.Error("the test shows nothing: without plan mode no file is written either")
			}
		})
	}
}

func TestPlanModeRefusesPatches(t *testing.T) {
	dir := realDir(t)
	for _, grant := range []protocol.Decision{"", protocol.Approved} {
		c := patchCall(&fakeHost{}, dir, add("in"))
		c.Settings.Approval, c.Settings.Plan, c.Grant = protocol.ApprovalOnRequest, true, grant
		c.Settings = c.Settings.ForTurn()
		res := (&Patch{}).Run(t.Context(), c)
		if res.Ask != nil || !res.Output.Failed || !strings.Contains(res.Output.Output, "plan mode is on") || exists(filepath.Join(dir, "in")) {
			t.Errorf("grant %q: %+v", grant, res)
		}
	}
}

// A command that was started before may write; so nothing is typed into it.
func TestPlanModeTypesNothing(t *testing.T) {
	h := &termHost{}
	background(t, h, "stty -echo; echo ready; read x; echo got $x; exec sleep 600")
	readUntil(t, h, "ready")
	c := typing(h, "hello\n", 0)
	c.Settings.Plan = true
	if res := (WriteStdin{}).Run(t.Context(), c); !res.Output.Failed {
		t.Errorf("typed: %+v", res.Output)
	}
	c = typing(h, "", 0)
	c.Settings.Plan = true
	if res := (WriteStdin{}).Run(t.Context(), c); res.Output.Failed {
		t.Errorf("its output cannot be read: %+v", res.Output)
	}
}

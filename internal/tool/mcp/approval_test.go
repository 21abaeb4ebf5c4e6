package mcp

import (
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/protocol"
)

func TestApprovalUnderLimits(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.list[0].opt.NoEscalation = true
	r.start(t)
	approved := func(c *tool.Call) {
		c.Grant = protocol.Approved
		c.Grants = c.Grants.AnsweredTool(protocol.ApprovedForSession, protocol.MCPTool{Server: "s", Name: "delete"})
	}
	res := r.call(t.Context(), t, "s__delete", "{}", approved)
	if !res.Output.Failed || !strings.Contains(res.Output.Output, "outside the sandbox") || strings.Contains(r.noted(), "deleted") {
		t.Errorf("%+v", res.Output)
	}
	if res := r.call(t.Context(), t, "s__echo", `{"text":"read-only"}`); res.Output.Output != "read-only" {
		t.Errorf("%+v", res.Output)
	}
	r.list[0].def.Approval = config.MCPAllow
	if res := r.call(t.Context(), t, "s__delete", "{}"); res.Output.Output != "deleted" {
		t.Errorf("%+v", res.Output)
	}
}

// TestHintsOfAProjectAreNotBelieved: its server would call everything read-only.
func TestHintsOfAProjectAreNotBelieved(t *testing.T) {
	def := self(t, "plain")
	def.Project = "/"
	r := open(t, map[string]config.MCPServer{"s": def})
	r.start(t)
	if res := r.call(t.Context(), t, "s__echo", `{"text":"x"}`); res.Ask == nil {
		t.Errorf("%+v", res.Output)
	}
	if tool.Find(r.Tools("/w", nil), "s__echo").ReadOnly() {
		t.Error("its calls run side by side")
	}
}

func TestAToolThatWasAllowedDoesNotAskAgain(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.start(t)
	approval := config.MCPAsk
	call := func() tool.Result {
		list := r.Tools("/w", func(project string, of protocol.MCPTool) config.MCPApproval {
			if project != "" || of != (protocol.MCPTool{Server: "s", Name: "delete"}) {
				t.Errorf("asked about %v of the project %q", of, project)
			}
			return approval
		})
		c := tool.Call{ID: protocol.CallID{Turn: 1, Response: 1}, Name: "s__delete", Arguments: "{}", Host: r}
		return tool.Run(t.Context(), tool.Find(list, "s__delete"), c)
	}
	if res := call(); res.Ask == nil {
		t.Errorf("%+v", res.Output)
	}
	approval = config.MCPAllow // somebody changes the configuration
	if res := call(); res.Output.Output != "deleted" {
		t.Errorf("%+v", res.Output)
	}
	approval = ""
	if res := call(); res.Ask == nil {
		t.Errorf("after it was revoked: %+v", res.Output)
	}
}

func TestStatus(t *testing.T) {
	fail := self(t, "fail")
	r := open(t, map[string]config.MCPServer{"fail": fail, "s": self(t, "plain")})
	for _, s := range r.Status(nil) {
		if s.State != NotStarted || s.Tools != nil {
			t.Errorf("%+v", s)
		}
	}
	list := r.Check(t.Context(), nil)
	if s := list[0]; s.State != Failed || s.Error != "it ended with exit code 3; it printed: no licence" {
		t.Errorf("%+v", s)
	}
	s := list[1]
	approvals := map[string]config.MCPApproval{}
	for _, one := range s.Tools {
		approvals[one.Name] = one.Approval
	}
	if s.State != Running || s.Program != "test 1" || s.Took == "" || approvals["echo"] != config.MCPAllow || approvals["delete"] != config.MCPAsk {
		t.Errorf("%+v", s)
	}
	r.call(t.Context(), t, "s__die", "{}")
	if s := r.Status(nil)[1]; s.State != Failed || s.Log != "out of luck" || len(s.Tools) == 0 {
		t.Errorf("%+v", s)
	}
	text := Describe(r.Status(nil))
	for _, want := range []string{"fail: failed\n  last error: it ended with exit code 3", "s: failed, test 1\n  allow: ", "\n  ask: delete\n", "it printed:\n    out of luck\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nwant in it %s", text, want)
		}
	}
}

func TestPlanModeCallsOnlyWhatReads(t *testing.T) {
	def := self(t, "plain")
	def.Approval = config.MCPAllow
	r := open(t, map[string]config.MCPServer{"s": def})
	r.start(t)
	plan := func(c *tool.Call) { c.Settings.Plan = true }
	if res := r.call(t.Context(), t, "s__delete", "{}", plan); !res.Output.Failed || strings.Contains(r.noted(), "deleted") {
		t.Errorf("%+v", res.Output)
	}
	if res := r.call(t.Context(), t, "s__echo", `{"text":"read-only"}`, plan); res.Output.Output != "read-only" {
		t.Errorf("%+v", res.Output)
	}
}

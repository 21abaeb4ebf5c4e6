package prompt

import (
	"strings"
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

// The instructions are long enough to be of use and short enough to be read, and
// name only tools that the model has.
func TestInstructions(t *testing.T) {
	for _, family := range []string{"gpt-5", "claude", "qwen"} {
		for _, patches := range []bool{false, true} {
			text := Instructions(family, patches)
			if len(text) < 4000 || len(text) > 8000 {
				t.Errorf("%s: %d bytes", family, len(text))
			}
			if strings.Contains(text, "`apply_patch`") != patches || strings.Contains(text, "`edit`") == patches {
				t.Errorf("%s with patches %t names a tool that it does not have", family, patches)
			}
			for _, topic := range []string{
				"# Working", "`rg`", "library", "# Git", "not yours", "reset --hard", "# Finishing", "plan", "<turn_aborted>", "summary of earlier work",
				"does not see the output", "`path:line`", "review", "comments", "ASCII", "arrives while you work", "in the background", "`AGENTS.md`",
			} {
				if !strings.Contains(text, topic) {
					t.Errorf("%s: nothing about %s", family, topic)
				}
			}
		}
	}
}

func TestEnvironment(t *testing.T) {
	first := p.Settings{
		Cwd: "/w", Approval: p.ApprovalOnRequest, Sandbox: p.SandboxPolicy{Mode: p.SandboxWorkspaceWrite, WritableRoots: []string{"/x"}},
		Environment: p.Environment{Shell: "bash", OS: "linux", Date: "2026-11-16", TimeZone: "UTC", Git: "repository, branch main"},
	}
	change := func(f func(*p.Settings)) p.Settings { s := first; f(&s); return s }
	all := "<environment_context>\n  <cwd>/w</cwd>\n  <approval_policy>on-request</approval_policy>\n  <sandbox_mode>workspace-write</sandbox_mode>\n" +
		"  <network_access>restricted</network_access>\n  <writable_roots>/w, /x, /tmp, $TMPDIR</writable_roots>\n  <shell>bash</shell>\n" +
		"  <operating_system>linux</operating_system>\n  <current_date>2026-11-16</current_date>\n  <time_zone>UTC</time_zone>\n" +
		"  <git_repository>repository, branch main</git_repository>\n  <permissions>\n" + permissions(first) + "  </permissions>\n</environment_context>"
	for _, tt := range []struct {
		name string
		old  p.Settings
		now  p.Settings
		want string
	}{
		{"all", p.Settings{}, first, all},
		{"nothing", first, first, ""},
		{"only git", first, change(func(s *p.Settings) { s.Environment.Git = "repository, branch other" }), ""},
		{
			"the date, and git with it", first, change(func(s *p.Settings) { s.Environment.Git, s.Environment.Date = "no repository", "2026-11-17" }),
			"<environment_context>\n  <current_date>2026-11-17</current_date>\n  <git_repository>no repository</git_repository>\n</environment_context>",
		},
		{"nothing is known", p.Settings{}, p.Settings{Cwd: "/w"}, "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"},
	} {
		if got := Environment(tt.old, tt.now); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
	plan := change(func(s *p.Settings) { s.Plan = true })
	if got := Environment(first, plan); !strings.Contains(got, "Plan mode is on") || !strings.Contains(got, ">read-only<") || strings.Contains(got, "with_escalated_permissions") {
		t.Errorf("plan mode is told as %s", got)
	}
	if got := Environment(plan, first); !strings.Contains(got, ">workspace-write<") || strings.Contains(got, "Plan mode") {
		t.Errorf("the end of plan mode is told as %s", got)
	}
	never := change(func(s *p.Settings) { s.Approval = p.ApprovalNever })
	if got := Environment(first, never); !strings.Contains(got, "No approval can be requested") || strings.Contains(got, "with_escalated_permissions") {
		t.Errorf("a change of the policy is told as %s", got)
	}
}

// Each pair of policies has words of its own.
func TestPermissions(t *testing.T) {
	seen := map[string]string{}
	for mode := range modes {
		for policy := range policies {
			text := permissions(p.Settings{Sandbox: p.SandboxPolicy{Mode: mode}, Approval: policy})
			name := string(mode) + " " + string(policy)
			same := seen[text]
			if same != "" && mode != p.SandboxFullAccess || text == "" {
				t.Errorf("%s has the words of %q", name, same)
			}
			seen[text] = name
		}
	}
}

package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

func preset(t *testing.T, name string) Preset {
	t.Helper()
	for _, pr := range Presets {
		if pr.Name == name {
			return pr
		}
	}
	t.Fatalf("there is no preset %q", name)
	return Preset{}
}

// Choosing a preset loses neither what is configured of writable directories and the
// network, nor what the conversation has of it.
func TestPresetKeepsTheDetailsOfTheSandbox(t *testing.T) {
	cfg, _, err := config.Load(config.Options{
		Home: t.TempDir(), Cwd: "/w", Env: func(string) string { return "" },
		Overrides: []string{`sandbox_mode="read-only"`, `sandbox_workspace_write.writable_roots=["/more"]`, "sandbox_workspace_write.network_access=true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	configured := p.SandboxPolicy{Mode: p.SandboxWorkspaceWrite, WritableRoots: []string{"/more"}, NetworkAccess: true}
	own := p.SandboxPolicy{Mode: p.SandboxWorkspaceWrite, WritableRoots: []string{"/own"}, ExcludeSlashTmp: true}
	begun := cfg.Settings(config.Choice{}, "/w", "")
	ownReadOnly := own
	ownReadOnly.Mode = p.SandboxReadOnly
	for name, tt := range map[string]struct {
		now    p.Settings
		preset string
		want   p.SandboxPolicy
	}{
		"configured, from read-only":        {begun, "workspace", configured},
		"its own, in the same mode":         {p.Settings{Sandbox: own}, "on failure", own},
		"its own, to read-only":             {p.Settings{Sandbox: own}, "read-only", ownReadOnly},
		"its own, to read-only and back":    {p.Settings{Sandbox: ownReadOnly}, "workspace", own},
		"full access needs no details":      {begun, "full access", p.SandboxPolicy{Mode: p.SandboxFullAccess}},
		"configured, from full access":      {p.Settings{Sandbox: p.SandboxPolicy{Mode: p.SandboxFullAccess}}, "workspace", configured},
		"nothing of its own, the same mode": {p.Settings{Sandbox: p.SandboxPolicy{Mode: p.SandboxWorkspaceWrite}}, "on failure", p.SandboxPolicy{Mode: p.SandboxWorkspaceWrite}},
	} {
		pr := preset(t, tt.preset)
		o := pr.Overrides(tt.now, cfg)
		if d := cmp.Diff(tt.want, *o.Sandbox); d != "" || *o.Approval != pr.Approval {
			t.Errorf("%s: approval %s (-want +got):\n%s", name, *o.Approval, d)
		}
	}
}

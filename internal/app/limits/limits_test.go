package limits

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

func loadFor(t *testing.T, overrides ...string) *config.Config {
	t.Helper()
	env := map[string]string{"HOME": t.TempDir()}
	cfg, _, err := config.Load(config.Options{Cwd: t.TempDir(), Env: func(name string) string { return env[name] }, Overrides: overrides})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func limitsFrom(t *testing.T, text string, o Options, overrides ...string) (Limiter, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "requirements.toml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return New(file, o, loadFor(t, overrides...))
}

func TestRequirements(t *testing.T) {
	l, err := limitsFrom(t, `
allowed_sandbox_modes = ["read-only", "workspace-write"]
allowed_approval_policies = ["untrusted", "on-request"]
allowed_providers = ["openai"]
allow_escalation = false
allow_key_requests = false
`, Options{ShareKey: true})
	if err != nil || l.ShareKey || !l.NoEscalation {
		t.Fatalf("%+v, %v", l, err)
	}
	good := p.Settings{Cwd: "/", Provider: "openai", Approval: p.ApprovalOnRequest, Sandbox: p.SandboxPolicy{Mode: p.SandboxWorkspaceWrite}}
	if err := l.Allow(good); err != nil {
		t.Error(err)
	}
	bad := good
	bad.Sandbox.Mode = p.SandboxFullAccess
	if err := l.Allow(bad); err == nil || !strings.Contains(err.Error(), "requirements.toml") {
		t.Errorf("got %v", err)
	}
	// What the user did not ask for is made strict enough; what the user asked for is refused.
	if s, notes, err := l.Settle(bad, p.Overrides{}); err != nil || s.Sandbox.Mode != p.SandboxWorkspaceWrite || len(notes) != 1 {
		t.Errorf("%+v, %q, %v", s, notes, err)
	}
	if _, _, err := l.Settle(bad, p.Overrides{Sandbox: &bad.Sandbox}); err == nil {
		t.Error("what was asked for was changed in silence")
	}
	if l, err := New(filepath.Join(t.TempDir(), "none"), Options{}, loadFor(t)); err != nil || l.Allow(bad) != nil {
		t.Errorf("without a file: %+v, %v", l, err)
	}
}

// A limit that is not understood must not become none.
func TestRequirementsThatAreWrong(t *testing.T) {
	for _, text := range []string{
		`allowed_sandbox_modes = ["readonly"]`, `allowed_approval_policies = ["always"]`, `allowed_sandbox_mode = ["read-only"]`,
		`allowed_directories = ["/no/such/directory"]`, `not toml`, `allow_escalation = "no"`,
		`allowed_sandbox_modes = []`, `allowed_approval_policies = []`, `allowed_providers = []`, `allowed_key_variables = []`, `allowed_directories = []`,
	} {
		if _, err := limitsFrom(t, text, Options{}); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	for _, o := range []Options{{MaxSandbox: "none"}, {MinApproval: "always"}, {Dirs: []string{"/no/such/directory"}}} {
		if _, err := limitsFrom(t, "", o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// What the command line says in so many words, no client exceeds; what the
// configuration says, a client may.
func TestImpliedLimits(t *testing.T) {
	full := p.Settings{Cwd: "/", Approval: p.ApprovalNever, Sandbox: p.SandboxPolicy{Mode: p.SandboxFullAccess}}
	for _, tt := range []struct {
		clients   bool
		overrides []string
		ok        bool
	}{
		{true, nil, true},
		{true, []string{`sandbox_mode="read-only"`}, false},
		{true, []string{`approval_policy="untrusted"`}, false},
		{true, []string{`sandbox_mode="danger-full-access"`, `approval_policy="never"`}, true},
		{false, []string{`sandbox_mode="read-only"`}, true},
	} {
		l, err := limitsFrom(t, "", Options{Clients: tt.clients}, tt.overrides...)
		if err != nil || (l.Allow(full) == nil) != tt.ok {
			t.Errorf("%+v: %v, %v", tt, l.Allow(full), err)
		}
	}
}

// What a client may raise beside the settings of a conversation: its own commands, undo, lasting permissions.
func TestWhatClientsMayRaise(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for name, tt := range map[string]struct {
		o                           Options
		sandbox                     string // that the command line names
		confined, undoes, permanent bool
	}{
		"no limits":            {Options{Clients: true}, "", false, true, true},
		"read-only":            {Options{Clients: true}, "read-only", true, false, true},
		"workspace-write":      {Options{Clients: true}, "workspace-write", true, true, true},
		"full access":          {Options{Clients: true}, "danger-full-access", false, true, true},
		"terminal UI":          {Options{}, "read-only", false, true, true},
		"--max-sandbox":        {Options{Clients: true, MaxSandbox: "read-only"}, "", true, false, false},
		"--max-sandbox, wider": {Options{Clients: true, MaxSandbox: "workspace-write"}, "", true, true, false},
		"--min-approval":       {Options{Clients: true, MinApproval: "on-request"}, "", false, true, false},
	} {
		cfg, _, err := config.Load(config.Options{Home: t.TempDir(), Cwd: t.TempDir(), Env: func(string) string { return "" }, Flags: config.Flags{Sandbox: tt.sandbox}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := New(none, tt.o, cfg)
		if err != nil || l.ConfineUser != tt.confined || (l.AllowUndo() == nil) != tt.undoes || (l.AllowPermission() == nil) != tt.permanent {
			t.Errorf("%s: %v, confined %v, undo: %v, permission: %v", name, err, l.ConfineUser, l.AllowUndo(), l.AllowPermission())
		}
	}
}

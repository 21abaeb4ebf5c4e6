package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/protocol"
)

func TestSettings(t *testing.T) {
	home := t.TempDir()
	write(t, home+"/base.md", "\nyou are a cook\n")
	c := load(t, `
model = "m"
model_provider = "ollama"
model_reasoning_effort = "high"
model_reasoning_summary = "auto"
model_verbosity = "low"
model_context_window = 1000
approval_policy = "untrusted"
sandbox_mode = "workspace-write"
sandbox_workspace_write = { writable_roots = ["/r"], network_access = true, exclude_tmpdir_env_var = true, exclude_slash_tmp = true }
instructions = " be brief "
experimental_instructions_file = "base.md"
`, Options{Home: home})
	want := protocol.Settings{
		Cwd: "/w", Provider: "ollama", Model: "m", Effort: "high", Summary: "auto", Verbosity: "low", ContextWindow: 1000,
		Approval: protocol.ApprovalUntrusted,
		Sandbox: protocol.SandboxPolicy{
			Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{"/r"}, NetworkAccess: true, ExcludeTmpdirEnvVar: true, ExcludeSlashTmp: true,
		},
		Instructions: "you are a cook", UserInstructions: "be brief\n\ndocs",
	}
	if diff := cmp.Diff(want, c.Settings(Choice{}, "/w", "docs")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.Provider, want.Model, want.UserInstructions = "x", "y", "be brief"
	if diff := cmp.Diff(want, c.Settings(Choice{Provider: Provider{ID: "x"}, Model: "y"}, "/w", "")); diff != "" {
		t.Errorf("with a choice (-want +got):\n%s", diff)
	}
	want.Approval = protocol.ApprovalNever
	if diff := cmp.Diff(want, c.ExecSettings(Choice{Provider: Provider{ID: "x"}, Model: "y"}, "/w", "")); diff != "" {
		t.Errorf("exec (-want +got):\n%s", diff)
	}
}

func TestSettingsByDefault(t *testing.T) {
	c := load(t, "sandbox_workspace_write.network_access = true", Options{})
	want := protocol.Settings{
		Cwd: "/w", Approval: protocol.ApprovalOnRequest, UserInstructions: "docs",
		Sandbox: protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, // details of another mode do not count
	}
	if diff := cmp.Diff(want, c.Settings(Choice{}, "/w", "docs")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.Provider, want.Model = Demo, "m"
	want.Sandbox = protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{}, NetworkAccess: true}
	demo := Choice{Provider: Provider{ID: Demo}, Model: "m"}
	if diff := cmp.Diff(want, c.Settings(demo, "/w", "docs")); diff != "" {
		t.Errorf("of the demo (-want +got):\n%s", diff)
	}
	c = load(t, "sandbox_mode = 'read-only'", Options{})
	if mode := c.Settings(demo, "/w", "").Sandbox.Mode; mode != protocol.SandboxReadOnly {
		t.Errorf("the demo has %s although the user wants it otherwise", mode)
	}
}

// What the file says of limits counts with and without a user; only the default differs.
func TestOnLimit(t *testing.T) {
	for _, tt := range []struct {
		text          string
		run, attended protocol.OnLimit
	}{
		{"", "", protocol.OnLimitHold},
		{"on_limit = 'hold'", protocol.OnLimitHold, protocol.OnLimitHold},
		{"on_limit = 'resume'", protocol.OnLimitResume, protocol.OnLimitResume},
		{"on_limit = 'fail'", protocol.OnLimitFail, protocol.OnLimitFail},
		{"profile = 'p'\n[profiles.p]\non_limit = 'resume'", protocol.OnLimitResume, protocol.OnLimitResume},
	} {
		c := load(t, tt.text, Options{})
		run, exec := c.Settings(Choice{}, "/w", "").OnLimit, c.ExecSettings(Choice{}, "/w", "").OnLimit
		if run != tt.run || exec != tt.run || c.AttendedOnLimit() != tt.attended {
			t.Errorf("%q: %q, exec %q, with a user %q", tt.text, run, exec, c.AttendedOnLimit())
		}
	}
}

func TestExecAsksOnlyIfThisRunSaysSo(t *testing.T) {
	const file = "approval_policy = 'on-failure'\n[profiles.p]\napproval_policy = 'untrusted'\n[profiles.q]\n"
	for name, c := range map[string]struct {
		text string
		o    Options
		want protocol.ApprovalPolicy
	}{
		"default":         {"", Options{}, protocol.ApprovalNever},
		"file":            {file, Options{}, protocol.ApprovalNever},
		"profile of file": {"profile = 'p'\n" + file, Options{}, protocol.ApprovalNever},
		"profile by flag": {file, Options{Profile: "p"}, protocol.ApprovalUntrusted},
		"profile by -c":   {file, Options{Overrides: []string{"profile=p"}}, protocol.ApprovalUntrusted},
		"silent profile":  {file, Options{Profile: "q"}, protocol.ApprovalNever},
		"-c":              {file, Options{Overrides: []string{"approval_policy=on-request"}}, protocol.ApprovalOnRequest},
		"flag":            {file, Options{Flags: Flags{Approval: "on-request"}}, protocol.ApprovalOnRequest},
		"on failure":      {file, Options{Flags: Flags{Approval: "on-failure"}}, protocol.ApprovalNever},
		"full auto":       {file, Options{Flags: Flags{FullAuto: true}}, protocol.ApprovalNever},
		"both":            {file, Options{Flags: Flags{FullAuto: true, Approval: "untrusted"}}, protocol.ApprovalUntrusted},
	} {
		if got := load(t, c.text, c.o).ExecSettings(Choice{}, "/w", "").Approval; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestOverridesAreWhatThisRunSays(t *testing.T) {
	const file = "model = 'm'\nmodel_provider = 'ollama'\napproval_policy = 'never'\nsandbox_mode = 'read-only'\nmodel_reasoning_effort = 'low'\n" +
		"[sandbox_workspace_write]\nwritable_roots = ['/file']\n"
	now := protocol.Settings{Sandbox: protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{"/now"}, ExcludeSlashTmp: true}}
	for name, c := range map[string]struct {
		o    Options
		now  protocol.Settings
		want protocol.Overrides
	}{
		"nothing": {Options{}, now, protocol.Overrides{}},
		"everything": {
			Options{
				Flags:     Flags{Model: "x", Provider: "oss", Approval: "untrusted", Sandbox: "workspace-write"},
				Overrides: []string{"model_reasoning_effort=high", "model_reasoning_summary=none"},
			},
			now,
			protocol.Overrides{
				Model: new("x"), Provider: new("oss"), Approval: new(protocol.ApprovalUntrusted), Effort: new("high"), Summary: new("none"),
				Sandbox: &protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{"/file"}},
			},
		},
		"a detail": {
			Options{Overrides: []string{"sandbox_workspace_write.network_access=true"}},
			now,
			protocol.Overrides{Sandbox: &protocol.SandboxPolicy{
				Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{"/now"}, NetworkAccess: true, ExcludeSlashTmp: true,
			}},
		},
		"all details": {
			Options{Overrides: []string{"sandbox_workspace_write={writable_roots=['/x'],exclude_tmpdir_env_var=true,exclude_slash_tmp=false}"}},
			now,
			protocol.Overrides{Sandbox: &protocol.SandboxPolicy{
				Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{"/x"}, ExcludeTmpdirEnvVar: true,
			}},
		},
		"a detail of another mode": {
			Options{Overrides: []string{"sandbox_workspace_write.network_access=true"}},
			protocol.Settings{Sandbox: protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}},
			protocol.Overrides{},
		},
		"demo": {Options{Flags: Flags{Demo: true}}, now, protocol.Overrides{Provider: new("demo")}},
	} {
		if diff := cmp.Diff(c.want, load(t, file, c.o).Overrides(c.now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if now.Sandbox.NetworkAccess {
		t.Error("the settings there were have changed")
	}
}

func TestTrustLevel(t *testing.T) {
	real, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	c := load(t, "[projects.'/a']\ntrust_level = 'trusted'\n[projects.'/a/b']\ntrust_level = 'untrusted'\n[projects.'"+link+"']\ntrust_level = 'trusted'", Options{})
	for dir, want := range map[string]string{
		"/a": Trusted, "/a/x/y": Trusted, "/a/b": Untrusted, "/a/b/c": Untrusted, "/ab": "", "/": "", real: Trusted,
	} {
		if got := c.TrustLevel(dir); got != want {
			t.Errorf("%s: got %q, want %q", dir, got, want)
		}
	}
}

func TestATrustedDirectoryCanBeWritten(t *testing.T) {
	const trust = "[projects.'/a']\ntrust_level = 'trusted'\n"
	for _, c := range []struct {
		file, cwd string
		o         Options
		want      protocol.SandboxMode
	}{
		{trust, "/a/sub", Options{}, protocol.SandboxWorkspaceWrite},
		{trust, "/b", Options{}, protocol.SandboxReadOnly},
		{"sandbox_mode = 'read-only'\n" + trust, "/a", Options{}, protocol.SandboxReadOnly},
		{trust, "/a", Options{Flags: Flags{Sandbox: "read-only"}}, protocol.SandboxReadOnly},
		{"[projects.'/a']\ntrust_level = 'untrusted'\n", "/a", Options{}, protocol.SandboxReadOnly},
	} {
		cfg := load(t, c.file, c.o)
		for _, s := range []protocol.Settings{cfg.Settings(Choice{}, c.cwd, ""), cfg.ExecSettings(Choice{}, c.cwd, "")} {
			if s.Sandbox.Mode != c.want {
				t.Errorf("%q in %s: got %s, want %s", c.file, c.cwd, s.Sandbox.Mode, c.want)
			}
		}
	}
}

func TestAllowed(t *testing.T) {
	c := load(t, "[projects.'/a']\nallowed_commands = ['make -n']\n[projects.'/a/b']\nallowed_commands = ['go test', 'ls']", Options{})
	for dir, want := range map[string]int{"/a": 1, "/a/b/c": 3, "/c": 0} {
		n := 0
		for _, a := range c.Allowed(dir) {
			n += len(a.Commands)
		}
		if n != want {
			t.Errorf("%s: got %v", dir, c.Allowed(dir))
		}
	}
}

package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/protocol"
)

func TestWorkspace(t *testing.T) {
	ww := protocol.SandboxWorkspaceWrite
	for _, c := range []struct {
		name        string
		policy      protocol.SandboxPolicy
		cwd, tmpdir string
		want        []string
	}{
		{"plain", protocol.SandboxPolicy{Mode: ww}, "/w", "/var/t", []string{"/w", "/tmp", "/var/t"}},
		{"configured", protocol.SandboxPolicy{Mode: ww, WritableRoots: []string{"/x/../y/", "sub", "/w"}}, "/w", "", []string{"/w", "/y", "/w/sub", "/tmp"}},
		{"no /tmp", protocol.SandboxPolicy{Mode: ww, ExcludeSlashTmp: true}, "/w", "/var/t", []string{"/w", "/var/t"}},
		{"no $TMPDIR", protocol.SandboxPolicy{Mode: ww, ExcludeTmpdirEnvVar: true}, "/w", "/var/t", []string{"/w", "/tmp"}},
		{"relative $TMPDIR", protocol.SandboxPolicy{Mode: ww, ExcludeSlashTmp: true}, "/w", "..", []string{"/w"}},
		{"relative everything", protocol.SandboxPolicy{Mode: ww, ExcludeSlashTmp: true, WritableRoots: []string{"x", ""}}, "w", "t", nil},
		{"read-only", protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly, WritableRoots: []string{"/y"}}, "/w", "/t", nil},
		{"full access", protocol.SandboxPolicy{Mode: protocol.SandboxFullAccess}, "/w", "/t", nil},
		{"none", protocol.SandboxPolicy{}, "/w", "/t", nil},
	} {
		got := Workspace(c.policy, c.cwd, c.tmpdir)
		if diff := cmp.Diff(c.want, got.Writable); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	got := Workspace(protocol.SandboxPolicy{Mode: ww}, "/w", "", "/home/u/.fermata/", "relative")
	if diff := cmp.Diff([]string{"/home/u/.fermata"}, got.Protected); diff != "" {
		t.Errorf("protected (-want +got):\n%s", diff)
	}
}

func TestRootsHold(t *testing.T) {
	r := Roots{Writable: []string{"/w", "/tmp", "/r/.git/x"}, Protected: []string{"/w/.fermata", "/tmp/keep"}}
	for path, want := range map[string]bool{
		"/w":                    true,
		"/w/a":                  true,
		"/w/a/b/../c":           true,
		"/w/.gitignore":         true,
		"/w/.github/x.yml":      true,
		"/w/x.git/a":            true,
		"/tmp/a":                true,
		"/r/.git/x/a":           true, // configured by name
		"/w/..":                 false,
		"/w/../etc/passwd":      false,
		"/wx":                   false,
		"/":                     false,
		"/etc/passwd":           false,
		"w/a":                   false,
		"a":                     false,
		"":                      false,
		"/w/.git":               false,
		"/w/.git/hooks/x":       false,
		"/w/.GIT/config":        false,
		"/w/sub/.git/config":    false,
		"/w/a/../.git/config":   false,
		"/tmp/p/.git/config":    false,
		"/r/.git/x/.git/config": false,
		"/w/.fermata":           false,
		"/w/.fermata/config":    false,
		"/w/.Fermata/config":    false,
		"/w/.fermatax":          true,
		"/tmp/keep/a":           false,
		"/W/a":                  false,
	} {
		if got := r.Hold(path); got != want {
			t.Errorf("Hold(%q) = %v", path, got)
		}
	}
	if (Roots{Writable: []string{"w", "."}}).Hold("w/a") {
		t.Error("a relative root holds something")
	}
	if (Roots{}).Hold("/w") {
		t.Error("no roots hold something")
	}
	if all := (Roots{Writable: []string{"/"}}); !all.Hold("/etc/x") || all.Hold("/.git/config") {
		t.Error("the root of all is not understood")
	}
}

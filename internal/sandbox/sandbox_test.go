package sandbox

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/protocol"
	"github.com/google/go-cmp/cmp"
)

// strong is a machine that can do everything.
var strong = Ability{System: "linux", Landlock: 7, Seccomp: true, Sockets: true, Mounts: true}

func TestFullAccessIsNotConfined(t *testing.T) {
	c, err := New(protocol.SandboxPolicy{Mode: protocol.SandboxFullAccess}, Place{})
	if c != nil || err != nil {
		t.Fatalf("got %v, %v", c, err)
	}
	spec := proc.Spec{Argv: []string{"true"}}
	if err := c.Set(&spec); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(proc.Spec{Argv: []string{"true"}}, spec); d != "" {
		t.Errorf("changed (-want +got):\n%s", d)
	}
	if _, denied := c.Denied(Attempt{Result: proc.Result{ExitCode: 1}, Output: "Read-only file system"}); denied || c.Notes() != nil || c.Appeared() != nil {
		t.Error("something was confined")
	}
}

func TestUnknownModeIsRefused(t *testing.T) {
	for _, mode := range []protocol.SandboxMode{"", "Read-Only", "none"} {
		if c, err := newWith(strong, protocol.SandboxPolicy{Mode: mode}, Place{}); c != nil || err == nil || errors.Is(err, ErrUnable) {
			t.Errorf("mode %q: got %v, %v", mode, c, err)
		}
	}
}

func TestUnableMachineIsTold(t *testing.T) {
	for _, c := range []struct {
		change func(a *Ability)
		want   string
	}{
		{func(a *Ability) { a.Landlock = 0 }, "Landlock"},
		{func(a *Ability) { a.Seccomp = false }, "seccomp"},
		{func(a *Ability) { a.System = "plan9" }, "plan9"},
		{func(a *Ability) { a.System = "darwin" }, "there is no"},
	} {
		a := strong
		c.change(&a)
		got, err := newWith(a, protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, Place{})
		if got != nil || !errors.Is(err, ErrUnable) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, %v", a, got, err)
		}
		if lines := a.Lines(); !strings.HasPrefix(lines[0], "commands cannot be confined: ") || !strings.Contains(lines[0], c.want) {
			t.Errorf("%+v: lines %q", a, lines)
		}
	}
}

func TestAbilityInWords(t *testing.T) {
	user := strong
	user.ByUser = true
	old := Ability{System: "linux", Landlock: 1, Seccomp: true, MountsError: "operation not permitted"}
	for _, c := range []struct {
		ability Ability
		want    []string
	}{
		{strong, []string{"commands can be confined", "Landlock: version 7", "seccomp: yes", "local sockets of their own: yes", "mount namespace: yes"}},
		{user, []string{"commands can be confined", "Landlock: version 7", "seccomp: yes", "local sockets of their own: yes", "mount namespace: yes, in a user namespace"}},
		{Ability{System: "darwin", Seatbelt: true}, []string{"commands can be confined with Seatbelt"}},
		{old, []string{
			"commands can be confined", "Landlock: version 1", "seccomp: yes", "local sockets of their own: no", "mount namespace: no operation not permitted",
			"commands can change mode, owner, times and attributes of the user's files everywhere: there is no mount namespace (operation not permitted)",
			"commands can cut the user's files short everywhere: Landlock has version 1, not 3",
			"commands cannot move files from one directory to another: Landlock has version 1, not 2",
			"commands can signal the user's other processes if they see them: Landlock has version 1, not 6",
			"commands cannot use local sockets, not even their own, and with network access they reach fermata's own servers: the kernel does not let system calls be served here (seccomp notifications, ptrace_scope)",
		}},
	} {
		if d := cmp.Diff(c.want, c.ability.Lines()); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.ability, d)
		}
	}
}

func TestNotes(t *testing.T) {
	base := tree(t, "ws/.git/")
	policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true, WritableRoots: []string{base + "/none"}}
	place := Place{Cwd: base + "/ws"}
	c, err := newWith(strong, policy, place)
	check(t, err)
	none := "writable root " + base + "/none stays read-only: it does not exist"
	if d := cmp.Diff([]string{none}, c.Notes()); d != "" {
		t.Errorf("strong (-want +got):\n%s", d)
	}

	weak := strong
	weak.Mounts, weak.MountsError = false, "not here"
	c, err = newWith(weak, policy, place)
	check(t, err)
	want := []string{
		"commands can change mode, owner, times and attributes of the user's files everywhere: there is no mount namespace (not here)",
		none,
		"nothing new can be made at the top of " + base + "/ws: what is protected in there cannot be protected otherwise without a mount namespace",
	}
	if d := cmp.Diff(want, c.Notes()); d != "" {
		t.Errorf("weak (-want +got):\n%s", d)
	}
	c.Notes()[0] = "changed"
	if c.Notes()[0] == "changed" {
		t.Error("a caller can change the notes")
	}
}

func TestPlanSurvivesTheWire(t *testing.T) {
	p := plan{
		Network: true, Mounts: mountsGiven, Shm: true, Roots: []path{"/a", "/b\xff\n\""}, Own: []path{"/a"}, Protected: []path{"/a/\xc3("},
		Binds: []bind{{"/a", true}, {"/a/\xfe", false}},
	}
	text, err := json.Marshal(p)
	check(t, err)
	var got plan
	check(t, json.Unmarshal(text, &got))
	if d := cmp.Diff(p, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if json.Unmarshal([]byte(`{"roots":[5]}`), &got) == nil {
		t.Error("a number is taken for a path")
	}
}

func TestAppeared(t *testing.T) {
	base := tree(t, "ws/", "other/.git/")
	policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true, WritableRoots: []string{base + "/other"}}
	c, err := newWith(strong, policy, Place{Cwd: base + "/ws"})
	check(t, err)
	if got := c.Appeared(); got != nil {
		t.Errorf("got %q before anything happened", got)
	}
	git := filepath.Join(base, "ws", ".git")
	check(t, os.Symlink("nowhere", git))
	if d := cmp.Diff([]string{git}, c.Appeared()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/protocol"
)

func settings(mode protocol.SandboxMode, approval protocol.ApprovalPolicy) protocol.Settings {
	return protocol.Settings{Cwd: "/w/project", Provider: "openai", Sandbox: protocol.SandboxPolicy{Mode: mode}, Approval: approval}
}

func TestNoLimits(t *testing.T) {
	for _, mode := range modesInOrder {
		for _, approval := range approvalsInOrder {
			if err := (Limits{}).Check(settings(mode, approval)); err != nil {
				t.Errorf("%s, %s: %v", mode, approval, err)
			}
		}
	}
}

// Nothing above a limit passes, everything up to it does, and what is clamped
// passes.
func TestLimitsOfModesAndPolicies(t *testing.T) {
	for _, most := range modesInOrder {
		for _, least := range approvalsInOrder {
			var l Limits
			l.Sandbox, _ = SandboxUpTo(most)
			l.Approval, _ = ApprovalFrom(least)
			for i, mode := range modesInOrder {
				for j, approval := range approvalsInOrder {
					s := settings(mode, approval)
					want := i <= slices.Index(modesInOrder, most) && (j <= slices.Index(approvalsInOrder, least) || least == protocol.ApprovalOnFailure && j == 2)
					err := l.Check(s)
					if (err == nil) != want {
						t.Errorf("at most %s and at least %s: %s, %s gives %v", most, least, mode, approval, err)
					}
					clamped, notes := l.Clamp(s)
					if err := l.Check(clamped); err != nil || (len(notes) == 0) != want {
						t.Errorf("clamped to %+v: %v, %q", clamped, err, notes)
					}
					if want && (clamped.Sandbox.Mode != mode || clamped.Approval != approval) {
						t.Errorf("clamped what was allowed: %+v", clamped)
					}
				}
			}
		}
	}
	if _, ok := SandboxUpTo("none"); ok {
		t.Error("an unknown mode")
	}
	if _, ok := ApprovalFrom("none"); ok {
		t.Error("an unknown policy")
	}
}

func TestOtherLimits(t *testing.T) {
	l := Limits{Dirs: []string{"/w"}, Providers: []string{"openai"}, Keys: []string{"MY_KEY"}, From: "--limit"}
	good := settings(protocol.SandboxReadOnly, protocol.ApprovalNever)
	if err := l.Check(good); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*protocol.Settings){
		"directory /":                func(s *protocol.Settings) { s.Cwd = "/" },
		"directory /work":            func(s *protocol.Settings) { s.Cwd = "/work" },
		"directory /w/../etc":        func(s *protocol.Settings) { s.Cwd = "/w/../etc" },
		"model provider demo":        func(s *protocol.Settings) { s.Provider = "demo" },
		"model provider openai#1234": func(s *protocol.Settings) { s.Provider = "openai#1234" },
		"directory /home": func(s *protocol.Settings) {
			s.Sandbox = protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{"/home"}}
		},
	} {
		s := good
		change(&s)
		err := l.Check(s)
		var limit *LimitError
		if !errors.As(err, &limit) || !strings.HasPrefix(err.Error(), name+" is not allowed here") || !strings.HasSuffix(err.Error(), "(--limit)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l.CheckKeys([]string{"MY_KEY"}) != nil || l.CheckKeys([]string{"MY_KEY", "AWS_SECRET"}) == nil {
		t.Error("key variables")
	}
}

func TestLimitsOfTheWorkspace(t *testing.T) {
	l := Limits{Workspace: &protocol.SandboxPolicy{WritableRoots: []string{"/a"}}}
	s := settings(protocol.SandboxWorkspaceWrite, protocol.ApprovalNever)
	s.Sandbox.WritableRoots = []string{"/a"}
	if err := l.Check(s); err != nil {
		t.Error(err)
	}
	s.Sandbox.NetworkAccess = true
	if l.Check(s) == nil {
		t.Error("network access")
	}
	s.Sandbox.NetworkAccess, s.Sandbox.WritableRoots = false, []string{"/a", "/b"}
	if l.Check(s) == nil {
		t.Error("another root")
	}
	s.Sandbox.Mode = protocol.SandboxReadOnly
	if err := l.Check(s); err != nil {
		t.Errorf("where roots mean nothing: %v", err)
	}
}

func TestBothLimits(t *testing.T) {
	a := Limits{Sandbox: modesInOrder[:2], Dirs: []string{"/w", "/x"}, From: "a"}
	b := Limits{Sandbox: modesInOrder[1:], Dirs: []string{"/w/project", "/"}, Providers: []string{"p"}, NoEscalation: true, From: "b"}
	both := a.And(b)
	if !slices.Equal(both.Sandbox, modesInOrder[1:2]) || both.From != "a; b" || !both.NoEscalation || !slices.Equal(both.Providers, []string{"p"}) {
		t.Errorf("%+v", both)
	}
	for dir, want := range map[string]bool{"/w/project/sub": true, "/x": true, "/y": false, "/w": true} {
		if (both.CheckDir(dir) == nil) != want {
			t.Errorf("%s: %v", dir, both.CheckDir(dir))
		}
	}
	none := Limits{Sandbox: modesInOrder[:1]}.And(Limits{Sandbox: modesInOrder[2:]})
	for _, mode := range modesInOrder {
		if none.CheckSandbox(protocol.SandboxPolicy{Mode: mode}) == nil {
			t.Errorf("%s passes two limits that exclude each other", mode)
		}
	}
}

// Where nothing may leave the sandbox, an approval does not let it.
func TestApprovalsStayInTheSandbox(t *testing.T) {
	for _, c := range matrix(t) {
		r := c.rules
		r.NoEscalation = true
		got := r.Command(c.req)
		if r.Mode == protocol.SandboxFullAccess {
			continue
		}
		if got.Verdict == RunUnconfined && !SafeUnconfined(c.req.Argv) {
			t.Errorf("%+v %+v: %+v", r, c.req, got)
		}
		if got.Verdict == Ask && !r.Confinable {
			t.Errorf("asks although a yes would change nothing: %+v %+v", r, c.req)
		}
		checkForm(t, "stays inside", r, got)
	}
	r := Rules{Mode: protocol.SandboxWorkspaceWrite, NoEscalation: true, Roots: Roots{Writable: []string{"/w"}}}
	if got := r.Patch(PatchRequest{Paths: []string{"/etc/x"}, Answer: protocol.Approved}); got.Verdict != Refuse {
		t.Errorf("a patch that was approved: %+v", got)
	}
	if got := r.Patch(PatchRequest{Paths: []string{"/w/x"}, Answer: protocol.Approved}); got.Verdict != RunConfined {
		t.Errorf("a patch inside: %+v", got)
	}
	if got := r.Patch(PatchRequest{Paths: []string{"/etc/x"}}); got.Verdict != Refuse {
		t.Errorf("a patch outside: %+v", got)
	}
}

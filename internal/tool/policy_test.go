package tool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/protocol"
)

// confined is a call under a policy.
func confined(h Host, dir string, approval protocol.ApprovalPolicy, mode protocol.SandboxMode, a params) Call {
	c := call(h, dir, a)
	c.Settings.Approval, c.Settings.Sandbox = approval, protocol.SandboxPolicy{Mode: mode}
	return c
}

func needSandbox(t *testing.T) {
	t.Helper()
	if missing := sandbox.Probe().Missing(); missing != "" {
		t.Skipf("this machine cannot confine commands: %s", missing)
	}
}

// elsewhere is a directory outside every writable root.
func elsewhere(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "fermata-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestShellIsConfined(t *testing.T) {
	needSandbox(t)
	dir, out := t.TempDir(), elsewhere(t)
	target := filepath.Join(out, "x")
	write := sh("echo inside > here; echo outside > " + target)
	for _, tt := range []struct {
		mode         protocol.SandboxMode
		here, beyond bool
	}{
		{protocol.SandboxReadOnly, false, false},
		{protocol.SandboxWorkspaceWrite, true, false},
		{protocol.SandboxFullAccess, true, true},
	} {
		t.Run(string(tt.mode), func(t *testing.T) {
			os.Remove(target)
			os.Remove(filepath.Join(dir, "here"))
			shell(t).Run(t.Context(), confined(&fakeHost{}, dir, protocol.ApprovalNever, tt.mode, write))
			_, err := os.Stat(filepath.Join(dir, "here"))
			_, err2 := os.Stat(target)
			if (err == nil) != tt.here || (err2 == nil) != tt.beyond {
				t.Errorf("written here: %t, outside: %t", err == nil, err2 == nil)
			}
		})
	}
}

func TestShellAsksFirst(t *testing.T) {
	dir := t.TempDir()
	h := &fakeHost{}
	s := shell(t)
	c := confined(h, dir, protocol.ApprovalUntrusted, protocol.SandboxFullAccess, sh("touch ran"))
	res := s.Run(t.Context(), c)
	if res.Ask == nil || res.Ask.Cwd != dir || len(res.Ask.Command) != 3 || res.Ask.Reason == "" || len(h.events) > 0 {
		t.Fatalf("result %+v, recorded %v", res, h.events)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Fatal("it ran before the user said yes")
	}
	c.Grant = protocol.Approved
	if res := s.Run(t.Context(), c); res.Ask != nil || res.Output.Failed {
		t.Errorf("after a yes: %+v", res)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err != nil {
		t.Error("it did not run")
	}
	c.Grant = ""
	c.Grants = policy.Grants{}.Answered(protocol.ApprovedForSession, res.Ask.Command, res.Ask.Cwd)
	if res := s.Run(t.Context(), c); res.Ask != nil {
		t.Errorf("approved for the session, and asked again: %+v", res.Ask)
	}
}

func TestShellEscalation(t *testing.T) {
	needSandbox(t)
	a := sh("true")
	a["with_escalated_permissions"], a["justification"] = true, "needs the network"
	s := shell(t)
	res := s.Run(t.Context(), confined(&fakeHost{}, t.TempDir(), protocol.ApprovalOnRequest, protocol.SandboxWorkspaceWrite, a))
	if res.Ask == nil || res.Ask.Reason != "needs the network (the model asks to run the command outside the sandbox)" {
		t.Errorf("result %+v", res)
	}
	h := &fakeHost{}
	res = s.Run(t.Context(), confined(h, t.TempDir(), protocol.ApprovalNever, protocol.SandboxWorkspaceWrite, a))
	if res.Ask != nil || res.Output.Failed {
		t.Errorf("with nobody to ask: %+v", res)
	}
	if !slices.ContainsFunc(h.events, func(b protocol.Body) bool {
		n, ok := b.(*protocol.Notice)
		return ok && n.Warn && strings.Contains(n.Text, "inside the sandbox although it was to run outside")
	}) {
		t.Errorf("nobody is told that it ran confined all the same: %+v", h.events)
	}
}

// Only a real denial is a question; an ordinary failure is an answer.
func TestShellAsksOnDenialOnly(t *testing.T) {
	needSandbox(t)
	dir, out := t.TempDir(), elsewhere(t)
	target := filepath.Join(out, "x")
	s := shell(t)
	run := func(script string, grant protocol.Decision) Result {
		c := confined(&fakeHost{}, dir, protocol.ApprovalOnFailure, protocol.SandboxWorkspaceWrite, sh(script))
		c.Grant = grant
		return s.Run(t.Context(), c)
	}
	if res := run("exit 3", ""); res.Ask != nil || res.Output.Command.ExitCode != 3 {
		t.Errorf("an ordinary failure: %+v", res)
	}
	res := run("echo begun; touch "+target, "")
	if res.Ask == nil || !strings.Contains(res.Ask.Reason, target) {
		t.Fatalf("a denial: %+v", res)
	}
	if c := res.Ask.Tried; c == nil || c.ExitCode == 0 || !strings.HasPrefix(c.Output, "begun\n") || c.Elapsed == 0 {
		t.Errorf("what it did is lost: %+v", c)
	}
	if res := run("touch "+target, protocol.Approved); res.Output.Failed {
		t.Errorf("after a yes: %+v", res.Output)
	}
	if _, err := os.Stat(target); err != nil {
		t.Error("it was not run outside the sandbox")
	}
}

func TestShellEnvironment(t *testing.T) {
	s := shell(t)
	s.Environ = func() []string { return []string{"PATH=" + os.Getenv("PATH"), "COLOUR=blue"} }
	h := &fakeHost{}
	s.Run(t.Context(), call(h, t.TempDir(), params{"command": []string{"env"}}))
	if !strings.Contains(h.text, "COLOUR=blue\n") || strings.Contains(h.text, "HOME=") {
		t.Errorf("environment %q", h.text)
	}
}

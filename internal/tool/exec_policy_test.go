package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/protocol"
)

// under puts a call under a policy.
func under(c Call, approval protocol.ApprovalPolicy, mode protocol.SandboxMode) Call {
	c.Settings.Approval, c.Settings.Sandbox = approval, protocol.SandboxPolicy{Mode: mode}
	return c
}

func exists(parts ...string) bool {
	_, err := os.Stat(filepath.Join(parts...))
	return err == nil
}

func TestExecAsksFirst(t *testing.T) {
	dir, h, e := realDir(t), &termHost{}, terminal(t)
	c := under(on(h, dir, "touch ran"), protocol.ApprovalUntrusted, protocol.SandboxFullAccess)
	res := e.Run(t.Context(), c)
	if res.Ask == nil || res.Ask.Cwd != dir || strings.Join(res.Ask.Command, " ") != "/bin/bash -c touch ran" || len(h.events) > 0 || exists(dir, "ran") {
		t.Fatalf("result %+v, recorded %v", res, h.events)
	}
	c.Grant = protocol.Denied
	if res := e.Run(t.Context(), c); res.Ask != nil || !res.Output.Failed || exists(dir, "ran") {
		t.Errorf("after a no: %+v", res)
	}
	c.Grant = ""
	c.Grants = policy.Grants{}.Answered(protocol.ApprovedForSession, res.Ask.Command, res.Ask.Cwd)
	if res := e.Run(t.Context(), c); res.Ask != nil || !exists(dir, "ran") {
		t.Errorf("approved for the session: %+v", res)
	}
}

func TestExecIsConfinedOnATerminal(t *testing.T) {
	needSandbox(t)
	dir, out := t.TempDir(), elsewhere(t)
	e := terminal(t)
	cmd := "echo inside > here; echo outside > " + filepath.Join(out, "x") + "; test -t 0 && echo terminal"
	for _, tt := range []struct {
		mode         protocol.SandboxMode
		here, beyond bool
	}{
		{protocol.SandboxReadOnly, false, false},
		{protocol.SandboxWorkspaceWrite, true, false},
		{protocol.SandboxFullAccess, true, true},
	} {
		for _, ms := range []int{10_000, 0} { // also if it goes on in the background
			os.Remove(filepath.Join(out, "x"))
			os.Remove(filepath.Join(dir, "here"))
			h := &termHost{}
			res := e.Run(t.Context(), under(on(h, dir, cmd, params{"yield_time_ms": ms}), protocol.ApprovalNever, tt.mode))
			for _, job := range h.jobs {
				job.Wait()
			}
			if shown, later := h.said(); !strings.Contains(shown+later, "terminal\n") {
				t.Errorf("%s: %+v, later %q", tt.mode, res.Output, later)
			}
			if exists(dir, "here") != tt.here || exists(out, "x") != tt.beyond {
				t.Errorf("%s, %d ms: written here %t, outside %t", tt.mode, ms, exists(dir, "here"), exists(out, "x"))
			}
		}
	}
}

func TestExecEscalation(t *testing.T) {
	needSandbox(t)
	e := terminal(t)
	a := params{"with_escalated_permissions": true, "justification": "needs the network"}
	res := e.Run(t.Context(), under(on(&termHost{}, t.TempDir(), "true", a), protocol.ApprovalOnRequest, protocol.SandboxWorkspaceWrite))
	if res.Ask == nil || res.Ask.Reason != "needs the network (the model asks to run the command outside the sandbox)" {
		t.Errorf("result %+v", res)
	}
}

func TestExecAsksOnDenialOnly(t *testing.T) {
	needSandbox(t)
	dir, target := t.TempDir(), filepath.Join(elsewhere(t), "x")
	e := terminal(t)
	run := func(cmd string, grant protocol.Decision) Result {
		c := under(on(&termHost{}, dir, cmd), protocol.ApprovalOnFailure, protocol.SandboxWorkspaceWrite)
		c.Grant = grant
		return e.Run(t.Context(), c)
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
	if res := run("touch "+target, protocol.Approved); res.Output.Failed || !exists(target) {
		t.Errorf("after a yes: %+v", res.Output)
	}
}

// Where nobody is to be asked, a denial is an answer like any other.
func TestDenialWithNobodyToAsk(t *testing.T) {
	needSandbox(t)
	dir, target := t.TempDir(), filepath.Join(elsewhere(t), "x")
	for name, res := range map[string]Result{
		"shell":        shell(t).Run(t.Context(), under(call(&termHost{}, dir, sh("touch "+target)), protocol.ApprovalNever, protocol.SandboxWorkspaceWrite)),
		"exec_command": terminal(t).Run(t.Context(), under(on(&termHost{}, dir, "touch "+target), protocol.ApprovalNever, protocol.SandboxWorkspaceWrite)),
	} {
		if res.Ask != nil || !res.Output.Failed || !strings.Contains(res.Output.Output, target) || exists(target) {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

// notes are the warnings that people had.
func (h *termHost) notes() (texts []string) {
	for _, b := range h.events {
		if n, ok := b.(*protocol.Notice); ok && n.Warn {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

func TestSandboxNotesAreToldOnce(t *testing.T) {
	needSandbox(t)
	dir := t.TempDir()
	none := filepath.Join(elsewhere(t), "none")
	sh, e := shell(t), terminal(t)
	told := map[string]bool{}
	for i, tool := range []Tool{e, sh, e} {
		h := &termHost{}
		a := params{"cmd": "true", "login": false, "command": []string{"true"}}
		c := under(call(h, dir, a), protocol.ApprovalNever, protocol.SandboxWorkspaceWrite)
		c.Settings.Sandbox.WritableRoots = []string{none}
		c.Warned = told
		tool.Run(t.Context(), c)
		mine := 0
		for _, text := range h.notes() {
			told[text] = true
			if strings.Contains(text, none) {
				mine++
			}
		}
		if want := 1 - min(i, 1); mine != want {
			t.Errorf("call %d told it %d times, want %d: %q", i+1, mine, want, h.notes())
		}
	}
}

func TestWhatAppearedIsTold(t *testing.T) {
	needSandbox(t)
	for name, run := range map[string]func(h *termHost, dir string) Result{
		"shell": func(h *termHost, dir string) Result {
			return shell(t).Run(t.Context(), under(call(h, dir, sh("mkdir .git")), protocol.ApprovalNever, protocol.SandboxWorkspaceWrite))
		},
		"exec_command": func(h *termHost, dir string) Result {
			return terminal(t).Run(t.Context(), under(on(h, dir, "mkdir .git"), protocol.ApprovalNever, protocol.SandboxWorkspaceWrite))
		},
		"write_stdin": func(h *termHost, dir string) Result {
			c := under(on(h, dir, "read; mkdir .git; echo made", params{"yield_time_ms": 0}), protocol.ApprovalNever, protocol.SandboxWorkspaceWrite)
			terminal(t).Run(t.Context(), c)
			return WriteStdin{}.Run(t.Context(), typing(h, "\n", 10_000))
		},
	} {
		dir, h := realDir(t), &termHost{}
		res := run(h, dir)
		if !exists(dir, ".git") {
			t.Skipf("%s: it could not be made here: %+v", name, res.Output)
		}
		want := "the command created " + filepath.Join(dir, ".git") + ", which is protected"
		if notes := strings.Join(h.notes(), "\n"); !strings.Contains(notes, want) {
			t.Errorf("%s: told %q, want %q", name, notes, want)
		}
	}
}

func TestExecAppliesPatches(t *testing.T) {
	dir := realDir(t)
	e := terminal(t)
	e.Shell.Changes = &Changes{}
	e.Shell.Patch = &Patch{Changes: e.Shell.Changes}
	h := &termHost{}
	res := e.Run(t.Context(), on(h, dir, "apply_patch <<'EOF'\n"+add("a")+"EOF\n"))
	if p := res.Output.Patch; p == nil || !p.Applied || res.Output.Command != nil {
		t.Fatalf("output %+v", res.Output)
	}
	wantFiles(t, dir, map[string]string{"a": "a\n"})
}

// A command that is only a patch is asked about once, as a patch, in either tool.
func TestPatchInACommandIsAskedAboutAsAPatch(t *testing.T) {
	for name, build := range map[string]func(*Exec, string) (Tool, params){
		"exec_command": func(e *Exec, line string) (Tool, params) { return e, params{"cmd": line} },
		"shell": func(e *Exec, line string) (Tool, params) {
			return e.Shell, params{"command": []string{"bash", "-lc", line}}
		},
	} {
		dir := realDir(t)
		if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		e := terminal(t)
		e.Shell.Patch = &Patch{}
		run, arguments := build(e, "cd sub && apply_patch <<'EOF'\n"+add("a")+"EOF\n")
		h := &termHost{}
		c := confined(h, dir, protocol.ApprovalUntrusted, protocol.SandboxWorkspaceWrite, arguments)
		res := run.Run(t.Context(), c)
		if res.Ask == nil || res.Ask.Kind != protocol.ApprovePatch || !strings.Contains(string(res.Ask.Detail), filepath.Join(dir, "sub", "a")) {
			t.Fatalf("%s: asked %+v, output %+v", name, res.Ask, res.Output)
		}
		c.Grant, c.Asked = protocol.Approved, res.Ask.Detail
		if res := run.Run(t.Context(), c); res.Ask != nil || res.Output.Patch == nil || !res.Output.Patch.Applied {
			t.Errorf("%s: approved: %+v", name, res)
		}
		wantFiles(t, dir, map[string]string{"sub/a": "a\n"})
	}
}

// A user's own command needs no approval, no sandbox and no time limit; of a
// model it is a command like any other.
func TestUserShell(t *testing.T) {
	dir, out := realDir(t), elsewhere(t)
	s := shell(t)
	s.Timeout = time.Millisecond
	u := &UserShell{Shell: s}
	h := &fakeHost{}
	c := call(h, dir, params{"command": "pwd; echo $((1+1)) | cat; shopt -q login_shell && touch " + out + "/x; sleep 0.1; exit 4"})
	c = under(c, protocol.ApprovalUntrusted, protocol.SandboxReadOnly)
	if res := u.Run(t.Context(), c); res.Ask == nil || exists(out, "x") {
		t.Errorf("a model's call: %+v", res)
	}
	c.Grant = protocol.Approved
	res := u.Run(t.Context(), c)
	if r := res.Output.Command; r == nil || r.ExitCode != 4 || r.TimedOut || !strings.HasSuffix(r.Output, dir+"\n2\n") || !exists(out, "x") {
		t.Errorf("output %+v, command %+v", res.Output, r)
	}
	if started := h.events[len(h.events)-1].(*protocol.CommandStarted); started.Cwd != dir || started.Command[0] != "bash" {
		t.Errorf("recorded %+v", started)
	}
	c.Arguments = "nonsense"
	if res := u.Run(t.Context(), c); !res.Output.Failed {
		t.Errorf("nonsense: %+v", res)
	}
	if spec := u.Spec(); spec.Name != "user_shell" || u.ReadOnly() {
		t.Errorf("spec %+v", spec)
	}
}

// Where nobody is asked about a denial, the model is told of it, and how to ask.
func TestDenialIsToldToTheModel(t *testing.T) {
	needSandbox(t)
	denied := "touch " + elsewhere(t) + "/x" // where its user may write
	for _, tt := range []struct {
		policy protocol.ApprovalPolicy
		cmd    string
		want   string
	}{
		{protocol.ApprovalOnRequest, denied, "call again with with_escalated_permissions"},
		{protocol.ApprovalNever, denied, "it cannot be run outside"},
		{protocol.ApprovalNever, "exit 3", ""},
		{protocol.ApprovalNever, "true", ""},
	} {
		dir := realDir(t)
		for name, res := range map[string]Result{
			"shell":        shell(t).Run(t.Context(), under(call(&termHost{}, dir, sh(tt.cmd)), tt.policy, protocol.SandboxWorkspaceWrite)),
			"exec_command": terminal(t).Run(t.Context(), under(on(&termHost{}, dir, tt.cmd), tt.policy, protocol.SandboxWorkspaceWrite)),
		} {
			got := res.Output.Output
			if res.Ask != nil || !strings.Contains(got, tt.want) || strings.Contains(got, "the sandbox denied") != (tt.want != "") {
				t.Errorf("%s, %s: %q\n%q, want %q", name, tt.policy, tt.cmd, got, tt.want)
			}
		}
	}
}

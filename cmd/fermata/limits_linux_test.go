package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// refused sends a request and expects an error that says what is not allowed.
func (c *mcpClient) refused(id int, want, method, params string) {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	m := c.await("the answer to "+method, func(m map[string]any) bool { return m["id"] == float64(id) })
	text := fmt.Sprint(m["error"])
	if result, ok := m["result"].(map[string]any); ok && result["isError"] == true { // of a tool
		text = fmt.Sprint(result["content"])
	}
	if !strings.Contains(text, want+" is not allowed here") {
		c.t.Errorf("%s %s: %v", method, params, m)
	}
}

// Whatever way a client takes, it gets no more than the operator allows.
func TestClientsStayWithinTheLimits(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	open := s.connect() // without limits, to have a conversation that exceeds them
	open.send(`{"jsonrpc":"2.0","id":1,"method":"newConversation","params":{"cwd":%q}}`, s.work)
	var id string
	open.await("a conversation", func(m map[string]any) bool {
		r, _ := m["result"].(map[string]any)
		id, _ = r["conversationId"].(string)
		return m["id"] == 1.0
	})
	open.in.Close()
	open.code()

	c := s.connect("--max-sandbox", "read-only", "--min-approval", "on-request", "--allow-provider", "mock_provider", "--allow-dir", s.work)
	n := 10
	for _, tt := range []struct{ want, method, params string }{
		{"sandbox_mode danger-full-access", "newConversation", `{"sandbox":"danger-full-access"}`},
		{"sandbox_mode workspace-write", "newConversation", `{"config":{"sandbox_mode":"workspace-write"}}`},
		{"approval_policy never", "newConversation", `{"approvalPolicy":"never"}`},
		{"directory /", "newConversation", `{"cwd":"/"}`},
		{"model provider demo", "newConversation", `{"config":{"model_provider":"demo"}}`},
		{"own", "newConversation", `{"config":{"model_providers.mock_provider.base_url":"http://127.0.0.1:1/v1"}}`},
		{"own", "newConversation", `{"config":{"\"model_providers\".mock_provider.base_url":"http://127.0.0.1:1/v1"}}`},
		{"sandbox_mode danger-full-access", "execOneOffCommand", `{"command":["true"],"sandboxPolicy":{"mode":"danger-full-access"}}`},
		{"directory /", "execOneOffCommand", `{"command":["true"],"cwd":"/"}`},
		{"directory /", "gitDiffToRemote", `{"cwd":"/"}`},
		{"sandbox_mode danger-full-access", "tools/call", `{"name":"codex","arguments":{"prompt":"x","sandbox":"danger-full-access"}}`},
		{"", "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[{"type":"text","data":{"text":"x"}}]}`, id)},
	} {
		n++
		if tt.method == "sendUserMessage" { // one that was begun without limits
			c.send(`{"jsonrpc":"2.0","id":9,"method":"resumeConversation","params":{"conversationId":%q}}`, id)
			c.await("the conversation", func(m map[string]any) bool { return m["id"] == 9.0 })
		}
		c.refused(n, tt.want, tt.method, tt.params)
	}
	// What the user did not ask for is made strict enough.
	c.send(`{"jsonrpc":"2.0","id":2,"method":"execOneOffCommand","params":{"command":["sh","-c","echo x > file"]}}`)
	if got := c.answer(2); strings.Contains(got, `"exitCode":0`) || exists(filepath.Join(s.work, "file")) {
		t.Errorf("the command could write: %s", got)
	}
}

// What the command line says in so many words counts as a limit for clients.
func TestClientsGetNoMoreThanTheCommandLineSays(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	c := s.connect("-s", "read-only")
	c.refused(1, "sandbox_mode danger-full-access", "newConversation", `{"sandbox":"danger-full-access"}`)
}

// A process that owns conversations for others has limits for them, too.
func TestLimitsOfServe(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	serve := pl.start("serve", "--max-sandbox", "read-only", "--demo")
	eventually(t, "it serves", func() bool { return serve.err.has("serves") })
	out, err := pl.command(t.Context(), "exec", "--demo", "--detach", "-s", "danger-full-access", "run: echo hi > file").CombinedOutput()
	if err == nil || exists(filepath.Join(pl.work, "file")) {
		t.Errorf("it is run: %v, %s", err, out)
	}
	contains(t, "a client that asks for more", string(out), "sandbox_mode danger-full-access is not allowed here: allowed is read-only")
	if out, err := pl.command(t.Context(), "exec", "--demo", "--detach", "-s", "read-only", "run: echo fine").CombinedOutput(); err != nil || !strings.Contains(string(out), "fine") {
		t.Errorf("a client that does not: %v, %s", err, out)
	}
	serve.signal(os.Interrupt)
	serve.code()
}

// The administrator of a machine sets limits for everybody on it.
func TestRequirementsOfTheMachine(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount over /etc")
	}
	pl := newPlace(t)
	etc := filepath.Join(pl.dir, "etc")
	if out, err := exec.Command("cp", "-a", "/etc", etc).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(etc, "fermata"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(requirements string, args ...string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(etc, "fermata/requirements.toml"), []byte(requirements), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := pl.command(context.Background(), args...)
		script := `mount --bind "$1" /etc && shift && exec "$@"`
		cmd.Args = append([]string{"unshare", "-m", "sh", "-c", script, "sh", etc, cmd.Path}, cmd.Args[1:]...)
		path, err := exec.LookPath("unshare")
		if err != nil {
			t.Skip(err)
		}
		cmd.Path = path
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "unshare failed") || strings.Contains(string(out), "mount:") {
			t.Skipf("no mounts here: %v\n%s", err, out)
		}
		return string(out)
	}
	const limit = `allowed_sandbox_modes = ["read-only"]`
	contains(t, "asking for more", run(limit, "exec", "--demo", "-s", "danger-full-access", "run: echo hi"),
		"sandbox_mode danger-full-access is not allowed here: allowed is read-only (/etc/fermata/requirements.toml)")
	contains(t, "yolo", run(limit, "exec", "--demo", "--yolo", "run: echo hi"), "is not allowed here")
	out := run(limit, "exec", "--demo", "--skip-git-repo-check", "run: echo hi > file; echo done")
	if exists(filepath.Join(pl.work, "file")) {
		t.Errorf("the command could write:\n%s", out)
	}
	contains(t, "a file that is wrong", run(`allowed_sandbox_mode = []`, "exec", "--demo", "hi"), "requirements.toml", "administrator")
}

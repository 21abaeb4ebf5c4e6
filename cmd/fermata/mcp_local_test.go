package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// git runs git in the working directory.
func (s *mcpSite) git(args ...string) string {
	s.t.Helper()
	return strings.TrimSpace(git(s.t, s.work, s.env, args...))
}

func TestMCPOneOffCommand(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	c := s.connect()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"execOneOffCommand","params":{"command":["sh","-c","pwd; echo bad >&2; exit 3"],"cwd":"/"}}`)
	if got := c.answer(1); got != `{"exitCode":3,"stderr":"bad\n","stdout":"/\n"}` {
		t.Errorf("answer %s", got)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"execOneOffCommand","params":{"command":["sleep","63"],"timeoutMs":100}}`)
	if got := c.answer(2); got != `{"exitCode":-1,"stderr":"timed out after 100ms\n","stdout":""}` {
		t.Errorf("a command that takes too long: %s", got)
	}
	c.send(`{"jsonrpc":"2.0","id":6,"method":"execOneOffCommand","params":{"command":["sh","-c","kill -9 $$"]}}`)
	if got := c.answer(6); got != `{"exitCode":-1,"stderr":"killed by SIGKILL\n","stdout":""}` {
		t.Errorf("a command that was killed: %s", got)
	}
	c.send(`{"jsonrpc":"2.0","id":3,"method":"execOneOffCommand","params":{"command":[]}}`)
	c.send(`{"jsonrpc":"2.0","id":4,"method":"execOneOffCommand","params":{"command":["no-such-command"]}}`)
	for n := 0; n < 2; n++ {
		m := c.await("an error", func(m map[string]any) bool { return m["error"] != nil })
		want := map[any]float64{3.0: -32602, 4.0: -32603}[m["id"]]
		if m["error"].(map[string]any)["code"] != want {
			t.Errorf("%v, want code %v", m, want)
		}
	}
	// What still runs when the client goes is stopped.
	c.send(`{"jsonrpc":"2.0","id":5,"method":"execOneOffCommand","params":{"command":["sh","-c","touch begun; sleep 64"]}}`)
	eventually(t, "the command runs", func() bool {
		_, err := os.Stat(filepath.Join(s.work, "begun"))
		return err == nil
	})
	c.in.Close()
	contains(t, "the command that was stopped", c.answer(5), `"exitCode":-1`)
	if code := c.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, c.err.String())
	}
}

func TestMCPGitDiffToRemote(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	c := s.connect()
	s.git("init", "-q", "-b", "main")
	s.file("a", "one\n")
	s.git("add", "a")
	s.git("commit", "-q", "-m", "first")
	c.send(`{"jsonrpc":"2.0","id":1,"method":"gitDiffToRemote","params":{"cwd":%q}}`, s.work)
	m := c.await("an error", func(m map[string]any) bool { return m["id"] == 1.0 })
	if e, _ := m["error"].(map[string]any); e["code"] != -32600.0 {
		t.Errorf("without a remote: %v", m)
	}

	remote := filepath.Join(s.dir, "remote.git")
	s.git("init", "-q", "--bare", remote)
	s.git("remote", "add", "origin", remote)
	s.git("push", "-q", "-u", "origin", "main")
	sha := s.git("rev-parse", "HEAD")
	s.file("a", "two\n")
	s.git("commit", "-q", "-a", "-m", "not pushed")
	s.file("new file", "three\n")
	c.send(`{"jsonrpc":"2.0","id":2,"method":"gitDiffToRemote","params":{"cwd":%q}}`, s.work)
	var got struct{ SHA, Diff string }
	if err := json.Unmarshal([]byte(c.answer(2)), &got); err != nil || got.SHA != sha {
		t.Errorf("sha %q, want %q: %v", got.SHA, sha, err)
	}
	contains(t, "diff", got.Diff, "-one\n+two\n", "+++ b/new file", "+three\n")
}

func TestMCPSavedConfig(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	c := s.connect("-c", `model_reasoning_effort="low"`) // which is nothing that is saved
	c.send(`{"jsonrpc":"2.0","id":1,"method":"getUserSavedConfig"}`)
	if got, want := c.answer(1), `{"config":{"approvalPolicy":"never","model":"mock-model","profiles":{},"sandboxMode":"danger-full-access"}}`; got != want {
		t.Errorf("answer %s\nwant %s", got, want)
	}
	s.configure("\n[sandbox_workspace_write]\nnetwork_access = true\n[tools]\nweb_search_request = true\nview_image = false\n" +
		"[profiles.quick]\nmodel = \"small\"\napproval_policy = \"untrusted\"\nmodel_reasoning_effort = \"low\"\n")
	c.send(`{"jsonrpc":"2.0","id":2,"method":"getUserSavedConfig","params":null}`)
	want := `{"config":{"approvalPolicy":"never","model":"mock-model","profiles":{"quick":{"approvalPolicy":"untrusted","model":"small","modelReasoningEffort":"low"}},` +
		`"sandboxMode":"danger-full-access","sandboxSettings":{"networkAccess":true,"writableRoots":[]},"tools":{"viewImage":false,"webSearch":true}}}`
	if got := c.answer(2); got != want {
		t.Errorf("as it is saved now: %s\nwant %s", got, want)
	}
	c.send(`{"jsonrpc":"2.0","id":4,"method":"getConfigToml"}`)
	if got := `{"config":` + c.answer(4) + `}`; got != want {
		t.Errorf("by its older name: %s\nwant %s", got, want)
	}
	s.configure("\nnot toml")
	c.send(`{"jsonrpc":"2.0","id":3,"method":"getUserSavedConfig"}`)
	if m := c.await("an error", func(m map[string]any) bool { return m["id"] == 3.0 }); m["error"] == nil {
		t.Errorf("a file that cannot be read: %v", m)
	}
}

// configure adds to the configuration file.
func (s *mcpSite) configure(more string) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, "home", "fermata", "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(more); err != nil {
		s.t.Fatal(err)
	}
}

func TestMCPAuthStatus(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	c := s.connect()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"getAuthStatus","params":{"includeToken":true}}`)
	if got, want := c.answer(1), `{"preferredAuthMethod":"apikey"}`; got != want {
		t.Errorf("without a key: %s, want %s", got, want)
	}
	s.env = append(s.env, "MOCK_KEY=sesame")
	c = s.connect("-c", `model_providers.mock_provider.env_key="MOCK_KEY"`)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"getAuthStatus","params":{"includeToken":true}}`)
	if got, want := c.answer(1), `{"authMethod":"apikey","preferredAuthMethod":"apikey"}`; got != want {
		t.Errorf("with a key that is not shared: %s, want %s", got, want)
	}
	c = s.connect("--share-key", "-c", `model_providers.mock_provider.env_key="MOCK_KEY"`)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"getAuthStatus","params":{}}`)
	if got, want := c.answer(1), `{"authMethod":"apikey","preferredAuthMethod":"apikey"}`; got != want {
		t.Errorf("with a key: %s, want %s", got, want)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"getAuthStatus","params":{"includeToken":true,"refreshToken":true}}`)
	if got, want := c.answer(2), `{"authMethod":"apikey","authToken":"sesame","preferredAuthMethod":"apikey"}`; got != want {
		t.Errorf("asked for the key: %s, want %s", got, want)
	}
}

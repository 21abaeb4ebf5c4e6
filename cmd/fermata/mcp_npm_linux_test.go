package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

// mcpServersDir is where the reference servers of MCP and its conformance tests are, unchanged and
// pinned.
const mcpServersDir = "../../e2e/mcp-servers"

// installMCPServers fetches them, if they are not there, once.
var installMCPServers = sync.OnceValue(func() error {
	return npmInstall(mcpServersDir, "@modelcontextprotocol/conformance")
})

// newServersPlace is a place whose configuration names the reference servers.
func newServersPlace(t *testing.T) *place {
	t.Helper()
	if err := installMCPServers(); err != nil {
		t.Skipf("the reference servers of MCP are not tested: %v", err)
	}
	dir, err := filepath.Abs(filepath.Join(mcpServersDir, "node_modules", "@modelcontextprotocol"))
	if err != nil {
		t.Fatal(err)
	}
	pl := newPlace(t)
	home := filepath.Join(pl.dir, "home", "fermata")
	text := fmt.Sprintf("[mcp_servers.every]\ncommand = \"node\"\nargs = [%q, \"stdio\"]\nstartup_timeout_sec = 600\ntool_timeout_sec = 600\n"+
		"[mcp_servers.files]\ncommand = \"node\"\nargs = [%q, %q]\nstartup_timeout_sec = 600\n",
		filepath.Join(dir, "server-everything", "dist", "index.js"), filepath.Join(dir, "server-filesystem", "dist", "index.js"), pl.work)
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return pl
}

func TestReferenceServers(t *testing.T) {
	t.Parallel()
	pl := newServersPlace(t)
	pl.file("hello.txt", "hello from a file\n")
	var plan, want []string
	for call, answer := range map[string]string{
		`every__echo {"message":"hi"}`:                                     "Echo: hi",
		`every__get-sum {"a":2,"b":3}`:                                     "5",
		`every__get-structured-content {"location":"Chicago"}`:             "temperature",
		`every__trigger-long-running-operation {"duration":0.2,"steps":2}`: "completed",
		`files__read_text_file {"path":"hello.txt"}`:                       "hello from a file",
		`files__read_text_file {"path":"/etc/passwd"}`:                     "Access denied",
		`files__list_allowed_directories {}`:                               pl.work,
	} {
		plan, want = append(plan, "call: "+call), append(want, answer)
	}
	pl.must("exec", "--demo", "plan: "+strings.Join(plan, "; "))
	contains(t, "answers", pl.must("show", pl.conversation()), want...)

	write := fmt.Sprintf(`call: files__write_file {"path":%q,"content":"x"}`, filepath.Join(pl.work, "made"))
	out, errs, _ := pl.run("exec", "--demo", write)
	contains(t, "what may not be called", out+errs, "needs an approval")
	pl.must("exec", "--demo", "-c", "mcp_servers.every.enabled=false", "-c", `mcp_servers.files.tools.write_file.approval="allow"`, write)
	if _, err := os.Stat(filepath.Join(pl.work, "made")); err != nil {
		t.Error(err)
	}
}

// The server is interrupted, then killed, in mid-call.
func TestReferenceServerInMidCall(t *testing.T) {
	t.Parallel()
	pl := newServersPlace(t)
	const long = `call: every__trigger-long-running-operation {"duration":600,"steps":6000}`
	pr := pl.start("exec", "--demo", long)
	node := pl.nodeOf(pr.cmd.Process.Pid)
	id := pl.conversation()
	pl.awaitEvent(id, "the call", func(b p.Body) bool { _, ok := b.(*p.ServerCallStarted); return ok })
	pr.signal(syscall.SIGINT)
	if code := pr.code(); code != exitInterrupted {
		t.Errorf("exit code %d\n%s", code, pr.err.String())
	}
	if lives(node) {
		t.Error("the server is left")
	}

	pl = newServersPlace(t)
	pr = pl.start("exec", "--demo", "plan: "+long+`; call: every__echo {"message":"back again"}`)
	node = pl.nodeOf(pr.cmd.Process.Pid)
	id = pl.conversation()
	pl.awaitEvent(id, "the call", func(b p.Body) bool { _, ok := b.(*p.ServerCallStarted); return ok })
	if err := syscall.Kill(node.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := pr.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, pr.err.String())
	}
	contains(t, "after the death of the server", pl.must("show", id), "the MCP server every ended during the call: it was killed by SIGKILL", "Echo: back again")
	pl.fsck(id)
}

// nodeOf waits for the server everything below a process and returns it.
func (pl *place) nodeOf(ancestor int) (found row) {
	pl.t.Helper()
	awaitTrue(pl.t, "the server", func() bool {
		for _, r := range below(ancestor) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.pid))
			if strings.HasPrefix(string(line), "node\x00") && strings.Contains(string(line), "server-everything") {
				found = r
				return true
			}
		}
		return false
	})
	return found
}

var allScenarios = flag.Bool("all-scenarios", false, "run all scenarios of MCP's conformance tests that apply")

// conformance are the scenarios that are run.
func conformance() []string {
	list := []string{"initialize", "tools_call", "sse-retry", "elicitation-sep1034-client-defaults", "auth/scope-step-up", "auth/pre-registration"}
	if *allScenarios {
		for _, name := range strings.Fields("metadata-default metadata-var1 metadata-var2 metadata-var3 scope-from-www-authenticate scope-from-scopes-supported scope-omitted-when-undefined scope-retry-limit " +
			"token-endpoint-auth-basic token-endpoint-auth-post token-endpoint-auth-none 2025-03-26-oauth-endpoint-fallback resource-mismatch offline-access-scope offline-access-not-supported basic-cimd") {
			list = append(list, "auth/"+name)
		}
	}
	return list
}

// The scenarios for clients of MCP's conformance tests. When a
// stream is resumed is not judged: that depends on how busy the machine is.
func TestConformance(t *testing.T) {
	t.Parallel()
	if err := installMCPServers(); err != nil {
		t.Skipf("the conformance tests of MCP are not run: %v", err)
	}
	dir, err := filepath.Abs(mcpServersDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range conformance() {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			client := "client.mjs"
			if strings.HasPrefix(scenario, "auth/") {
				client = "auth.mjs"
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			out := filepath.Join(pl.dir, "results")
			cmd := exec.CommandContext(ctx, "node", "--import", filepath.Join(dir, "node20.mjs"),
				filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
				"client", "--command", "node "+filepath.Join(dir, client), "--scenario", scenario, "--timeout", "150000", "-o", out)
			cmd.Dir, cmd.Env = pl.work, append(pl.env, "FERMATA_BIN="+pl.bin)
			said, _ := cmd.CombinedOutput() // what failed is in the checks
			files, _ := filepath.Glob(filepath.Join(out, "*", "checks.json"))
			deeper, _ := filepath.Glob(filepath.Join(out, "*", "*", "checks.json"))
			files = append(files, deeper...)
			if len(files) != 1 {
				t.Fatalf("%d files of checks\n%s", len(files), said)
			}
			text, err := os.ReadFile(files[0])
			var checks []struct{ ID, Status, ErrorMessage string }
			if err != nil || json.Unmarshal(text, &checks) != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			passed := 0
			for _, c := range checks {
				switch {
				case c.Status == "SUCCESS":
					passed++
				case c.Status == "FAILURE" && c.ID != "client-sse-retry-timing":
					t.Errorf("%s: %s", c.ID, c.ErrorMessage)
				}
			}
			if passed == 0 {
				t.Errorf("nothing passed\n%s", said)
			}
		})
	}
}

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/protocol"
	"github.com/google/go-cmp/cmp"
)

func TestToolsAreListedAndCalled(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain"), "garbage": self(t, "garbage")})
	if got := r.names(); got != "" {
		t.Errorf("before the start: %s", got)
	}
	if w := r.start(t); w != nil {
		t.Errorf("warnings %v", w)
	}
	if r.Await("/w") != nil {
		t.Error("there is still something to wait for")
	}
	tools := "__ask S__big S__delete S__die S__echo S__env S__fails S__grow S__sample S__steps S__wait"
	want := "garbage" + strings.ReplaceAll(tools, "S", "garbage") + " s" + strings.ReplaceAll(tools, "S", "s")
	if got := r.names(); got != want {
		t.Errorf("tools %s\nwant  %s", got, want)
	}
	for _, server := range []string{"s", "garbage"} {
		res := r.call(t.Context(), t, server+"__echo", ` { "text": "hello" } `)
		if res.Output.Output != "hello" || res.Output.Failed || res.Output.MCP.Tool != (protocol.MCPTool{Server: server, Name: "echo"}) {
			t.Errorf("%+v", res.Output)
		}
	}
	begun := &protocol.ServerCallStarted{Call: protocol.CallID{Turn: 1, Response: 1}, Tool: protocol.MCPTool{Server: "s", Name: "echo"}, Arguments: json.RawMessage(`{"text":"hello"}`)}
	if diff := cmp.Diff(begun, r.records[0]); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	spec := tool.Find(r.Tools("/w", nil), "s__echo").Spec()
	if spec.Description != "Repeats a text." || !strings.Contains(string(spec.Parameters), `"text"`) {
		t.Errorf("spec %+v", spec)
	}
}

func TestErrorsOfAToolAreOutput(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.start(t)
	for name, want := range map[string]string{"s__fails": "no such thing", "s__echo": "wrong"} {
		arguments := map[string]string{"s__fails": "{}", "s__echo": `{"wrong":1}`}[name]
		if res := r.call(t.Context(), t, name, arguments); !res.Output.Failed || !strings.Contains(res.Output.Output, want) {
			t.Errorf("%s: %+v", name, res.Output)
		}
	}
	if res := r.call(t.Context(), t, "s__echo", "[1]"); !res.Output.Failed || !strings.Contains(res.Output.Output, "failed to parse") {
		t.Errorf("%+v", res.Output)
	}
}

// A server gets what its definition says of the environment, and no more.
func TestEnvironmentOfAServer(t *testing.T) {
	def := self(t, "plain")
	def.Env["OWN"] = config.NewSecret("mine")
	def.EnvVars = []string{"PASSED"}
	def.Cwd = "/"
	r := open(t, map[string]config.MCPServer{"s": def})
	r.start(t)
	if got := r.call(t.Context(), t, "s__env", "").Output.Output; got != "own=mine passed=yes secret= dir=/" {
		t.Error(got)
	}
}

func TestAStopIsSeenByTheServer(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	done, pids := r.waiting(ctx, t)
	cancel(errors.New("stopped"))
	if res := <-done; !res.Output.Aborted {
		t.Errorf("%+v", res.Output)
	}
	until(t, "notifications/cancelled", func() bool { return strings.Contains(r.noted(), "cancelled") })
	if !runs(pids[0]) {
		t.Error("the server was ended, though it took the notification")
	}
	if res := r.call(t.Context(), t, "s__echo", `{"text":"still here"}`); res.Output.Output != "still here" {
		t.Errorf("%+v", res.Output)
	}
	r.Close()
	if runs(pids[0]) || runs(pids[1]) {
		t.Error("processes of the server are left")
	}
}

// A server that is halted does not read. The next call must find one that works.
func TestAServerThatDoesNotReadIsGivenUp(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.list[0].writeLimit = time.Second // a write that is only late must not be given up
	r.start(t)
	first, pids := r.waiting(t.Context(), t)
	if err := syscall.Kill(pids[0].PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	full := r.call(t.Context(), t, "s__echo", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`)
	for _, res := range []tool.Result{full, <-first} {
		if !res.Output.Failed || !strings.Contains(res.Output.Output, "MCP server s") {
			t.Errorf("%+v", res.Output)
		}
	}
	if runs(pids[1]) {
		t.Error("a process of the server is left")
	}
	if res := r.call(t.Context(), t, "s__echo", `{"text":"again"}`); res.Output.Output != "again" {
		t.Errorf("%+v", res.Output)
	}
}

func TestAServerThatDiesIsBackForTheNextCall(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.start(t)
	for range 2 {
		res := r.call(t.Context(), t, "s__die", "{}")
		if want := "the MCP server s ended during the call: it ended with exit code 9; it printed: out of luck"; res.Output.Output != want || !res.Output.Failed {
			t.Errorf("%+v, want %s", res.Output, want)
		}
		if res := r.call(t.Context(), t, "s__echo", `{"text":"back"}`); res.Output.Output != "back" {
			t.Errorf("%+v", res.Output)
		}
	}
}

func TestACallHasATimeLimit(t *testing.T) {
	def := self(t, "plain")
	def.ToolTimeout = 50 * time.Millisecond
	r := open(t, map[string]config.MCPServer{"s": def})
	r.start(t)
	res := r.call(t.Context(), t, "s__wait", "{}")
	if want := "the MCP server s did not answer within 50ms"; res.Output.Output != want || !res.Output.Failed || res.Output.Aborted {
		t.Errorf("%+v, want %s", res.Output, want)
	}
}

func TestAServerThatDoesNotStartIsAWarning(t *testing.T) {
	hang, missing := self(t, "hang"), config.MCPServer{Command: "no-such-program"}
	hang.StartupTimeout = 200 * time.Millisecond
	r := open(t, map[string]config.MCPServer{"fail": self(t, "fail"), "hang": hang, "missing": missing, "s": self(t, "plain")})
	want := []string{
		"MCP server fail is not available: it ended with exit code 3; it printed: no licence",
		"MCP server hang is not available: it did not start within 200ms",
		`MCP server missing is not available: start command: find in PATH no-such-program: no such file or directory`,
	}
	if diff := cmp.Diff(want, r.start(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Await("/w") != nil {
		t.Error("servers that failed are waited for again")
	}
	if res := r.call(t.Context(), t, "s__echo", `{"text":"fine"}`); res.Output.Output != "fine" {
		t.Errorf("%+v", res.Output)
	}
}

func TestARequiredServerIsAnError(t *testing.T) {
	def := self(t, "fail")
	def.Required = true
	r := open(t, map[string]config.MCPServer{"s": def})
	for range 2 {
		if _, err := r.Await("/w")(t.Context()); err == nil || !strings.Contains(err.Error(), "MCP server s is required: it ended with exit code 3") {
			t.Errorf("error %v", err)
		}
	}
}

func TestALongResultIsShortenedAndRecordedWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("10 MB take long with the race detector")
	}
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.start(t)
	size := longtest.Default(10, 2) << 20
	out := r.call(t.Context(), t, "s__big", fmt.Sprintf(`{"Bytes":%d}`, size)).Output
	whole, _ := tool.MCPContent(out.MCP.Result)
	if len(whole) != size {
		t.Errorf("%d bytes were recorded", len(whole))
	}
	if len(out.Output) > 50_000 || !strings.Contains(out.Output, `call read_file with path "output:`) {
		t.Errorf("the model is sent %d bytes, ending in %s", len(out.Output), out.Output[len(out.Output)-200:])
	}
}

func TestAListThatChanges(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.start(t)
	r.call(t.Context(), t, "s__grow", "{}")
	until(t, "the new tool", func() bool { return strings.Contains(r.names(), "s__grown") })
}

func TestSomeToolsOnly(t *testing.T) {
	def := self(t, "plain")
	def.EnabledTools, def.DisabledTools = []string{"echo", "wait", "nothing"}, []string{"wait"}
	off := self(t, "fail")
	off.Enabled = new(false)
	r := open(t, map[string]config.MCPServer{"s": def, "off": off})
	r.start(t)
	if got := r.names(); got != "s__echo" {
		t.Errorf("tools %s", got)
	}
}

func TestApproval(t *testing.T) {
	type row struct {
		name    string
		set     func(*config.MCPServer)
		call    func(*tool.Call)
		tool    string
		verdict string
	}
	never := func(c *tool.Call) { c.Settings.Approval = protocol.ApprovalNever }
	all := func(a config.MCPApproval) func(*config.MCPServer) {
		return func(d *config.MCPServer) { d.Approval = a }
	}
	for _, c := range []row{
		{name: "read-only", tool: "echo", verdict: "ran"},
		{name: "not read-only", tool: "delete", verdict: "asked"},
		{name: "nobody to ask", tool: "delete", call: never, verdict: "refused"},
		{name: "read-only, nobody to ask", tool: "echo", call: never, verdict: "ran"},
		{name: "ask", tool: "echo", set: all(config.MCPAsk), verdict: "asked"},
		{name: "ask nobody", tool: "echo", set: all(config.MCPAsk), call: never, verdict: "refused"},
		{name: "allow", tool: "delete", set: all(config.MCPAllow), call: never, verdict: "ran"},
		{name: "deny", tool: "echo", set: all(config.MCPDeny), verdict: "refused"},
		{name: "one tool", tool: "delete", set: func(d *config.MCPServer) {
			d.Approval, d.ToolApproval = config.MCPDeny, map[string]config.MCPApproval{"delete": config.MCPAllow}
		}, verdict: "ran"},
		{name: "approved", tool: "delete", call: func(c *tool.Call) { c.Grant = protocol.Approved }, verdict: "ran"},
		{name: "approved but denied by configuration", tool: "delete", set: all(config.MCPDeny), call: func(c *tool.Call) { c.Grant = protocol.Approved }, verdict: "refused"},
		{name: "approved for the session", tool: "delete", call: func(c *tool.Call) {
			c.Grants = policy.Grants{}.AnsweredTool(protocol.ApprovedForSession, protocol.MCPTool{Server: "s", Name: "delete"})
		}, verdict: "ran"},
		{name: "another was approved", tool: "delete", call: func(c *tool.Call) {
			c.Grants = policy.Grants{}.AnsweredTool(protocol.ApprovedForSession, protocol.MCPTool{Server: "s", Name: "echo"})
		}, verdict: "asked"},
		{name: "full access", tool: "delete", call: func(c *tool.Call) { never(c); c.Settings.Sandbox.Mode = protocol.SandboxFullAccess }, verdict: "ran"},
	} {
		t.Run(c.name, func(t *testing.T) {
			def := config.MCPServer{}
			if c.set != nil {
				c.set(&def)
			}
			made := &Tool{server: newServer("s", def, Options{}), of: protocol.MCPTool{Server: "s", Name: c.tool}, readOnly: c.tool == "echo"}
			call := tool.Call{Settings: protocol.Settings{Approval: protocol.ApprovalOnRequest, Cwd: "/w"}}
			if c.call != nil {
				c.call(&call)
			}
			got := "ran"
			if res := made.approve(call, json.RawMessage(`{"a":1}`)); res != nil && res.Ask != nil {
				got = "asked"
				if *res.Ask.MCP != made.of || string(res.Ask.Detail) != `{"a":1}` || res.Ask.Kind != protocol.ApproveTool {
					t.Errorf("question %+v", res.Ask)
				}
			} else if res != nil {
				got = "refused"
			}
			if got != c.verdict {
				t.Errorf("%s, want %s", got, c.verdict)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for _, c := range [][3]string{
		{"docs", "search", "docs__search"},
		{"docs", "a.b/c ü", "docs__a_b_c__"},
		{"docs", strings.Repeat("x", 58), "docs__" + strings.Repeat("x", 58)},
		{"docs", strings.Repeat("x", 59), "docs__xxxxxxxxxxxxxxxxxxf49e0dd7766f87c861787026b9d6e3c5c360824c"},
	} {
		if got := toolName(c[0], c[1]); got != c[2] || len(got) > maxName {
			t.Errorf("%s %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for n := range 12 {
		got = append(got, backoff(n))
	}
	ms := time.Millisecond
	want := []time.Duration{0, 0, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 16000 * ms, 30000 * ms, 30000 * ms, 30000 * ms, 30000 * ms}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

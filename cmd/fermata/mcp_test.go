package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// An mcpSite is a place with the configuration that the tests of Codex's clients use.
type mcpSite struct {
	*place
	srv *modeltest.Server
}

func newMCPSite(t testing.TB, approval string, replies ...modeltest.Reply) *mcpSite {
	t.Helper()
	pl := newPlace(t)
	s := &mcpSite{pl, modeltest.New(t, replies...)}
	home := filepath.Join(pl.dir, "home", "fermata")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`
model = "mock-model"
approval_policy = %q
sandbox_mode = "danger-full-access"
model_provider = "mock_provider"

[model_providers.mock_provider]
name = "Mock provider for test"
base_url = %q
wire_api = "chat"
request_max_retries = 0
stream_max_retries = 0
`, approval, s.srv.URL())
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// An mcpClient drives the server over its pipes.
type mcpClient struct {
	*process
	in    io.WriteCloser
	lines chan string
}

// connect starts the server and shakes hands with it.
func (s *mcpSite) connect(args ...string) *mcpClient {
	s.t.Helper()
	c := s.start(args...)
	c.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
	c.await("the answer to initialize", func(m map[string]any) bool { return m["id"] == "init" })
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// start starts the server.
func (s *mcpSite) start(args ...string) *mcpClient {
	s.t.Helper()
	return s.onPipes(append([]string{"mcp-server"}, args...)...)
}

// onPipes starts a server that reads and writes lines.
func (pl *place) onPipes(args ...string) *mcpClient {
	pl.t.Helper()
	pr := &process{t: pl.t, done: make(chan struct{})}
	pr.cmd = pl.command(context.Background(), args...)
	in, err := pr.cmd.StdinPipe()
	if err != nil {
		pl.t.Fatal(err)
	}
	r, w := io.Pipe()
	pr.cmd.Stdout, pr.cmd.Stderr = w, &pr.err
	c := &mcpClient{pr, in, make(chan string, 1000)}
	go func() { // ends with the process
		defer close(c.lines)
		for sc := bufio.NewReader(r); ; {
			line, err := sc.ReadString('\n')
			if err != nil {
				return
			}
			c.lines <- strings.TrimSpace(line)
		}
	}()
	pr.begin(func() { w.Close() })
	return c
}

func (c *mcpClient) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

// await reads until a message is accepted.
func (c *mcpClient) await(what string, accept func(map[string]any) bool) map[string]any {
	c.t.Helper()
	timer := time.NewTimer(untilDeadline(c.t))
	defer timer.Stop()
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				c.t.Fatalf("the server has ended before %s\n%s", what, c.err.String())
			}
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				c.t.Fatalf("%v: %s", err, line)
			}
			if accept(m) {
				return m
			}
		case <-timer.C:
			c.t.Fatalf("waited in vain for %s\n%s", what, c.err.String())
		}
	}
}

// notice waits for a notification and returns its params.
func (c *mcpClient) notice(method string) map[string]any {
	c.t.Helper()
	m := c.await(method, func(m map[string]any) bool {
		if m["id"] != nil && m["method"] == nil {
			c.t.Errorf("before %s: unexpected answer %v", method, m)
		}
		return m["method"] == method
	})
	return m["params"].(map[string]any)
}

// answer waits for the answer to a request and returns it as JSON.
func (c *mcpClient) answer(id float64) string {
	c.t.Helper()
	m := c.await(fmt.Sprintf("the answer to %v", id), func(m map[string]any) bool { return m["id"] == id && m["method"] == nil })
	b, _ := json.Marshal(m["result"])
	return string(b)
}

func shellCall(id string, argv ...string) modeltest.Step {
	b, _ := json.Marshal(map[string]any{"command": argv})
	return modeltest.Call(id, "shell", string(b))
}

func msgOf(params map[string]any) map[string]any { return params["msg"].(map[string]any) }

// Two turns, each stopped in a command by cancelling its call; the same call id in both.
func TestMCPCancelTwice(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(shellCall("call_sleep", "sleep", "60")), modeltest.Respond(shellCall("call_sleep", "sleep", "60")),
		modeltest.Respond(modeltest.Say("Enjoy!")))
	c := s.connect()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"sleep"}}}`)
	id := msgOf(c.notice("session_configured"))["session_id"]
	for n := 1; n <= 2; n++ {
		if got := msgOf(c.notice("exec_command_begin"))["call_id"]; got != "call_sleep" {
			t.Errorf("call id %v", got)
		}
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n)
		got, _ := json.Marshal(msgOf(c.notice("turn_aborted")))
		if string(got) != `{"reason":"interrupted","type":"turn_aborted"}` {
			t.Errorf("turn_aborted: %s", got)
		}
		c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"codex-reply","arguments":{"sessionId":%q,"prompt":"again"}}}`, n+1, id)
	}
	want := fmt.Sprintf(`{"content":[{"text":"Enjoy!","type":"text"}],"structuredContent":{"content":"Enjoy!","conversationId":%q,"threadId":%[1]q}}`, id)
	if got := c.answer(3); got != want {
		t.Errorf("answer %s\nwant %s", got, want)
	}
	c.in.Close()
	if code := c.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, c.err.String())
	}
	s.fsck(id.(string))
}

func TestMCPApproval(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "untrusted", modeltest.Respond(shellCall("call_1", "touch", "made")), modeltest.Respond(modeltest.Say("made it")))
	c := s.connect()
	c.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"make it"}}}`)
	ask := c.await("an elicitation", func(m map[string]any) bool { return m["method"] == "elicitation/create" })
	params := ask["params"].(map[string]any)
	delete(params, "message")
	got, _ := json.Marshal(map[string]any{"id": ask["id"], "params": params})
	work, err := filepath.EvalSymlinks(s.work)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"id":0,"params":{"codex_call_id":"call_1","codex_command":["touch","made"],"codex_cwd":%q,"codex_elicitation":"exec-approval",`+
		`"codex_event_id":"1","codex_mcp_tool_call_id":"7","requestedSchema":{"properties":{},"type":"object"}}}`, work)
	if string(got) != want {
		t.Errorf("asked %s\nwant  %s", got, want)
	}
	if _, err := os.Stat(filepath.Join(s.work, "made")); err == nil {
		t.Error("the command ran before it was approved")
	}
	c.send(`{"jsonrpc":"2.0","id":0,"result":{"decision":"approved"}}`)
	c.notice("task_complete")
	contains(t, "answer", c.answer(7), "made it")
	if _, err := os.Stat(filepath.Join(s.work, "made")); err != nil {
		t.Error(err)
	}
}

// The end of stdin and SIGTERM stop the turn and its command, answer the call,
// and leave a conversation that the next server goes on with.
func TestMCPEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*mcpClient){
		"end of stdin": func(c *mcpClient) { c.in.Close() },
		"SIGTERM":      func(c *mcpClient) { c.signal(unix.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMCPSite(t, "never", modeltest.Respond(shellCall("c", "sleep", "61")), modeltest.Respond(modeltest.Say("here again")))
			c := s.connect()
			c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"sleep"}}}`)
			id := msgOf(c.notice("session_configured"))["session_id"].(string)
			c.notice("exec_command_begin")
			end(c)
			c.notice("turn_aborted")
			contains(t, "answer", c.answer(1), "turn interrupted", `"isError":true`)
			if code := c.code(); code != 0 {
				t.Errorf("exit code %d\n%s", code, c.err.String())
			}
			next := s.connect()
			next.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"go on"}}}`, id)
			contains(t, "answer", next.answer(1), "here again")
		})
	}
}

func TestMCPSchema(t *testing.T) {
	t.Parallel()
	var got struct {
		Methods map[string]struct{ Kind string }
	}
	if err := json.Unmarshal([]byte(newPlace(t).must("mcp", "schema")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Methods["tools/call"].Kind != "request" || got.Methods["notifications/initialized"].Kind != "notification" {
		t.Errorf("methods %v", got.Methods)
	}
}

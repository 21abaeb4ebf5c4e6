package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/surface/acp"
	"github.com/fermata-agent/fermata/internal/surface/appserver"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver"
)

// A raise is a request with which a client tries to get more than the command line of its server allows. Want is in the
// refusal; empty: it is carried out, and what it runs must not get out of the sandbox. In it, OUT is a file outside the workspace.
type raise struct{ method, params, want string }

const tooMuch = "danger-full-access is not allowed here"

// appRaises are those of the app-server, in a thread T.
var appRaises = []raise{
	{"thread/start", `{"sandbox":"danger-full-access"}`, tooMuch},
	{"thread/start", `{"config":{"sandbox_mode":"danger-full-access"}}`, tooMuch},
	{"thread/start", `{"permissions":":danger-full-access"}`, tooMuch},
	{"thread/resume", `{"threadId":"T","sandbox":"danger-full-access"}`, tooMuch},
	{"thread/fork", `{"threadId":"T","sandbox":"danger-full-access"}`, tooMuch},
	{"thread/settings/update", `{"threadId":"T","sandboxPolicy":{"type":"dangerFullAccess"}}`, tooMuch},
	{"turn/start", `{"threadId":"T","sandboxPolicy":{"type":"dangerFullAccess"},"input":[{"type":"text","text":"run: echo x > OUT"}]}`, tooMuch},
	{"command/exec", `{"command":["sh","-c","echo x > OUT"],"sandboxPolicy":{"type":"dangerFullAccess"}}`, tooMuch},
	{"config/batchWrite", `{"edits":[{"keyPath":"sandbox_mode","value":"danger-full-access","mergeStrategy":"replace"}]}`, "cannot be saved by a client"},
	{"config/value/write", `{"keyPath":"sandbox_mode","value":"danger-full-access","mergeStrategy":"replace"}`, "cannot be saved by a client"},
	{"command/exec", `{"command":["sh","-c","echo x > OUT"]}`, ""},
	{"thread/shellCommand", `{"threadId":"T","command":"echo x > OUT"}`, ""},
}

// appLooks are its methods that run, write and configure nothing beyond a thread's own records, or only what was
// accepted before.
var appLooks = strings.Fields(`initialize initialized thread/read thread/list thread/search thread/loaded/list thread/turns/list thread/items/list
	thread/unsubscribe thread/archive thread/unarchive thread/delete thread/name/set thread/revert thread/goal/get
	thread/backgroundTerminals/list thread/backgroundTerminals/terminate thread/backgroundTerminals/clean
	turn/steer turn/interrupt thread/compact/start review/start
	thread/queue/add thread/queue/list thread/queue/update thread/queue/delete thread/queue/reorder thread/queue/start
	model/list account/read config/read configRequirements/read collaborationMode/list permissionProfile/list skills/list hooks/list mcpServerStatus/list`)

// mcpRaises are those of the MCP server, in a conversation T.
var mcpRaises = []raise{
	{"newConversation", `{"sandbox":"danger-full-access"}`, tooMuch},
	{"newConversation", `{"config":{"sandbox_mode":"danger-full-access"}}`, tooMuch},
	{"resumeConversation", `{"conversationId":"T","overrides":{"sandbox":"danger-full-access"}}`, tooMuch},
	{"sendUserTurn", `{"conversationId":"T","items":[{"type":"text","data":{"text":"x"}}],"cwd":".","approvalPolicy":"on-request","model":"","sandboxPolicy":{"mode":"danger-full-access"}}`, tooMuch},
	{"tools/call", `{"name":"codex","arguments":{"prompt":"x","sandbox":"danger-full-access"}}`, tooMuch},
	{"tools/call", `{"name":"conversationCreate","arguments":{"prompt":"x","cwd":".","sandbox":"danger-full-access"}}`, tooMuch},
	{"tools/call", `{"name":"conversationSendMessage","arguments":{"conversation_id":"T","content":[{"type":"text","text":"x"}],"sandbox":"danger-full-access"}}`, tooMuch},
	{"execOneOffCommand", `{"command":["sh","-c","echo x > OUT"],"sandboxPolicy":{"mode":"danger-full-access"}}`, tooMuch},
	{"execOneOffCommand", `{"command":["sh","-c","echo x > OUT"]}`, ""},
}

var mcpLooks = strings.Fields(`initialize notifications/initialized notifications/cancelled ping logging/setLevel tools/list sendUserMessage interruptConversation
	addConversationListener removeConversationListener listConversations archiveConversation getUserAgent loginChatGpt cancelLoginChatGpt logoutChatGpt
	gitDiffToRemote getUserSavedConfig getConfigToml getAuthStatus`)

// acpRaises are those of acp, in a session T.
var acpRaises = []raise{
	{"session/set_config_option", `{"sessionId":"T","configId":"sandbox","value":"danger-full-access"}`, tooMuch},
	{"session/set_mode", `{"sessionId":"T","modeId":"danger-full-access"}`, "there is no"},
	{"session/prompt", `{"sessionId":"T","prompt":[{"type":"text","text":"run: echo x > OUT"}]}`, ""},
}

// acpLooks are its methods that take no settings: a session begins, or is opened, with those of the configuration and the command line.
var acpLooks = strings.Fields(`initialize authenticate session/new session/load session/resume session/list session/close session/delete session/cancel session/set_model`)

// webRaises are those of the HTTP API, of a conversation at T.
var webRaises = []raise{
	{"/api/v1/conversations", `{"sandbox":"danger-full-access","prompt":"x"}`, tooMuch},
	{"T/ops", `{"kind":"configure","body":{"overrides":{"sandbox":{"mode":"danger-full-access"}}}}`, tooMuch},
	{"T/ops", `{"kind":"user_turn","body":{"content":[{"type":"text","text":"x"}],"overrides":{"sandbox":{"mode":"danger-full-access"}}}}`, tooMuch},
	{"T/ops", `{"kind":"try_now","body":{"overrides":{"sandbox":{"mode":"danger-full-access"}}}}`, tooMuch},
	{"T/ops", `{"kind":"user_shell","body":{"command":"echo x > OUT"}}`, ""},
}

// Every method that a server has either looks, or is tried here.
func TestEveryMethodIsInTheTableOfLimits(t *testing.T) {
	for _, x := range []struct {
		schema map[string]any
		raises []raise
		looks  []string
	}{{appserver.Schema(), appRaises, appLooks}, {mcpserver.Schema(), mcpRaises, mcpLooks}, {acp.Schema(), acpRaises, acpLooks}} {
		known := map[string]bool{}
		for _, r := range x.raises {
			known[r.method] = true
		}
		for _, name := range x.looks {
			known[name] = true
		}
		for name, row := range x.schema["methods"].(map[string]any) {
			if row.(map[string]any)["from"] != "server" && !known[name] {
				t.Errorf("%s: can a client exceed limits with it? add it to the table", name)
			}
		}
	}
}

// limitedServers are command lines that limit clients, and whether their commands may write in the workspace.
var limitedServers = map[string]struct {
	flags  []string
	writes bool
}{
	"read-only":           {[]string{"-s", "read-only"}, false},
	"workspace-write":     {[]string{"-s", "workspace-write"}, true},
	"override":            {[]string{"-c", "sandbox_mode=read-only"}, false},
	"max read-only":       {[]string{"--max-sandbox", "read-only"}, false},
	"max workspace-write": {[]string{"--max-sandbox", "workspace-write", "-s", "workspace-write"}, true},
}

// Whatever method a client uses, it gets no more than the command line of its server says.
func TestNoMethodExceedsTheCommandLine(t *testing.T) {
	t.Parallel()
	for name, limit := range limitedServers {
		t.Run("app-server and page, "+name, func(t *testing.T) {
			t.Parallel()
			s := &appSite{place: newPlace(t)}
			out := outside(t)
			s.socket = filepath.Join(s.dir, "s.sock")
			s.server = s.start(append([]string{"serve", "--demo", "--http", "--app-server", "unix://" + s.socket}, limit.flags...)...)
			eventually(t, "it serves", func() bool {
				return strings.Contains(s.server.out.String(), "/?link=") && s.server.err.has("listening")
			})
			c := s.connect()
			c.start()
			for _, r := range appRaises {
				m := c.answer(c.ask(r.method, strings.ReplaceAll(r.params, "OUT", out)))
				judge(t, r, fmt.Sprint(within(m, "error", "message")), out)
				if r.method == "thread/shellCommand" {
					c.await("turn/completed")
					judge(t, r, "", out)
				}
			}
			inside := filepath.Join(s.work, "inside")
			c.result("thread/shellCommand", fmt.Sprintf(`{"threadId":"T","command":%q}`, "echo x > "+inside))
			c.await("turn/completed")
			if exists(inside) != limit.writes {
				t.Errorf("the client's command wrote in the workspace: %v", exists(inside))
			}
			page := logIn(t, strings.TrimSpace(s.server.out.String()))
			for _, r := range webRaises {
				path := strings.Replace(r.method, "T/", "/api/v1/conversations/"+c.thread+"/", 1)
				judge(t, r, page(path, strings.ReplaceAll(r.params, "OUT", out)), out)
			}
			c.await("turn/completed") // of user_shell
			judge(t, raise{method: "user_shell"}, "", out)
			undone := page("/api/v1/conversations/"+c.thread+"/undo", `{"turn":1}`)
			if refused := strings.Contains(undone, "not allowed here"); refused == limit.writes {
				t.Errorf("undo is answered %s", undone)
			}
		})
		t.Run("acp, "+name, func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			out := outside(t)
			c := pl.editor(append([]string{"--demo"}, limit.flags...)...)
			for _, r := range acpRaises {
				params := strings.ReplaceAll(strings.ReplaceAll(r.params, "OUT", out), `"T"`, fmt.Sprintf("%q", c.session))
				judge(t, r, fmt.Sprint(c.ask(r.method, params)), out)
			}
			server := raise{"session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[{"name":"x","command":"/bin/sh","args":["-c",%q],"env":[]}]}`, pl.work, "echo x > "+out), ""}
			made := within(c.ask(server.method, server.params), "result", "sessionId")
			c.ask("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"hello"}]}`, made)) // tools are waited for
			judge(t, server, "", out)
			if answer := fmt.Sprint(c.ask("session/set_mode", `{"sessionId":"S","modeId":"auto"}`)); strings.Contains(answer, "is not allowed here") == limit.writes {
				t.Errorf("a mode that writes in the workspace is answered %s", answer)
			}
			inside := filepath.Join(pl.work, "inside")
			c.ask("session/prompt", fmt.Sprintf(`{"sessionId":"S","prompt":[{"type":"text","text":%q}]}`, "run: echo x > "+inside))
			if exists(inside) != limit.writes {
				t.Errorf("the client's command wrote in the workspace: %v", exists(inside))
			}
		})
		t.Run("MCP server, "+name, func(t *testing.T) {
			t.Parallel()
			s := newMCPSite(t, "never")
			out := outside(t)
			c := s.connect(limit.flags...)
			id := c.converse(s.work)
			for n, r := range mcpRaises {
				params := strings.ReplaceAll(strings.ReplaceAll(r.params, "OUT", out), `"T"`, fmt.Sprintf("%q", id))
				c.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, n+100, r.method, params)
				m := c.await("the answer to "+r.method, func(m map[string]any) bool { return m["id"] == float64(n+100) })
				judge(t, r, fmt.Sprint(m), out)
			}
		})
	}
}

// outside is a file that does not exist, in a directory that a workspace does not have: temporary ones can be written.
func outside(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "fermata-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "file")
}

// judge fails the test if a request was not refused as it should be, or what it ran got out.
func judge(t *testing.T, r raise, answer, out string) {
	t.Helper()
	if !strings.Contains(answer, r.want) {
		t.Errorf("%s %s is answered %s", r.method, r.params, answer)
	}
	if exists(out) {
		t.Fatalf("%s %s got out of the sandbox", r.method, r.params)
	}
}

// logIn opens a session with a link to the page, and returns what makes a request of the API.
func logIn(t *testing.T, link string) func(path, body string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	token := ""
	post := func(path, body string) string {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+u.Host+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultTransport.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return string(text)
	}
	var got struct{ Token string }
	if err := json.Unmarshal([]byte(post("/api/v1/login", fmt.Sprintf(`{"code":%q,"name":"test"}`, u.Query().Get("link")))), &got); err != nil || got.Token == "" {
		t.Fatalf("login: %v", err)
	}
	token = got.Token
	return post
}

// Without a limit on the command line a client's own command has all rights of the user.
func TestOwnCommandsWithoutLimits(t *testing.T) {
	t.Parallel()
	s := &appSite{place: newPlace(t)}
	s.socket = filepath.Join(s.dir, "s.sock")
	s.server = s.start("app-server", "--demo", "--listen", "unix://"+s.socket)
	eventually(t, "it serves", func() bool { return s.server.err.has("listening") })
	c, out := s.connect(), outside(t)
	c.thread, _ = within(c.result("thread/start", `{"sandbox":"read-only"}`), "thread", "id").(string)
	c.result("thread/shellCommand", fmt.Sprintf(`{"threadId":"T","command":%q}`, "echo x > "+out))
	c.await("turn/completed")
	if !exists(out) {
		t.Error("the command was confined")
	}
}

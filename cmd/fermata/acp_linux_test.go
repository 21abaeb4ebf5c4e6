package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
	p "github.com/fermata-agent/fermata/protocol"
)

// An editor is a client of acp, over pipes.
type editor struct {
	*mcpClient
	session string
	n       int
	updates []string // what it was sent, in short
}

// acpClient starts acp and shakes hands with it.
func (pl *place) acpClient(args ...string) *editor {
	pl.t.Helper()
	e := &editor{mcpClient: pl.onPipes(append([]string{"acp"}, args...)...)}
	e.ask("initialize", `{"protocolVersion":1}`)
	return e
}

// editor is acpClient with a session.
func (pl *place) editor(args ...string) *editor {
	pl.t.Helper()
	e := pl.acpClient(args...)
	answer := e.ask("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, pl.work))
	e.session, _ = within(answer, "result", "sessionId").(string)
	if e.session == "" {
		pl.t.Fatalf("there is no session: %v", answer)
	}
	return e
}

// request sends a request and returns its id; "S" in it stands for the session.
func (e *editor) request(method, params string) int {
	e.t.Helper()
	e.n++
	e.send("%s", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, e.n, method, strings.ReplaceAll(params, `"S"`, `"`+e.session+`"`)))
	return e.n
}

// say sends a prompt.
func (e *editor) say(text string) int {
	e.t.Helper()
	return e.request("session/prompt", fmt.Sprintf(`{"sessionId":"S","prompt":[{"type":"text","text":%q}]}`, text))
}

// ask sends a request and returns its answer.
func (e *editor) ask(method, params string) map[string]any {
	e.t.Helper()
	return e.answered(e.request(method, params))
}

// answered waits for an answer and keeps what came before.
func (e *editor) answered(id int) map[string]any {
	e.t.Helper()
	return e.await(fmt.Sprint("the answer to request ", id), func(m map[string]any) bool {
		if u := within(m, "params", "update"); u != nil {
			e.updates = append(e.updates, fmt.Sprint(within(u, "sessionUpdate"), " ", within(u, "toolCallId"), " ", within(u, "status"), " ", within(u, "content")))
		}
		return m["method"] == nil && m["id"] == float64(id)
	})
}

// shown reports whether an update was sent that contains all of these.
func (e *editor) shown(parts ...string) bool {
	for _, u := range e.updates {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(u, part)
		}
		if all {
			return true
		}
	}
	return false
}

// Whatever ends a turn of an editor, nothing of it runs on, and its call is not left open.
func TestACPLeavesNothing(t *testing.T) {
	t.Parallel()
	ends := map[string]func(e *editor){
		"cancel": func(e *editor) {
			e.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, e.session)
			if answer := e.answered(e.n); within(answer, "result", "stopReason") != "cancelled" {
				e.t.Errorf("the prompt is answered %v", answer)
			}
		},
		"close":       func(e *editor) { e.ask("session/close", `{"sessionId":"S"}`) },
		"end of file": func(e *editor) { e.in.Close(); e.code() },
		"SIGTERM":     func(e *editor) { e.signal(syscall.SIGTERM); e.code() },
		"SIGKILL":     func(e *editor) { e.signal(syscall.SIGKILL); e.code() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			parts := []string{deaf, daemon, foreground}
			c := newCrowd(t, pl, parts)
			e := pl.editor("--demo", "-s", "workspace-write")
			c.process, c.id = e.process, e.session
			e.say("run: echo begun; sh victim; echo over")
			pl.awaitText(c.id, "begun\n")
			c.await(t, len(parts))
			end(e)
			for _, r := range c.members {
				if name != "SIGKILL" && lives(r) { // the supervisors of a process that was killed need a moment
					t.Errorf("%v lives", r)
				}
			}
			if name == "cancel" || name == "close" {
				e.in.Close()
				e.code()
			}
			pl.noneLeft(t, c.rows)

			again := pl.acpClient("--demo")
			again.session = e.session
			again.ask("session/load", fmt.Sprintf(`{"sessionId":"S","cwd":%q,"mcpServers":[]}`, pl.work))
			if !again.shown("tool_call 1.1.1 failed", "begun") || again.shown("in_progress") {
				t.Errorf("after the load the call is shown as %q", again.updates)
			}
			if answer := again.answered(again.say("what happened?")); within(answer, "result", "stopReason") != "end_turn" {
				t.Errorf("the next prompt is answered %v", answer)
			}
			pl.fsck(c.id)
		})
	}
}

// Another process can join a session: what it says is seen by the editor, and it can stop the turn.
func TestACPSessionIsJoined(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	e := pl.editor("--demo")
	id := e.say("run: echo begun; while [ ! -e go ]; do sleep 0.1; done")
	pl.awaitText(e.session, "begun\n")
	pl.must("send", e.session, "what happened?")
	pl.file("go", "")
	if answer := e.answered(id); within(answer, "result", "stopReason") != "end_turn" {
		t.Errorf("the prompt is answered %v", answer)
	}
	if !e.shown("user_message_chunk", "what happened?") {
		t.Errorf("the editor was sent %q", e.updates)
	}
	id = e.say("wait 600")
	pl.awaitEvent(e.session, "the second turn", func(b p.Body) bool { u, ok := b.(*p.UserMessage); return ok && p.PlainText(u.Content) == "wait 600" })
	pl.must("stop", "--all")
	if answer := e.answered(id); within(answer, "result", "stopReason") != "cancelled" {
		t.Errorf("the prompt is answered %v", answer)
	}
}

// With --detach a turn outlives the editor, and the next one that loads the session follows it to its end.
func TestACPDetached(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	t.Cleanup(pl.stopServe)
	e := pl.editor("--demo", "--detach")
	e.say("run: echo begun; while [ ! -e go ]; do sleep 0.1; done")
	pl.awaitText(e.session, "begun\n")
	e.in.Close()
	e.code()
	again := pl.acpClient("--demo", "--detach")
	again.session = e.session
	again.ask("session/load", fmt.Sprintf(`{"sessionId":"S","cwd":%q,"mcpServers":[]}`, pl.work))
	if !again.shown("tool_call 1.1.1 in_progress", "begun") {
		t.Errorf("the call that runs is shown as %q", again.updates)
	}
	pl.file("go", "")
	again.await("the end of the call", func(m map[string]any) bool {
		u := within(m, "params", "update")
		return within(u, "sessionUpdate") == "tool_call_update" && within(u, "status") == "completed"
	})
}

// allow answers what the server asks, with yes, until a request is answered.
func (e *editor) allow(id int) map[string]any {
	e.t.Helper()
	return e.await(fmt.Sprint("the answer to request ", id), func(m map[string]any) bool {
		if m["method"] == "session/request_permission" {
			e.send(`{"jsonrpc":"2.0","id":%v,"result":{"outcome":{"outcome":"selected","optionId":"approved"}}}`, m["id"])
		}
		return m["method"] == nil && m["id"] == float64(id)
	})
}

// The MCP servers that an editor names belong to their session alone, and end with it; one that does not start fails nothing.
func TestACPServersOfASession(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "on-request",
		modeltest.Respond(modeltest.Call("c", "inner__codex", `{"prompt":"go deeper"}`)),
		modeltest.Respond(modeltest.Say("from within")),
		modeltest.Respond(modeltest.Say("all done")),
		modeltest.Respond(modeltest.Say("without it")),
		modeltest.Respond(modeltest.Say("nor after a load")))
	e := s.acpClient()
	open := func(servers string) string {
		answer := e.ask("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[%s]}`, s.work, servers))
		id, _ := within(answer, "result", "sessionId").(string)
		return id
	}
	inner := fmt.Sprintf(`{"name":"inner","command":%q,"args":["mcp-server"],"env":[{"name":"FERMATA_HOME","value":%q}]}`, s.bin, filepath.Join(s.dir, "home", "fermata"))
	e.session = open(inner + `,{"name":"broken","command":"/does/not/exist","args":[],"env":[]}`)
	if e.session == "" {
		t.Fatal("a server that does not start has failed the session")
	}
	if answer := e.allow(e.say("call it")); within(answer, "result", "stopReason") != "end_turn" {
		t.Errorf("the prompt is answered %v", answer)
	}
	if last := strings.Join(tail(s.srv.Wait(3), 1), " "); !strings.Contains(last, "from within") {
		t.Errorf("the model was sent %s", last)
	}
	servers := func() (list []row) {
		for _, r := range below(e.cmd.Process.Pid) {
			if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.pid)); strings.Contains(string(line), "\x00mcp-server\x00") {
				list = append(list, r)
			}
		}
		return list
	}
	started := servers()
	if len(started) == 0 {
		t.Error("the server does not run")
	}
	first := e.session
	e.session = open("")
	e.allow(e.say("and now?"))
	if offered := lastTools(s.srv.Wait(4)); strings.Contains(offered, "inner__codex") {
		t.Errorf("another session is offered %s", offered)
	}
	e.session = first
	e.ask("session/close", `{"sessionId":"S"}`)
	for _, r := range started {
		if lives(r) {
			t.Errorf("%v lives on after the session was closed", r)
		}
	}
	e.ask("session/load", fmt.Sprintf(`{"sessionId":"S","cwd":%q,"mcpServers":[]}`, s.work))
	e.allow(e.say("and now?"))
	if offered := lastTools(s.srv.Wait(5)); strings.Contains(offered, "inner__codex") {
		t.Errorf("the session that was loaded without a server is offered %s", offered)
	}
}

// What is not saved in the editor is read and changed there, by way of the real tools.
func TestACPOpenFiles(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never",
		modeltest.Respond(modeltest.Call("c1", "read_file", `{"path":"a.txt"}`)),
		modeltest.Respond(modeltest.Call("c2", "edit", `{"path":"a.txt","old_text":"typed","new_text":"changed"}`)),
		modeltest.Respond(modeltest.Say("all done")))
	s.file("a.txt", "saved\n")
	e := &editor{mcpClient: s.onPipes("acp")}
	e.ask("initialize", `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}}}`)
	answer := e.ask("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, s.work))
	e.session, _ = within(answer, "result", "sessionId").(string)
	id, written := e.say("change it"), ""
	e.await("the answer", func(m map[string]any) bool {
		switch m["method"] {
		case "fs/read_text_file":
			e.send(`{"jsonrpc":"2.0","id":%v,"result":{"content":"typed\n"}}`, m["id"])
		case "fs/write_text_file":
			written = fmt.Sprint(within(m, "params", "path"), " ", within(m, "params", "content"))
			e.send(`{"jsonrpc":"2.0","id":%v,"result":{}}`, m["id"])
		}
		return m["method"] == nil && m["id"] == float64(id)
	})
	if want := filepath.Join(s.work, "a.txt") + " changed\n"; written != want {
		t.Errorf("the editor was asked to write %q, want %q", written, want)
	}
	if got := s.read("a.txt"); got != "saved\n" {
		t.Errorf("on disk there is %q", got)
	}
	if sent := strings.Join(tail(s.srv.Wait(2), 1), " "); !strings.Contains(sent, "typed") {
		t.Errorf("the model was sent %s", sent)
	}
	s.fsck(e.session)
}

// lastTools are the tools that a request offers.
func lastTools(r *modeltest.Request) string {
	var body struct{ Tools any }
	_ = json.Unmarshal(r.Raw, &body) // it was answered
	return fmt.Sprint(body.Tools)
}

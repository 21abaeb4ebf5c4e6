package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// traps are what went wrong on this surface in the program that its clients were written
// for, each with the test that shows how it goes here. A test is NAME, in this package, or
// PACKAGE.NAME.
var traps = []struct{ trap, test string }{
	// turns and messages
	{"two readers of one conversation share its events: each gets a part", "mcpserver.TestListenerGetsWhatItMissed"},
	{"the settings of a turn are ignored if a turn runs", "mcpserver.TestUserTurnWhileATurnRuns"},
	{"output is sent as a list of numbers", "event.TestLongOutputInChunks"},
	{"events of a turn follow its turn_aborted", "TestMCPNothingFollowsTheAbort"},
	{"a message that joins a turn is sent to the model twice", "TestMCPSteeredMessageIsSentOnce"},
	{"a message that comes with the last words waits for the next turn", "mcpserver.TestMessageWithTheLastWords"},
	{"a message that waits is lost by an interrupt", "mcpserver.TestQueuedReplyIsHandedBack"},
	{"an interrupt of nothing is never answered", "TestMCPInterruptConversation"},
	{"a message without items swallows all later ones", "TestMCPEmptyMessage"},
	{"approving one retry outside the sandbox approves the command for good", "TestMCPApprovedRetryIsForOnce"},
	{"an approval is known by its turn, and an answer that comes at once is lost", "TestMCPAnswersAtOnce"},
	{"the end of the program does not end the turn", "TestMCPEnd"},
	// stopping
	{"the model's connection stays open after an interrupt", "TestMCPWithTheOfficialClient"},
	{"what a response had said before the interrupt is lost", "TestMCPNextRequestAfterACancel"},
	{"a call that was cut has no output, or one of another kind, or elsewhere", "TestMCPNextRequestAfterACancel"},
	{"a command that timed out blocks the turn while a grandchild holds its pipe", "TestMCPTimeoutWithAPipeHeldOpen"},
	{"a grandchild survives the interrupt", "TestTypeScriptAbort"},
	{"an interrupt while a client is asked", "mcpserver.TestInterruptWhileAnApprovalIsOpen"},
	{"an interrupt while a retry waits", "mcpserver.TestInterruptWhileARetryWaits"},
	{"the program is killed while a command runs, and the conversation is resumed", "TestMCPKilledServerIsResumed"},
	// the wire
	{"what is not understood is not answered", "TestMCPGarbage"},
	{"an error for an answer leaves the approval open for ever", "mcpserver.TestElicitationRefused"},
	{"the same, of the direct requests", "mcpserver.TestDirectApproval"},
	{"a client that cannot be asked is asked", "TestMCPClientThatCannotBeAsked"},
	// codex and codex-reply
	{"the ids of events are sometimes those of requests", "mcpserver.TestEventIDsAreNotRequestIDs"},
	{"a turn that fails is answered in no known form, and its end is taken for that of the next", "mcpserver.TestReplyInItsOwnTurn"},
	{"a tool server that does not start ends the first call", "TestMCPBrokenToolServer"},
	{"a cancelled call goes on taking the events of the next", "TestMCPCancelTwice"},
	{"an elicitation is not answered as MCP has it", "mcpserver.TestElicitation"},
	{"the session id is only in a notification", "mcpserver.TestCodexCall"},
	// direct requests
	{"there is a next page behind the last one", "TestMCPListPages"},
	{"items come in two forms", "mcpserver.TestItems"},
	{"approvals are spelled differently", "mcpserver.TestDirectApproval"},
	{"an interrupt is not answered if no client listens", "mcpserver.TestInterruptRightBehindTheMessage"},
	{"two interrupts are two answers, behind the notification", "mcpserver.TestInterruptIsAnsweredAfterTheEnd"},
	{"a listener that leaves leaves its approval unanswered", "mcpserver.TestListenerLeavesWithAnApprovalOpen"},
	// conversation tools
	{"the prompt of conversationCreate is ignored", "mcpserver.TestCreateWithPromptAndList"},
	{"what a message changes, and its parent, are ignored", "TestMCPChangeOfAConversation"},
	{"a second message is always refused", "TestMCPStream"},
	{"an event is before the state, or in it and behind it", "mcpserver.TestRandomClients"},
	{"what was asked for in an aborted turn is asked when somebody connects", "mcpserver.TestHeldApprovalOfAnAbortedTurn"},
	{"conversationsList is not there", "mcpserver.TestCreateWithPromptAndList"},
}

// scenarios are what the tests of those clients do, each with the test that does it to the
// real server. T is a transcript in testdata/mcp.
var scenarios = []struct{ scenario, test string }{
	{"a command is interrupted by a cancelled call, twice", "TestMCPCancelTwice"},
	{"the same, seen from the wire", "T tool-cancel"},
	{"a command is interrupted by interruptConversation", "TestMCPInterruptConversation"},
	{"a command is approved by elicitation", "TestMCPApproval"},
	{"a patch is approved by elicitation", "TestMCPPatchApproval"},
	{"the instructions of a call are the model's", "TestMCPWishes"},
	{"a conversation by direct requests, with a trusted command", "T direct-flow"},
	{"a turn brings another approval policy", "TestMCPUserTurnChangesThePolicy"},
	{"a conversation is begun with another model", "TestMCPModelOfAConversation"},
	{"two messages, one after the other", "T direct-flow"},
	{"a message to the conversation of a call", "TestMCPMessageToTheConversationOfACall"},
	{"a message to nobody", "T errors"},
	{"who is known to the provider", "TestMCPAuthStatus"},
	{"what is in the configuration file", "TestMCPSavedConfig"},
	{"a stream, then a message", "TestMCPStream"},
	{"a message, then a stream", "TestMCPMessageThenStream"},
	{"a stream is cancelled and catches up", "T stream"},
	{"conversations are listed in pages and resumed", "TestMCPListPages"},
}

const mcpserverDir = "../../internal/surface/mcpserver"

// Every trap and every scenario has its test.
func TestTrapsAreTested(t *testing.T) {
	there := map[string]bool{}
	for prefix, dir := range map[string]string{"": ".", "mcpserver.": mcpserverDir, "event.": filepath.Join(mcpserverDir, "event")} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok {
					there[prefix+fn.Name.Name] = true
				}
			}
		}
	}
	transcripts, err := filepath.Glob(filepath.Join("testdata", "mcp", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range transcripts {
		there["T "+strings.TrimSuffix(filepath.Base(name), ".txtar")] = true
	}
	for _, x := range traps {
		if !there[x.test] {
			t.Errorf("%s: there is no %s", x.trap, x.test)
		}
	}
	for _, x := range scenarios {
		if !there[x.test] {
			t.Errorf("%s: there is no %s", x.scenario, x.test)
		}
	}
}

// A command whose grandchildren hold its pipe and go on printing is stopped; nothing of its
// turn is told after the end.
func TestMCPNothingFollowsTheAbort(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never",
		modeltest.Respond(shellCall("c", "sh", "-c", `trap "" TERM; (trap "" TERM; setsid sh -c 'trap "" TERM; while :; do echo still here; sleep 0.001; done' &) ; sleep 621`)),
		modeltest.Respond(modeltest.Say("queued")))
	c := s.connect()
	id := c.converse(s.work)
	c.message(3, id, "go")
	c.event("exec_command_output_delta")
	c.send(`{"id":4,"method":"interruptConversation","params":{"conversationId":%q}}`, id)
	c.event("turn_aborted")
	c.message(5, id, "and now?")
	c.await("the end of the second turn", func(m map[string]any) bool {
		params, _ := m["params"].(map[string]any)
		if params["id"] == "1" {
			t.Errorf("after the end: %v", m)
		}
		return m["method"] == "codex/event/task_complete"
	})
	c.in.Close()
	c.code()
	eventually(t, "nothing runs any more", func() bool { return len(traces(s.dir)) == 0 })
}

// count is how often a text is in the messages of the user in a request.
func count(r *modeltest.Request, text string) (n int) {
	for _, it := range r.Items {
		if it.Kind == "user" && it.Text == text {
			n++
		}
	}
	return n
}

func TestMCPSteeredMessageIsSentOnce(t *testing.T) {
	t.Parallel()
	wait := shellCall("c", "sh", "-c", "until [ -e go ]; do sleep 0.01; done")
	s := newMCPSite(t, "never", modeltest.Respond(wait), modeltest.Respond(shellCall("c", "true")), modeltest.Respond(modeltest.Say("both")), modeltest.Respond(modeltest.Say("later")))
	c := s.connect()
	c.send(`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"wait"}}}`)
	id := msgOf(c.notice("session_configured"))["session_id"].(string)
	c.notice("exec_command_begin")
	c.send(`{"id":2,"method":"tools/call","params":{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"and this"}}}`, id)
	eventually(t, "the message is accepted", func() bool { return strings.Contains(s.must("show", "--json", id), "and this") })
	s.file("go", "")
	contains(t, "answer", c.answer(1), "both")
	c.replyTo(3, id)
	for n := 2; n <= 4; n++ {
		if got := count(s.srv.Wait(n), "and this"); got != 1 {
			t.Errorf("request %d has the message %d times", n, got)
		}
	}
}

func TestMCPEmptyMessage(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(modeltest.Say("heard")))
	c := s.connect()
	id := c.converse(s.work)
	c.send(`{"id":3,"method":"sendUserMessage","params":{"conversationId":%q,"items":[]}}`, id)
	m := c.await("an answer", func(m map[string]any) bool { return m["id"] == 3.0 })
	if e, _ := m["error"].(map[string]any); e["code"] != -32602.0 {
		t.Errorf("no items: %v", m)
	}
	c.message(4, id, "hi")
	if got := msgOf(c.event("task_complete"))["last_agent_message"]; got != "heard" {
		t.Errorf("the next message: %v", got)
	}
	c.send(`{"id":5,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":""}}}`)
	contains(t, "an empty prompt", c.answer(5), `"isError":true`, "prompt is empty")
	if n := len(s.conversations()); n != 1 {
		t.Errorf("%d conversations", n)
	}
}

func TestMCPApprovedRetryIsForOnce(t *testing.T) {
	t.Parallel()
	touch := modeltest.Respond(shellCall("c", "touch", "made"))
	s := newMCPSite(t, "on-failure", touch, touch, modeltest.Respond(modeltest.Say("done")))
	c := s.connect("-s", "read-only")
	c.send(`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"make it"}}}`)
	for n := range 2 {
		m := c.await("a question or the answer", func(m map[string]any) bool { return m["method"] == "elicitation/create" || m["id"] == 1.0 })
		if m["method"] != "elicitation/create" {
			t.Fatalf("asked only %d times: %v", n, m)
		}
		c.send(`{"id":%v,"result":{"decision":"approved"}}`, m["id"])
	}
	contains(t, "answer", c.answer(1), "done")
}

// Approvals with one and the same call id, each answered in the instant it is asked for.
func TestMCPAnswersAtOnce(t *testing.T) {
	t.Parallel()
	var replies []modeltest.Reply
	for n := range 12 {
		replies = append(replies, modeltest.Respond(shellCall("call_1", "touch", fmt.Sprint("made", n))))
	}
	s := newMCPSite(t, "untrusted", append(replies, modeltest.Respond(modeltest.Say("done")))...)
	c := s.connect()
	c.send(`{"id":"call","method":"tools/call","params":{"name":"codex","arguments":{"prompt":"make them"}}}`)
	asked := 0.0
	c.await("the answer", func(m map[string]any) bool {
		if m["method"] == "elicitation/create" {
			if m["id"] != asked {
				t.Errorf("question %v, want %v", m["id"], asked)
			}
			c.send(`{"id":%v,"result":{"action":"accept"}}`, asked)
			asked++
		}
		return m["id"] == "call"
	})
	for n := range 12 {
		if _, err := os.Stat(filepath.Join(s.work, fmt.Sprint("made", n))); err != nil {
			t.Error(err)
		}
	}
}

// What was cut is in the next request: the text, the call, and its output directly behind.
func TestMCPNextRequestAfterACancel(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(modeltest.Say("I try."), shellCall("call_s", "sh", "-c", "echo begun; sleep 622")),
		modeltest.Respond(modeltest.SayCut("Half a sen"), modeltest.Stall()), modeltest.Respond(modeltest.Say("I know.")))
	c := s.connect()
	c.send(`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"one"}}}`)
	id := msgOf(c.notice("session_configured"))["session_id"].(string)
	c.await("output", func(m map[string]any) bool {
		params, _ := m["params"].(map[string]any)
		return params != nil && msgOf(params)["type"] == "exec_command_output_delta"
	})
	c.send(`{"method":"notifications/cancelled","params":{"requestId":1}}`)
	c.notice("turn_aborted")
	c.send(`{"id":2,"method":"tools/call","params":{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"two"}}}`, id)
	c.await("half a sentence", func(m map[string]any) bool {
		params, _ := m["params"].(map[string]any)
		return params != nil && msgOf(params)["delta"] == "Half a sen"
	})
	matches(t, "the request after a command was cut", tail(s.srv.Wait(2), 6),
		`user  one`, `assistant  I try\.`, `call call_s .*`, `output call_s aborted.*begun.*`, `user  <turn_aborted>.*</turn_aborted>`, `user  two`)
	c.send(`{"method":"notifications/cancelled","params":{"requestId":2}}`)
	c.notice("turn_aborted")
	if got := c.replyTo(3, id); got != "I know." {
		t.Errorf("answer %q", got)
	}
	matches(t, "the request after a text was cut", tail(s.srv.Wait(3), 4),
		`user  two`, `assistant  Half a sen`, `user  <turn_aborted>.*</turn_aborted>`, `user  more`)
	c.in.Close()
	c.code()
	s.fsck(id)
}

func TestMCPTimeoutWithAPipeHeldOpen(t *testing.T) {
	t.Parallel()
	args, _ := json.Marshal(map[string]any{"command": []string{"sh", "-c", "(setsid sleep 623 &) ; echo begun; sleep 624"}, "timeout_ms": 2000})
	s := newMCPSite(t, "never", modeltest.Respond(modeltest.Call("c", "shell", string(args))), modeltest.Respond(modeltest.Say("too long")))
	c := s.connect()
	c.send(`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"wait"}}}`)
	if end := msgOf(c.notice("exec_command_end")); end["stdout"] != "begun\n" || end["exit_code"] == 0.0 {
		t.Errorf("exec_command_end %v", end)
	}
	contains(t, "answer", c.answer(1), "too long")
}

func TestMCPClientThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "untrusted", modeltest.Respond(shellCall("c", "touch", "made")), modeltest.Respond(modeltest.Say("then not")))
	c := s.start() // and no handshake, so that nothing is known of the client
	c.send(`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"make it"}}}`)
	contains(t, "answer", c.answer(1), "then not")
	matches(t, "the request after it was denied", tail(s.srv.Wait(2), 1), `output c rejected.*there is no interactive client.*`)
	if _, err := os.Stat(filepath.Join(s.work, "made")); err == nil {
		t.Error("the command ran")
	}
}

func TestMCPBrokenToolServer(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(modeltest.Say("all the same")))
	s.configure("\n[mcp_servers.broken]\ncommand = \"/no/such/program\"\n")
	c := s.connect()
	c.send(`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"hi"}}}`)
	contains(t, "answer", c.answer(1), "all the same")
}

func TestMCPListPages(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(modeltest.Say("1")), modeltest.Respond(modeltest.Say("2")), modeltest.Respond(modeltest.Say("3")))
	for n := range 3 { // each by a process of its own
		c := s.connect()
		c.codexWith(n, nil)
		c.in.Close()
		c.code()
	}
	c := s.connect()
	type page struct {
		Items []struct{ ConversationID, Path, Preview, Timestamp string }
		Next  *string `json:"nextCursor"`
	}
	list := func(id int, params string) page {
		c.send(`{"id":%d,"method":"listConversations","params":%s}`, id, params)
		var p page
		if err := json.Unmarshal([]byte(c.answer(float64(id))), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := list(1, `{"pageSize":2}`)
	if len(first.Items) != 2 || first.Next == nil {
		t.Fatalf("first page %+v", first)
	}
	second := list(2, fmt.Sprintf(`{"pageSize":2,"cursor":%q}`, *first.Next))
	if len(second.Items) != 1 || second.Next != nil {
		t.Fatalf("last page %+v", second)
	}
	oldest := second.Items[0]
	c.send(`{"id":3,"method":"resumeConversation","params":{"path":%q,"overrides":{"model":"other"}}}`, oldest.Path)
	if got := msgOf(c.notice("codex/event")); got["type"] != "session_configured" || got["session_id"] != oldest.ConversationID || got["model"] != "other" {
		t.Errorf("session_configured %v", got)
	}
	contains(t, "resumed", c.answer(3), oldest.ConversationID, `"model":"other"`, `"message":"1"`)
}

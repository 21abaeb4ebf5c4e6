package mcpserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// asksDirectly brings a turn of the direct requests to an approval.
func (c *client) asksDirectly() {
	c.t.Helper()
	c.message("90", "work")
	c.take("90")
	m := c.e.Request()
	m.Usage = nil
	m.Call("call_1", "work", "{}")
	m.End()
	c.e.Run().Ask("rm", "x")
	synctest.Wait()
}

// What a turn brings along is for its own turn, also if another one runs.
func TestUserTurnWhileATurnRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.message("2", "one")
		c.take("2")
		m := c.e.Request()
		c.send(`{"id":3,"method":"sendUserTurn","params":{"conversationId":"C","items":[{"type":"text","data":{"text":"two"}}],"cwd":"/v","approvalPolicy":"untrusted",` +
			`"sandboxPolicy":{"mode":"read-only"},"model":"other","effort":"low","summary":"auto"}}`)
		c.take("3")
		model := func() string {
			snap, err := c.e.Resume(t.Context(), p.ConversationID(c.id))
			if err != nil {
				t.Fatal(err)
			}
			return snap.Settings.Model
		}
		if got := model(); got != "puppet" {
			t.Errorf("the turn that runs has the model %s", got)
		}
		m.Answer("one is done")
		next := c.e.Request()
		if got := next.Inputs(); got[len(got)-1] != "user two" {
			t.Errorf("the model was told %q", got)
		}
		if got := model(); got != "other" {
			t.Errorf("the turn has the model %s", got)
		}
	})
}

// A message that waits when the turn is stopped is handed back by its words, and its call
// is answered.
func TestQueuedReplyIsHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		c.e.Request()
		c.hear("session_configured", "task_started 1")
		c.listen("2")
		c.reply("3", `,"whenBusy":"queue"`)
		synctest.Wait()
		c.interrupt("4")
		synctest.Wait()
		var back string
		answers := map[string]string{}
		for len(c.lines) > 0 {
			line, h := c.next()
			switch {
			case h.Method == "":
				answers[bare(h.ID)] = line
			case h.Method == "codex/event/background_event":
				back = h.Params.Msg["message"].(string)
			}
		}
		if back != `not delivered: "more"` {
			t.Errorf("handed back: %q", back)
		}
		if !strings.Contains(answers["1"], "turn interrupted") || !strings.Contains(answers["3"], "the message was not delivered") || !strings.Contains(answers["4"], done) {
			t.Errorf("answers %v", answers)
		}
		c.e.Idle()
	})
}

// A stop while a client is asked takes the question back and is answered.
func TestInterruptWhileAnApprovalIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.listen("2")
		c.asksDirectly()
		c.hear("task_started 1", "exec_approval_request 1", "execCommandApproval")
		c.interrupt("3")
		c.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0,"reason":"the approval is resolved"}}`,
			told("1", `{"type":"turn_aborted","reason":"interrupted"}`), `{"jsonrpc":"2.0","id":3,"result":`+done+`}`)
		c.send(`{"id":0,"result":{"decision":"approved"}}`) // too late
		c.nothing()
		c.e.Idle()
	})
}

func TestInterruptWhileARetryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.listen("2")
		c.message("3", "work")
		c.take("3")
		c.e.Request().Fail(enginetest.Broken())
		c.hear("task_started 1", "stream_error 1")
		c.interrupt("4")
		c.hear("turn_aborted 1", "answer 4")
		c.e.Idle()
	})
}

// A listener that leaves with a question open leaves the question to the next.
func TestListenerLeavesWithAnApprovalOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		sub := c.listen("2")
		c.asksDirectly()
		c.hear("task_started 1", "exec_approval_request 1", "execCommandApproval")
		c.send(`{"id":3,"method":"removeConversationListener","params":{"subscriptionId":%q}}`, sub)
		c.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0,"reason":"no client follows the conversation"}}`,
			`{"jsonrpc":"2.0","id":3,"result":{}}`)
		c.nothing()
		c.listen("4")
		c.hear("task_started 1", "exec_approval_request 1", "execCommandApproval")
		c.send(`{"id":1,"result":{"decision":"approved"}}`)
		c.e.Run().Finish("removed")
		c.e.Request().Answer("done")
		c.hear("agent_message 1", "task_complete 1")
	})
}

// What was asked for in a turn that is over is not asked any more.
func TestHeldApprovalOfAnAbortedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, asks)
		c.say("11")
		c.want(sent("11"))
		m := c.e.Request()
		m.Usage = nil
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("rm", "x")
		synctest.Wait()
		c.e.Must(p.ConversationID(c.id), p.Interrupt{})
		synctest.Wait()
		c.stream("12", `{"msg":{"type":"task_started"}}`,
			`{"msg":{"type":"exec_approval_request","call_id":"call_1","command":["rm","x"],"cwd":"","reason":"why not"}}`, `{"msg":{"type":"turn_aborted","reason":"interrupted"}}`)
		c.nothing()
	})
}

// The ids of events are the turns', whatever requests are called.
func TestEventIDsAreNotRequestIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("3")
		c.e.Request().Answer("one")
		c.hear("session_configured", "task_started 1", "agent_message 1", "task_complete 1", "answer 3")
		for turn, request := range []string{"2", "1"} { // each the name of another turn
			c.reply(request, "")
			c.e.Request().Answer("more")
			id := fmt.Sprint(turn + 2)
			c.hear("task_started "+id, "agent_message "+id, "task_complete "+id, "answer "+request)
		}
	})
}

// A message that comes with the last words of a turn is part of that turn, once.
func TestMessageWithTheLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		m := c.e.Request()
		c.hear("session_configured", "task_started 1")
		c.reply("2", "")
		synctest.Wait()
		m.Answer("the last words")
		next := c.e.Request()
		said := slices.DeleteFunc(next.Inputs(), func(line string) bool { return line != "user more" })
		if len(said) != 1 {
			t.Errorf("the message is there %d times", len(said))
		}
		next.Answer("those were the last")
		c.skip("2")
	})
}

// A client that cannot be asked is told no, unless one of its listeners can be asked.
func TestListenerOfAClientThatCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		m := c.e.Request()
		c.hear("session_configured", "task_started 1")
		c.listen("2")
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("rm", "x")
		synctest.Wait()
		for {
			_, h := c.next()
			if h.Method == "execCommandApproval" {
				break
			}
		}
		c.send(`{"id":0,"result":{"decision":"approved"}}`)
		c.e.Run().Finish("removed")
		c.e.Request().Answer("done")
		if got := c.skip("1"); !strings.Contains(got, `"text":"done"`) {
			t.Error(got)
		}
	})
}

// A call whose client cannot be asked does not wait for a listener that has left.
func TestListenerLeavesAClientThatCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		m := c.e.Request()
		c.hear("session_configured", "task_started 1")
		sub := c.listen("2")
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("rm", "x")
		synctest.Wait()
		c.send(`{"id":3,"method":"removeConversationListener","params":{"subscriptionId":%q}}`, sub)
		c.skip("3")
		c.e.Request().Answer("then not")
		if got := c.skip("1"); !strings.Contains(got, `"text":"then not"`) {
			t.Error(got)
		}
	})
}

// A listener that goes with its client leaves the approval open, also if a stream of that
// client cannot be asked.
func TestEndOfAClientThatCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.send(`{"id":1,"method":"newConversation","params":{"cwd":"/w"}}`)
		c.skip("1")
		c.listen("2")
		c.tool("3", "conversationStream", `{"conversation_id":"C"}`)
		c.skip("3")
		c.message("4", "go")
		m := c.e.Request()
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("rm", "x")
		synctest.Wait()
		c.in.Close()
		<-c.ended
		snap, err := c.e.Resume(t.Context(), p.ConversationID(c.id))
		if err != nil || !snap.Waiting {
			t.Errorf("the approval is not open: %+v, %v", snap, err)
		}
	})
}

// What nobody knows of a request is named once; it may be a limit that the client believes in.
func TestUnknownMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		remark := func(text string) {
			c.want(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"fermata","data":"` + text + `"}}`)
		}
		c.tool("1", "conversationCreate", `{"prompt":"","cwd":"/w","approvalPolicy":"never","sandbo":"read-only"}`)
		remark(`conversationCreate: \"sandbo\" is unknown and has no effect`)
		c.skip("1")
		c.send(`{"id":2,"method":"newConversation","params":{"cwd":"/w","_meta":{},"modle":"x"}}`)
		remark(`newConversation: \"modle\" is unknown and has no effect`)
		c.skip("2")
		c.tool("3", "conversationCreate", `{"prompt":"","cwd":"/w","sandbo":"read-only"}`)
		if _, h := c.next(); bare(h.ID) != "3" {
			t.Errorf("a second warning: %+v", h)
		}
	})
}

func TestLogging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		create := func(id, model string) {
			c.tool(id, "conversationCreate", `{"prompt":"","cwd":"/w","model":"`+model+`"}`)
		}
		create("1", "odd")
		c.want(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"fermata","data":"odd is odd"}}`)
		c.skip("1")
		c.send(`{"id":2,"method":"logging/setLevel","params":{"level":"error"}}`)
		c.want(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		create("3", "odd")
		if _, h := c.next(); bare(h.ID) != "3" {
			t.Errorf("a warning in spite of the level: %+v", h)
		}
		c.send(`{"id":4,"method":"logging/setLevel","params":{"level":"loud"}}`)
		c.want(`{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"level: \"loud\" is none of debug, info, notice, warning, error, critical, alert, emergency"}}`)

		plain := attach(t, c.e) // a client that does not speak MCP
		plain.send(`{"id":1,"method":"newConversation","params":{"model":"odd"}}`)
		plain.want(`{"jsonrpc":"2.0","id":1,"result":{"conversationId":"C","model":"odd"}}`)
	})
}

// Each tool takes what it can be told in its own spelling, and all of it in any.
func TestSpellings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		var got []app.SettingsRequest
		for _, arguments := range []string{
			`{"approval-policy":"never","base-instructions":"b","include-plan-tool":true}`,
			`{"approval_policy":"never","base_instructions":"b","include_plan_tool":true}`,
			`{"approvalPolicy":"never","baseInstructions":"b","includePlanTool":true}`,
		} {
			w, err := callParams{Arguments: []byte(arguments)}.settings()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, w)
		}
		want := app.SettingsRequest{ApprovalPolicy: "never", BaseInstructions: "b", IncludePlanTool: true}
		if d := cmp.Diff([]app.SettingsRequest{want, want, want}, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		c.tool("1", "conversationCreate", `{"prompt":"","cwd":"/w","base_instructions":"You are a puppet."}`)
		c.skip("1")
		snap, err := c.e.Resume(t.Context(), p.ConversationID(c.id))
		if err != nil || snap.Settings.Instructions != "You are a puppet." {
			t.Errorf("instructions %q, %v", snap.Settings.Instructions, err)
		}
		c.tool("2", "conversationCreate", `{"prompt":"","cwd":"/w","approval_policy":7}`)
		if got := c.skip("2"); !strings.Contains(got, "approvalPolicy: number does not fit") {
			t.Error(got)
		}
	})
}

// The schema names everything: each tool with its own spelling, and what is sent.
func TestSchemaOfEverything(t *testing.T) {
	schema := Schema()
	tools := schema["tools"].(map[string]any)
	for tool, names := range map[string][]string{
		"codex":                   {"prompt", "approval-policy", "base-instructions", "include-plan-tool", "cwd"},
		"conversationCreate":      {"prompt", "cwd", "approval_policy", "base_instructions", "config", "profile"},
		"conversationSendMessage": {"conversation_id", "content", "parent_message_id", "model", "cwd", "approval_policy", "sandbox", "config"},
	} {
		properties := tools[tool].(map[string]any)["properties"].(map[string]any)
		for _, name := range names {
			if properties[name] == nil {
				t.Errorf("%s does not take %s", tool, name)
			}
		}
	}
	methods := schema["methods"].(map[string]any)
	for name, from := range map[string]string{
		"tools/call": "client", "newConversation": "client", "codex/event": "server", "turn_aborted": "server",
		"codex/event/turn_aborted": "server", "execCommandApproval": "server", "notifications/cancelled": "both",
	} {
		if row, _ := methods[name].(map[string]any); row["from"] != from {
			t.Errorf("%s is from %v, want %s", name, row["from"], from)
		}
	}
}

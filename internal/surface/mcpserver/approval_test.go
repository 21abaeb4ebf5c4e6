package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	p "github.com/fermata-agent/fermata/protocol"
)

// asked brings a codex call to its approval, which has been sent.
func asked(t *testing.T, capabilities string) *client {
	t.Helper()
	c := connect(t, capabilities)
	c.begin("1")
	m := c.e.Request()
	m.Call("call_1", "work", "{}")
	m.End()
	c.e.Run().Ask("git", "commit", "-m", "it's")
	c.hear("session_configured", "task_started 1", "exec_approval_request 1")
	c.next()
	return c
}

const elicited = `{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"Allow to run ` + "`git commit -m \\\"it's\\\"` in ``" + `?",
	"requestedSchema":{"type":"object","properties":{}},"codex_elicitation":"exec-approval","codex_mcp_tool_call_id":"1","codex_event_id":"1",
	"codex_call_id":"call_1","codex_command":["git","commit","-m","it's"]}}`

func TestElicitation(t *testing.T) {
	for name, reply := range map[string]string{
		"the clients' form": `"result":{"decision":"approved"}`,
		"MCP's form":        `"result":{"action":"accept","content":{}}`,
		"decision wins":     `"result":{"action":"decline","decision":"approved_for_session"}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := asked(t, asks)
				c.want(elicited)
				c.send(`{"id":0,%s}`, reply)
				c.e.Run().Finish("done")
				c.e.Request().Answer("committed")
				c.hear("agent_message 1", "task_complete 1", "answer 1")
				c.nothing()
			})
		})
	}
}

func TestElicitationRefused(t *testing.T) {
	for name, tt := range map[string]struct{ reply, unread string }{
		"denied":     {`"result":{"decision":"denied"}`, ""},
		"declined":   {`"result":{"action":"decline"}`, ""},
		"error":      {`"error":{"code":-32601,"message":"what?"}`, ""},
		"unreadable": {`"result":[]`, `[]`},
		"unheard of": {`"result":{"decision":"perhaps"}`, `{\"decision\":\"perhaps\"}`},
		"amendment":  {`"result":{"decision":{"approved_execpolicy_amendment":[]}}`, `{\"decision\":{\"approved_execpolicy_amendment\":[]}}`},
		"empty":      {`"result":null`, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := asked(t, asks)
				c.want(elicited)
				c.send(`{"id":0,%s}`, tt.reply)
				if tt.unread != "" { // the client learns why it is no
					c.want(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"fermata","data":"an answer to an approval could not be read, so it is no: ` + tt.unread + `"}}`)
				}
				c.e.Request().Answer("then not") // and the command was not run
				c.hear("agent_message 1", "task_complete 1", "answer 1")
			})
		})
	}
}

func TestElicitationAborted(t *testing.T) {
	for name, reply := range map[string]string{"abort": `{"decision":"abort"}`, "cancel": `{"action":"cancel"}`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := asked(t, asks)
				c.want(elicited)
				c.send(`{"id":0,"result":%s}`, reply)
				c.hear("turn_aborted 1", "answer 1")
			})
		})
	}
}

func TestClientThatCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := asked(t, noAsks)
		c.e.Request().Answer("then not")
		c.hear("agent_message 1", "task_complete 1", "answer 1")
	})
}

func TestElicitationIsTakenBack(t *testing.T) {
	const back = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0,"reason":"the approval is resolved"}}`
	t.Run("by a stop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := asked(t, asks)
			c.want(elicited)
			c.cancel("1")
			c.want(back)
			c.hear("turn_aborted 1")
			c.next()
			c.send(`{"id":0,"result":{"decision":"approved"}}`)
			c.nothing()
		})
	})
	t.Run("by another client", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := asked(t, asks)
			c.want(elicited)
			c.e.Must(p.ConversationID(c.id), p.Approve{Call: p.CallID{Turn: 1, Response: 1}, Decision: p.Approved})
			c.want(back)
			c.e.Run().Finish("done")
			c.e.Request().Answer("committed")
			c.hear("agent_message 1", "task_complete 1", "answer 1")
		})
	})
}

// A reply that joins a turn which is waiting for approval, and which no call began, is asked.
func TestReplyToATurnThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, asks)
		c.send(`{"id":"new","method":"newConversation","params":{}}`)
		c.skip("new")
		c.message("2", "go")
		m := c.e.Request()
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("git", "commit", "-m", "it's")
		c.skip("2")
		c.nothing()
		c.reply("1", `,"whenBusy":"steer"`)
		c.hear("task_started 1")
		c.next()
		c.want(elicited)
		c.send(`{"id":0,"result":{"decision":"approved"}}`)
		run := c.e.Run()
		if err := run.Call.Host.Record(t.Context(), &p.CommandStarted{Call: run.Call.ID}); err != nil {
			t.Fatal(err)
		}
		if line, _ := c.next(); !strings.Contains(line, `"call_id":"call_1"`) {
			t.Errorf("the call has another name: %s", line)
		}
		run.Finish("done")
		c.e.Request().Answer("committed")
		c.hear("exec_command_end 1", "agent_message 1", "task_complete 1", "answer 1")
		c.nothing()
	})
}

// An approval is not denied because the client has gone: the call is stopped.
func TestEndWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := asked(t, asks)
		c.want(elicited)
		c.in.Close()
		c.hear("turn_aborted 1", "answer 1")
		<-c.ended
		w := c.e.Watch(p.ConversationID(c.id), 0)
		w.Expect("approval_resolved 1.1.0 cancelled")
	})
}

func TestPatchElicitation(t *testing.T) {
	s := &Server{}
	s.elicits.Store(true)
	ask := &p.ApprovalRequested{Kind: p.ApprovePatch, Cwd: "/w", Reason: "outside", Detail: json.RawMessage(`{"/w/a":{"add":{"content":"x"}}}`)}
	method, params := s.elicitation(question{ApprovalRequested: ask, turn: 3, wireID: "call_2"}, json.RawMessage(`"req"`))
	got, _ := json.Marshal(params)
	const want = `{"message":"outside\nAllow these changes?","requestedSchema":{"type":"object","properties":{}},"codex_elicitation":"patch-approval",` +
		`"codex_mcp_tool_call_id":"req","codex_event_id":"3","codex_call_id":"call_2","codex_changes":{"/w/a":{"add":{"content":"x"}}}}`
	if method != "elicitation/create" || string(got) != want {
		t.Errorf("%s\ngot  %s\nwant %s", method, got, want)
	}
}

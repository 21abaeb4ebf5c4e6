package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// converse begins a conversation by the direct requests, with a listener.
func (c *mcpClient) converse(work string) string {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"newConversation","params":{"cwd":%q}}`, work)
	var got struct{ ConversationID, Model string }
	if err := json.Unmarshal([]byte(c.answer(1)), &got); err != nil || got.Model != "mock-model" {
		c.t.Fatalf("newConversation: %+v, %v", got, err)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"addConversationListener","params":{"conversationId":%q}}`, got.ConversationID)
	c.answer(2)
	return got.ConversationID
}

func (c *mcpClient) message(id int, conversation, text string) {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":%d,"method":"sendUserMessage","params":{"conversationId":%q,"items":[{"type":"text","data":{"text":%q}}]}}`, id, conversation, text)
}

func (c *mcpClient) event(kind string) map[string]any {
	c.t.Helper()
	m := c.await(kind, func(m map[string]any) bool { return m["method"] == "codex/event/"+kind })
	return m["params"].(map[string]any)
}

func TestMCPInterruptConversation(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(shellCall("call_sleep", "sleep", "62")))
	c := s.connect()
	id := c.converse(s.work)
	c.message(3, id, "sleep")
	c.event("exec_command_begin")
	c.send(`{"jsonrpc":"2.0","id":4,"method":"interruptConversation","params":{"conversationId":%q}}`, id)
	got, _ := json.Marshal(c.event("turn_aborted"))
	if want := fmt.Sprintf(`{"conversationId":%q,"id":"1","msg":{"reason":"interrupted","type":"turn_aborted"}}`, id); string(got) != want {
		t.Errorf("turn_aborted %s\nwant %s", got, want)
	}
	if got := c.answer(4); got != `{"abortReason":"interrupted"}` {
		t.Errorf("answer %s", got)
	}
	c.send(`{"jsonrpc":"2.0","id":5,"method":"interruptConversation","params":{"conversationId":%q}}`, id)
	if got := c.answer(5); got != `{"abortReason":null}` {
		t.Errorf("when idle: %s", got)
	}
	if n := len(s.srv.Requests()); n != 1 {
		t.Errorf("%d model requests", n)
	}
}

// A policy that a turn brings is that of the turns after it, too.
func TestMCPUserTurnChangesThePolicy(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "untrusted",
		modeltest.Respond(shellCall("c1", "touch", "one")), modeltest.Respond(modeltest.Say("done 1")),
		modeltest.Respond(shellCall("c1", "touch", "two")), modeltest.Respond(modeltest.Say("done 2")))
	c := s.connect()
	id := c.converse(s.work)
	c.message(3, id, "first")
	ask := c.await("execCommandApproval", func(m map[string]any) bool { return m["method"] == "execCommandApproval" })
	if got := ask["params"].(map[string]any)["call_id"]; got != "c1" || ask["id"] != 0.0 {
		t.Errorf("asked %v", ask)
	}
	c.send(`{"jsonrpc":"2.0","id":0,"result":{"decision":"approved"}}`)
	if got := msgOf(c.event("task_complete"))["last_agent_message"]; got != "done 1" {
		t.Errorf("last message %v", got)
	}
	c.send(`{"jsonrpc":"2.0","id":4,"method":"sendUserTurn","params":{"conversationId":%q,"items":[{"type":"text","data":{"text":"second"}}],"cwd":%q,`+
		`"approvalPolicy":"never","sandboxPolicy":{"mode":"danger-full-access"},"model":"mock-model","effort":"medium","summary":"auto"}}`, id, s.work)
	m := c.await("the end of the second turn", func(m map[string]any) bool {
		if m["method"] == "execCommandApproval" {
			t.Error("asked in spite of never")
		}
		return m["method"] == "codex/event/task_complete"
	})
	if got := msgOf(m["params"].(map[string]any))["last_agent_message"]; got != "done 2" {
		t.Errorf("last message %v", got)
	}
}

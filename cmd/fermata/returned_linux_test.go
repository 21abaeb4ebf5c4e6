package main

import (
	"syscall"
	"testing"
)

// killedWithAMessage runs a turn, sends a message while it runs, and kills the
// process. It returns the conversation.
func (s *mcpSite) killedWithAMessage(text string) string {
	s.t.Helper()
	c := s.connect("--demo")
	c.send(`{"jsonrpc":"2.0","id":1,"method":"newConversation","params":{"cwd":%q}}`, s.work)
	var id string
	c.await("a conversation", func(m map[string]any) bool {
		r, _ := m["result"].(map[string]any)
		id, _ = r["conversationId"].(string)
		return m["id"] == 1.0
	})
	message := `{"jsonrpc":"2.0","id":%d,"method":"sendUserMessage","params":{"conversationId":%q,"items":[{"type":"text","data":{"text":%q}}]}}`
	c.send(message, 2, id, "run: touch runs; sleep 600")
	eventually(s.t, "the command runs", func() bool { return exists(s.work + "/runs") })
	c.send(message, 3, id, text)
	c.await("the second message to be taken", func(m map[string]any) bool { return m["id"] == 3.0 })
	c.signal(syscall.SIGKILL)
	c.code()
	return id
}

// A message that waited when the process was killed is mentioned by everything
// that opens the conversation, and can be sent again.
func TestReturnedMessagesAreMentioned(t *testing.T) {
	t.Parallel()
	const text = "say what you're doing"
	s := newMCPSite(t, "never")
	id := s.killedWithAMessage(text)
	out, _, _ := s.run("show", id)
	contains(t, "show, before it was opened", out, "not delivered yet: "+text)
	_, errs, _ := s.run("exec", "resume", "--demo", id, "talk 3")
	contains(t, "exec resume with another prompt", errs, "not delivered before", text, `exec resume `+id+` 'say what you'\''re doing'`)
	_, errs, _ = s.run("exec", "resume", "--demo", id, "--returned")
	contains(t, "--returned, a turn later", errs, "every message was delivered")
}

func TestReturnedMessagesAreSentAgain(t *testing.T) {
	t.Parallel()
	const text = "talk 7"
	s := newMCPSite(t, "never")
	id := s.killedWithAMessage(text)
	c := s.connect("--demo")
	c.send(`{"jsonrpc":"2.0","id":1,"method":"resumeConversation","params":{"conversationId":%q}}`, id)
	log := c.notice("notifications/message")
	contains(t, "the MCP server's remark", log["data"].(string), "not delivered before", text)
	c.in.Close()
	c.code()
	out, _, _ := s.run("show", id)
	contains(t, "show, after it was opened", out, "not delivered: "+text, "fermata exec resume "+id+" --returned")
	out, errs, code := s.run("exec", "resume", "--demo", id, "--returned")
	if code != 0 {
		t.Errorf("--returned: %d\n%s", code, errs)
	}
	contains(t, "the answer to what was returned", out, "[demo]")
	out, _, _ = s.run("show", id)
	contains(t, "show at last", out, "> "+text)
}

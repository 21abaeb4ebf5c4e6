package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

func (c *mcpClient) tool(id int, name, arguments string) {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, arguments)
}

// say sends a message by the conversation tools and waits until it is accepted.
func (c *mcpClient) say(id int, conversation, text, more string) {
	c.t.Helper()
	c.tool(id, "conversationSendMessage", fmt.Sprintf(`{"conversation_id":%q,"content":[{"type":"text","text":%q}]%s}`, conversation, text, more))
	if got := c.answer(float64(id)); !strings.Contains(got, `"status":"ok"`) {
		c.t.Fatalf("message %d: %s", id, got)
	}
}

// A message to a turn that is waiting for approval waits with it: the question stays open, is asked when
// somebody connects, also of the next process, and the command runs once.
func TestMCPSecondMessageKeepsTheApproval(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "untrusted", modeltest.Respond(shellCall("call_1", "touch", "made")), modeltest.Respond(modeltest.Say("made it")))
	c := s.connect()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"newConversation","params":{"cwd":%q}}`, s.work)
	id := c.await("the conversation", func(m map[string]any) bool { return m["id"] == 1.0 })["result"].(map[string]any)["conversationId"].(string)
	c.say(2, id, "make it", "")
	eventually(t, "the turn waits", func() bool { return strings.Contains(s.must("show", id), "waiting for approval") })
	c.say(3, id, "carefully", "")
	c.in.Close() // nobody has been asked
	<-c.done
	next := s.connect()
	next.tool(4, "conversationStream", fmt.Sprintf(`{"conversation_id":%q}`, id))
	ask := next.await("the question", func(m map[string]any) bool { return m["method"] == "elicitation/create" })
	next.send(`{"jsonrpc":"2.0","id":%v,"result":{"decision":"approved"}}`, ask["id"])
	next.exactly("task_complete", `{"msg":{"last_agent_message":"made it","type":"task_complete"}}`)
	if last := s.srv.Requests()[1]; !strings.Contains(fmt.Sprint(last.Body()), "carefully") {
		t.Errorf("the model was not told the second message: %v", last.Body())
	}
	if _, err := os.Stat(filepath.Join(s.work, "made")); err != nil {
		t.Error(err)
	}
	s.fsck()
}

// Streaming again replaces the stream, and cancelling the one before does nothing.
func TestMCPOneStream(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", bareDone("Done"))
	c := s.connect()
	id := c.converse(s.work)
	for _, request := range []int{3, 4} {
		c.tool(request, "conversationStream", fmt.Sprintf(`{"conversation_id":%q}`, id))
		c.await("the state", func(m map[string]any) bool { return m["method"] == "notifications/initial_state" })
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	c.tool(5, "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"hi"}`, id))
	told := map[string]int{}
	c.await("the answer", func(m map[string]any) bool {
		if params, ok := m["params"].(map[string]any); ok && params["msg"] != nil {
			if kind := msgOf(params)["type"]; kind == "task_complete" {
				told[m["method"].(string)]++
			}
		}
		return m["id"] == 5.0
	})
	for _, form := range []string{"task_complete", "codex/event", "codex/event/task_complete"} {
		if told[form] != 1 {
			t.Errorf("%s was told %d times, want once", form, told[form])
		}
	}
}

// Partial text is told in pieces, live and in the state, and never as a message.
func TestMCPPartialText(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(modeltest.Say("half an ans"), modeltest.Stall()))
	c := s.connect()
	id := c.converse(s.work)
	c.message(3, id, "go")
	c.event("agent_message_delta")
	c.send(`{"jsonrpc":"2.0","id":4,"method":"interruptConversation","params":{"conversationId":%q}}`, id)
	c.await("the answer", func(m map[string]any) bool {
		if m["method"] == "codex/event/agent_message" {
			t.Errorf("a message that was never finished: %v", m)
		}
		return m["id"] == 4.0
	})
	c.tool(5, "conversationStream", fmt.Sprintf(`{"conversation_id":%q}`, id))
	c.exactly("notifications/initial_state", fmt.Sprintf(`{"_meta":{"conversationId":%q},"initial_state":{"events":[`+
		`{"msg":{"type":"task_started"}},{"msg":{"delta":"half an ans","type":"agent_message_delta"}},{"msg":{"reason":"interrupted","type":"turn_aborted"}}]}}`, id))
}

// A call whose turn is replaced is answered that it was, and each follower gets its own end.
func TestMCPReplacedCall(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(modeltest.Say("half an ans"), modeltest.Stall()), bareDone("Done"))
	c := s.connect()
	id := c.converse(s.work)
	c.tool(3, "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"go"}`, id))
	c.event("agent_message_delta")
	c.tool(4, "conversationSendMessage", fmt.Sprintf(`{"conversation_id":%q,"content":[{"type":"text","text":"rather this"}],"whenBusy":"replace"}`, id))
	listener, completed := 0, false
	answers := map[float64]string{} // they come in any order, and so may the end of the next turn
	c.await("both answers and the next turn", func(m map[string]any) bool {
		switch answered, _ := m["id"].(float64); {
		case m["method"] == nil && answered > 2:
			answers[answered] = fmt.Sprint(m["result"])
		case m["method"] == "codex/event/turn_aborted" && msgOf(m["params"].(map[string]any))["reason"] == "replaced":
			listener++
		case m["method"] == "codex/event/task_complete":
			completed = true
		}
		return len(answers) == 2 && completed
	})
	if !strings.Contains(answers[3], "turn replaced by another message") || listener != 1 {
		t.Errorf("answer %s; the listener was told %d ends", answers[3], listener)
	}
	c.tool(5, "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"go","whenBusy":"later"}`, id))
	if got := c.answer(5); !strings.Contains(got, `is none of steer, queue, replace`) {
		t.Errorf("an unknown whenBusy: %s", got)
	}
	c.tool(6, "conversationSendMessage", fmt.Sprintf(`{"conversation_id":%q,"content":[{"type":"text","text":"x"}],"whenBusy":"steer","model":"other"}`, id))
	if got := c.answer(6); !strings.Contains(got, "cannot change its settings") {
		t.Errorf("steer with settings: %s", got)
	}
}

// What a command prints arrives byte for byte, also where a character is cut between two writes.
func TestMCPBytes(t *testing.T) {
	t.Parallel()
	script := `printf 'a\377\376\342\202'; sleep 0.3; printf '\254\000z\303'; printf 'e\351' >&2`
	s := newMCPSite(t, "never", modeltest.Respond(shellCall("call_1", "sh", "-c", script)), bareDone("Done"))
	c := s.connect()
	id := c.converse(s.work)
	c.message(3, id, "go")
	got := map[string]string{}
	c.await("the end of the command", func(m map[string]any) bool {
		if m["method"] == "codex/event/exec_command_output_delta" {
			msg := msgOf(m["params"].(map[string]any))
			chunk, err := base64.StdEncoding.DecodeString(msg["chunk"].(string))
			if err != nil {
				t.Error(err)
			}
			got[msg["stream"].(string)] += string(chunk)
		}
		return m["method"] == "codex/event/exec_command_end"
	})
	if d := cmp.Diff(map[string]string{"stdout": "a\377\376\342\202\254\000z\303", "stderr": "e\351"}, got); d != "" {
		t.Errorf("output (-want +got):\n%s", d)
	}
	c.event("task_complete")
	s.fsck()
}

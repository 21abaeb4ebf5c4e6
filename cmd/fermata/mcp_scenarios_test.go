package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// made is the conversation in an answer, under any of its names.
func made(t *testing.T, answer string) (id, model string) {
	t.Helper()
	var got struct {
		ConversationID    string
		Model             string
		StructuredContent struct {
			ConversationID string `json:"conversation_id"`
			ThreadID       string
			Model          string
		}
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	for _, id := range []string{got.ConversationID, got.StructuredContent.ConversationID, got.StructuredContent.ThreadID} {
		if id != "" {
			return id, got.Model + got.StructuredContent.Model
		}
	}
	t.Fatalf("no conversation in %s", answer)
	return "", ""
}

const sentOK = `{"content":[{"text":"{\"status\":\"ok\"}","type":"text"}],"isError":false,"structuredContent":{"status":"ok"}}`

func (c *mcpClient) toolMessage(id int, conversation, text string) {
	c.t.Helper()
	c.send(`{"id":%d,"method":"tools/call","params":{"name":"conversationSendMessage","arguments":{"conversation_id":%q,"content":[{"type":"text","text":%q}]}}}`, id, conversation, text)
}

func TestMCPModelOfAConversation(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", bareDone("one"), bareDone("two"))
	c := s.connect()
	c.send(`{"id":1,"method":"newConversation","params":{"model":"o3","cwd":%q}}`, s.work)
	id, model := made(t, c.answer(1))
	c.message(2, id, "by request")
	if got := c.answer(2); got != `{}` || model != "o3" {
		t.Errorf("model %s, answer %s", model, got)
	}
	c.send(`{"id":3,"method":"tools/call","params":{"name":"conversationCreate","arguments":{"prompt":"","model":"o3","cwd":%q}}}`, s.work)
	id, model = made(t, c.answer(3))
	s.srv.Wait(1)
	c.toolMessage(4, id, "by tool")
	if got := c.answer(4); got != sentOK || model != "o3" {
		t.Errorf("model %s, answer %s", model, got)
	}
	for n, want := range []string{"by request", "by tool"} {
		r := s.srv.Wait(n + 1)
		if r.Body()["model"] != "o3" || r.Body()["stream"] != true {
			t.Errorf("model %v, stream %v", r.Body()["model"], r.Body()["stream"])
		}
		matches(t, "the user's own words come last", tail(r, 1), `user  `+want)
	}
}

func TestMCPMessageToTheConversationOfACall(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", bareDone("one"), bareDone("two"))
	c := s.connect()
	c.send(`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"hi"}}}`)
	id, _ := made(t, c.answer(1))
	c.toolMessage(2, id, "hi again")
	if got := c.answer(2); got != sentOK {
		t.Errorf("answer %s", got)
	}
	matches(t, "the end of the request", tail(s.srv.Wait(2), 3), "user  hi", "assistant  one", "user  hi again")
}

// Whoever connects after a message finds the answer in the state, or hears it.
func TestMCPMessageThenStream(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", bareDone("Done"))
	c := s.connect()
	c.send(`{"id":1,"method":"tools/call","params":{"name":"conversationCreate","arguments":{"prompt":"","cwd":%q}}}`, s.work)
	id, _ := made(t, c.answer(1))
	c.toolMessage(2, id, "hi")
	c.answer(2)
	c.send(`{"id":3,"method":"tools/call","params":{"name":"conversationStream","arguments":{"conversation_id":%q}}}`, id)
	seen := 0
	look := func(event any) {
		if b, _ := json.Marshal(event); string(b) == `{"msg":{"message":"Done","type":"agent_message"}}` {
			seen++
		}
	}
	c.await("the end of the turn", func(m map[string]any) bool {
		over := m["method"] == "task_complete"
		if m["method"] == "agent_message" {
			look(m["params"])
		}
		if m["method"] == "notifications/initial_state" {
			state := m["params"].(map[string]any)["initial_state"].(map[string]any)
			for _, e := range state["events"].([]any) {
				look(e)
				over = over || msgOf(e.(map[string]any))["type"] == "task_complete"
			}
		}
		return over
	})
	if seen != 1 {
		t.Errorf("the answer came %d times", seen)
	}
}

// A directory that is not there keeps nobody from talking; only a command fails.
func TestMCPDirectoryThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(shellCall("c", "touch", "made")), bareDone("it did not work"), modeltest.Respond(shellCall("c", "touch", "made")), bareDone("now it did"))
	c := s.connect()
	dir := filepath.Join(s.work, "later")
	c.send(`{"id":1,"method":"tools/call","params":{"name":"conversationCreate","arguments":{"prompt":"","cwd":%q}}}`, dir)
	id, _ := made(t, c.answer(1))
	c.send(`{"id":2,"method":"tools/call","params":{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"make it"}}}`, id)
	contains(t, "answer", c.answer(2), "it did not work")
	matches(t, "what the model was told", tail(s.srv.Wait(2), 1), `output c .*no such file or directory.*`)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c.send(`{"id":3,"method":"tools/call","params":{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"again"}}}`, id)
	contains(t, "answer", c.answer(3), "now it did")
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(fmt.Errorf("the command did not run: %w", err))
	}
}

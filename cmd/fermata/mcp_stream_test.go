package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// bareDone is a reply as the mock of those clients sends it: no usage, and an end
// that is not quite the one of the service.
func bareDone(text string) modeltest.Reply {
	return modeltest.Respond(modeltest.Raw(fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q},\"finish_reason\":\"stop\"}]}\n\ndata: DONE\n\n", text)), modeltest.Close())
}

// exactly waits for a message of a method, or the answer to a request, and compares it whole.
func (c *mcpClient) exactly(method string, want string) {
	c.t.Helper()
	m := c.await(method, func(m map[string]any) bool { return m["method"] == method })
	got, _ := json.Marshal(m["params"])
	if string(got) != want {
		c.t.Errorf("%s\ngot  %s\nwant %s", method, got, want)
	}
}

func TestMCPStream(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", bareDone("Done 1"), bareDone("Done 2"))
	c := s.connect()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"conversationCreate","arguments":{"prompt":"","model":"o3","cwd":"/no/such/directory"}}}`)
	var made struct {
		StructuredContent struct {
			ConversationID string `json:"conversation_id"`
			Model          string `json:"model"`
		} `json:"structuredContent"`
	}
	if err := json.Unmarshal([]byte(c.answer(1)), &made); err != nil || made.StructuredContent.Model != "o3" {
		t.Fatalf("conversationCreate: %+v, %v", made, err)
	}
	id := made.StructuredContent.ConversationID
	stream := func(request int) {
		c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"conversationStream","arguments":{"conversation_id":%q}}}`, request, id)
		if got := c.answer(float64(request)); got != `{"content":[{"text":"{}","type":"text"}],"isError":false,"structuredContent":{}}` {
			t.Errorf("conversationStream: %s", got)
		}
	}
	state := func(events string) string {
		return fmt.Sprintf(`{"_meta":{"conversationId":%q},"initial_state":{"events":[%s]}}`, id, events)
	}
	say := func(request int) {
		c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"conversationSendMessage","arguments":{"conversation_id":%q,"content":[{"type":"text","text":"hi"}]}}}`, request, id)
	}
	stream(2)
	c.exactly("notifications/initial_state", state(""))
	say(3)
	c.exactly("agent_message", `{"msg":{"message":"Done 1","type":"agent_message"}}`)
	c.exactly("task_complete", `{"msg":{"last_agent_message":"Done 1","type":"task_complete"}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	say(4)
	c.await("the answer to the second message", func(m map[string]any) bool {
		if m["method"] == "agent_message" {
			t.Error("a live event while the stream is paused")
		}
		return m["id"] == 4.0
	})
	s.srv.Wait(2)
	eventually(t, "the second turn ends", func() bool {
		list := s.conversations()
		return len(list) == 1 && list[0].Turns == 2 && list[0].Ended == "completed"
	})
	turn := `{"msg":{"type":"task_started"}},{"msg":{"message":"Done %d","type":"agent_message"}}`
	end := `{"msg":{"last_agent_message":"Done %d","type":"task_complete"}}`
	begins := fmt.Sprintf(turn+","+end+","+turn, 1, 1, 2)
	stream(5)
	// The end was seen in the file. If it is not on the disk yet, the stream begins without it, and has it next.
	got, _ := json.Marshal(c.notice("notifications/initial_state"))
	switch string(got) {
	case state(begins + "," + fmt.Sprintf(end, 2)):
	case state(begins):
		c.exactly("task_complete", fmt.Sprintf(end, 2))
	default:
		t.Errorf("the second stream begins with %s", got)
	}
}

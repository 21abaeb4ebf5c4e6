package mcpserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
	p "github.com/fermata-agent/fermata/protocol"
)

func (c *client) tool(id, name, arguments string) {
	c.t.Helper()
	c.send(`{"id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, arguments)
}

// toolCreated begins a conversation by the tool.
func toolCreated(t *testing.T, capabilities string) *client {
	t.Helper()
	c := connect(t, capabilities)
	c.tool("10", "conversationCreate", `{"prompt":"","model":"o3","cwd":"/nowhere"}`)
	c.want(`{"jsonrpc":"2.0","id":10,"result":{"content":[{"type":"text","text":"{\"conversation_id\":\"C\",\"model\":\"o3\"}"}],"isError":false,"structuredContent":{"conversation_id":"C","model":"o3"}}}`)
	return c
}

func (c *client) say(id string) {
	c.t.Helper()
	c.tool(id, "conversationSendMessage", `{"conversation_id":"C","content":[{"type":"text","text":"hi"}]}`)
}

// modelSays answers the next model request, without a count of tokens.
func (c *client) modelSays(text string) {
	c.t.Helper()
	m := c.e.Request()
	m.Usage = nil
	m.Answer(text)
}

func sent(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"{\"status\":\"ok\"}"}],"isError":false,"structuredContent":{"status":"ok"}}}`
}

// stream connects; the answer comes first, then the state.
func (c *client) stream(id string, events ...string) {
	c.t.Helper()
	c.tool(id, "conversationStream", `{"conversation_id":"C"}`)
	c.want(`{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[{"type":"text","text":"{}"}],"isError":false,"structuredContent":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initial_state","params":{"_meta":{"conversationId":"C"},"initial_state":{"events":[`+strings.Join(events, ",")+`]}}}`)
}

func live(m string) string {
	kind := strings.Split(strings.Split(m, `"type":"`)[1], `"`)[0]
	return `{"jsonrpc":"2.0","method":"` + kind + `","params":{"msg":` + m + `}}`
}

// turn is a finished turn, as the state has it.
func turn(text string) []string {
	return []string{
		`{"msg":{"type":"task_started"}}`, fmt.Sprintf(`{"msg":{"message":%q,"type":"agent_message"}}`, text),
		fmt.Sprintf(`{"msg":{"last_agent_message":%q,"type":"task_complete"}}`, text),
	}
}

func TestStreamThenSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, noAsks)
		c.stream("11")
		c.say("12")
		c.take("12")
		c.modelSays("Done")
		c.want(live(`{"type":"task_started"}`), live(`{"type":"agent_message","message":"Done"}`), live(`{"type":"task_complete","last_agent_message":"Done"}`))
		c.nothing()
	})
}

func TestStreamCancelledAndReconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, noAsks)
		c.stream("11")
		c.say("12")
		c.take("12")
		c.modelSays("Done 1")
		c.want(live(`{"type":"task_started"}`), live(`{"type":"agent_message","message":"Done 1"}`), live(`{"type":"task_complete","last_agent_message":"Done 1"}`))
		c.cancel("11")
		synctest.Wait()
		c.say("13")
		c.modelSays("Done 2")
		c.want(sent("13"))
		c.nothing()
		c.stream("14", append(turn("Done 1"), turn("Done 2")...)...)
		c.stream("15", append(turn("Done 1"), turn("Done 2")...)...)
		c.say("16")
		c.modelSays("Done 3")
		synctest.Wait()
		counts := map[string]int{}
		for len(c.lines) > 0 {
			_, h := c.next()
			counts[h.Method]++
		}
		if d := cmp.Diff(map[string]int{"": 1, "task_started": 1, "agent_message": 1, "task_complete": 1}, counts); d != "" {
			t.Errorf("streamed again (-want +got):\n%s", d)
		}
		c.tool("17", "conversationStream", `{"conversation_id":"C","cursor":13}`)
		c.skip("17")
		line, _ := c.next()
		if !strings.Contains(line, `"events":[{"msg":{"type":"task_started"},"seq":14},`) || !strings.Contains(line, "Done 3") {
			t.Errorf("after a cursor: %s", line)
		}
	})
}

func TestStreamInMidSentence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, noAsks)
		c.say("11")
		c.want(sent("11"))
		m := c.e.Request()
		m.Usage = nil
		m.Delta("Half ")
		m.Delta("a sen")
		synctest.Wait()
		c.stream("12", `{"msg":{"type":"task_started"}}`, `{"msg":{"type":"agent_message_delta","delta":"Half a sen"}}`)
		c.nothing()
		m.Delta("tence")
		synctest.Wait()
		m.Answer("Half a sentence")
		c.want(live(`{"type":"agent_message_delta","delta":"tence"}`), live(`{"type":"agent_message","message":"Half a sentence"}`),
			live(`{"type":"task_complete","last_agent_message":"Half a sentence"}`))
		c.nothing()
	})
}

// A turn that has said nothing yet does not hold up the state.
func TestStreamBeforeTheFirstWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, noAsks)
		c.say("11")
		c.want(sent("11"))
		m := c.e.Request()
		m.Usage = nil
		c.stream("12", `{"msg":{"type":"task_started"}}`)
		m.Delta("Wo")
		c.want(live(`{"type":"agent_message_delta","delta":"Wo"}`))
	})
}

func TestCancelledMessageStopsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, noAsks)
		c.stream("11")
		c.say("12")
		m := c.e.Request()
		c.take("12")
		c.want(live(`{"type":"task_started"}`))
		c.cancel("12")
		m.Stopped()
		c.want(live(`{"type":"turn_aborted","reason":"interrupted"}`))
		c.nothing()
	})
}

func TestHeldApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, asks)
		c.say("11")
		c.want(sent("11"))
		m := c.e.Request()
		m.Usage = nil
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("rm", "x")
		c.nothing() // no client is attached: it is held
		request := `{"type":"exec_approval_request","call_id":"call_1","command":["rm","x"],"cwd":"","reason":"why not"}`
		c.stream("12", `{"msg":{"type":"task_started"}}`, `{"msg":`+request+`}`)
		c.want(`{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"Allow to run ` + "`rm x` in ``" + `?","requestedSchema":{"type":"object","properties":{}},` +
			`"codex_elicitation":"exec-approval","codex_mcp_tool_call_id":"10","codex_event_id":"1","codex_call_id":"call_1","codex_command":["rm","x"]}}`)
		c.cancel("12") // the stream is paused: the question goes, and stays open
		c.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0,"reason":"no client follows the conversation"}}`)
		c.nothing()
		c.stream("13", `{"msg":{"type":"task_started"}}`, `{"msg":`+request+`}`)
		_, h := c.next()
		if h.Method != "elicitation/create" || bare(h.ID) != "1" {
			t.Fatalf("asked again: %+v", h)
		}
		c.send(`{"id":1,"result":{"action":"accept"}}`)
		c.e.Run().Finish("removed")
		c.modelSays("gone")
		c.want(live(`{"type":"agent_message","message":"gone"}`), live(`{"type":"task_complete","last_agent_message":"gone"}`))

		c.stream("14", append([]string{`{"msg":{"type":"task_started"}}`, `{"msg":` + request + `}`}, turn("gone")[1:]...)...)
		c.nothing() // what is resolved is not asked
	})
}

// At the end of the client a turn is stopped, and the streams are told so.
func TestEndTellsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, noAsks)
		c.stream("11")
		c.stream("12")
		c.message("13", "go")
		m := c.e.Request()
		synctest.Wait()
		c.cancel("11") // which the other stream has replaced
		synctest.Wait()
		c.skip("13")
		c.drain()
		m.Delta("half")
		c.want(live(`{"type":"agent_message_delta","delta":"half"}`))
		c.stop(errors.New("stopped by SIGTERM"))
		c.want(live(`{"type":"turn_aborted","reason":"interrupted"}`))
		<-c.ended
	})
}

// A turn that only waits for a person goes on waiting, also if its message could still be cancelled.
func TestEndWhileASentMessageWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, asks)
		c.stream("11")
		c.say("12")
		m := c.e.Request()
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("rm", "x")
		synctest.Wait()
		began := time.Now()
		c.in.Close()
		<-c.ended
		snap, err := c.e.Resume(t.Context(), p.ConversationID(c.id))
		if err != nil || !snap.Waiting {
			t.Errorf("the turn waits no more: %+v, %v", snap, err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the end took %s", took) // of the bubble's clock: something was waited for in vain
		}
	})
}

// Cancelling a message stops its turn also while a client is asked.
func TestCancelledMessageWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, asks)
		c.say("12")
		m := c.e.Request()
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("rm", "x")
		c.skip("12")
		synctest.Wait()
		c.cancel("12")
		synctest.Wait()
		snap, err := c.e.Resume(t.Context(), p.ConversationID(c.id))
		if err != nil || snap.Active {
			t.Errorf("the turn goes on: %+v, %v", snap, err)
		}
	})
}

// A conversation that is there but cannot be had says why.
func TestStreamOfAnothersConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, noAsks)
		c.say("11")
		c.e.Request() // it runs, and is kept
		other := attach(t, enginetest.New(t, enginetest.Options{Store: c.e.Store}))
		other.id = c.id
		other.tool("1", "conversationStream", `{"conversation_id":"C"}`)
		if got := other.skip("1"); !strings.Contains(got, "has this conversation open") || !strings.Contains(got, `"isError":true`) {
			t.Error(got)
		}
	})
}

// A message that changes nothing joins the turn that runs.
func TestMessageThatChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, noAsks)
		c.say("11")
		m := c.e.Request()
		c.tool("12", "conversationSendMessage", `{"conversation_id":"C","content":[{"type":"text","text":"more"}],"include_plan_tool":true}`)
		c.want(sent("11"), sent("12"))
		m.Answer("one")
		if got := c.e.Request().Inputs(); got[len(got)-1] != "user more" || got[len(got)-2] != "assistant one" {
			t.Errorf("the model was told %q", got)
		}
		c.e.Idle()
		snap, err := c.e.Resume(t.Context(), p.ConversationID(c.id))
		if err != nil || snap.Turn != 1 {
			t.Errorf("turn %d, %v", snap.Turn, err)
		}
	})
}

func TestConversationToolErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, noAsks)
		const nobody = "00000000-0000-0000-0000-000000000000"
		c.tool("1", "conversationSendMessage", `{"conversation_id":"`+nobody+`","content":[{"type":"text","text":"x"}]}`)
		c.want(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"status\":\"error\",\"message\":\"Session does not exist\"}"}],"isError":true,"structuredContent":{"status":"error","message":"Session does not exist"}}}`)
		c.tool("2", "conversationStream", `{"conversation_id":"`+nobody+`"}`)
		c.want(`{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true}}`)
		c.tool("3", "conversationSendMessage", `{"conversation_id":"C","content":[]}`)
		if got := c.skip("3"); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, `"status":"error"`) {
			t.Error(got)
		}
		c.tool("4", "conversationCreate", `{"prompt":"","cwd":"/w","model":"bad"}`)
		c.want(`{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"{\"message\":\"there is no model bad\"}"}],"isError":true,"structuredContent":{"message":"there is no model bad"}}}`)
		c.tool("5", "conversationSendMessage", `{"conversation_id":"C","content":[{"type":"sound"}]}`)
		if got := c.skip("5"); !strings.Contains(got, `there are no items of type`) {
			t.Error(got)
		}
		c.e.Idle()
	})
}

func TestCreateWithPromptAndList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.tool("1", "conversationCreate", `{"prompt":"the first","cwd":"/w"}`)
		c.skip("1")
		m := c.e.Request()
		if got := m.Inputs(); got[len(got)-1] != "user the first" {
			t.Errorf("the model was told %q", got)
		}
		c.tool("2", "conversationSendMessage", `{"conversation_id":"C","content":[{"type":"text","text":"x"}],"model":"m2","cwd":"/v","approval_policy":"never","sandbox":"read-only"}`)
		c.skip("2")
		m.Answer("ok") // what the message changes is not for the turn that runs
		c.e.Request().Answer("ok")
		snap, err := c.e.Resume(t.Context(), p.ConversationID(c.id))
		want := p.Settings{Cwd: "/v", Model: "m2", Approval: p.ApprovalNever, Sandbox: p.SandboxPolicy{Mode: p.SandboxReadOnly}}
		if d := cmp.Diff(want, snap.Settings); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
		c.tool("3", "conversationsList", `{"limit":5}`)
		c.want(`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{\"conversations\":[{\"conversation_id\":\"C\",\"title\":\"the first\"}]}"}],"isError":false,"structuredContent":{"conversations":[{"conversation_id":"C","title":"the first"}]}}}`)
	})
}

// Pieces that are read before what finishes them are not told twice.
func TestStateHoldsWholeThings(t *testing.T) {
	st := &stream{follower: &follower{c: &conversation{}}}
	a, b, c, d, e := p.ItemID{Index: 1}, p.ItemID{Index: 2}, p.ItemID{Index: 3}, p.ItemID{Index: 4}, p.ItemID{Index: 5}
	for _, in := range []struct {
		body p.Body
		m    event.Msg
	}{
		{&p.Delta{Item: a}, event.Msg{"type": "agent_reasoning_delta", "delta": "h"}},
		{&p.Reasoning{Item: a}, event.Msg{"type": "agent_reasoning", "text": "hm"}},
		{&p.AssistantMessage{Item: b}, event.Msg{"type": "agent_message_delta", "delta": "never finished"}},
		{&p.Delta{Item: c}, event.Msg{"type": "agent_message_delta", "delta": "D"}},
		{&p.AssistantMessage{Item: c}, event.Msg{"type": "agent_message", "message": "Done"}},
		{&p.Delta{Item: d}, event.Msg{"type": "exec_command_output_delta", "call_id": "a"}},
		{&p.Delta{Item: e}, event.Msg{"type": "exec_command_output_delta", "call_id": "b"}},
		{&p.ToolOutput{Call: d}, event.Msg{"type": "exec_command_end", "call_id": "a"}},
	} {
		st.send(p.Event{Body: in.body}, "", in.m)
	}
	if st.pieces != 2 {
		t.Errorf("%d pieces", st.pieces)
	}
	var got []string
	for _, e := range st.past {
		got = append(got, e.Msg.Type())
	}
	if d := cmp.Diff([]string{"agent_reasoning", "agent_message_delta", "agent_message", "exec_command_output_delta", "exec_command_end"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The state of a long conversation takes as long as it is, not the square of that.
func BenchmarkState(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				st := &stream{follower: &follower{c: &conversation{}}}
				for range n {
					st.send(p.Event{}, "", event.Msg{"type": "agent_message", "message": "x"})
				}
			}
		})
	}
}

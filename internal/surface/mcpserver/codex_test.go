package mcpserver

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
	p "github.com/fermata-agent/fermata/protocol"
)

const (
	asks   = `{"elicitation":{}}`
	noAsks = `{}`
)

func TestHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, "")
		c.send(`{"id":1,"method":"ping"}`)
		c.want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		c.send(`{"id":2,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}`)
		c.want(`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"fermata","title":"fermata","version":"1.2.3"}}}`)
		c.send(`{"id":3,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}`)
		c.want(`{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"already initialized"}}`)
		c.send(`{"method":"notifications/initialized"}`)
		c.send(`{"id":4,"method":"logging/setLevel","params":{"level":"debug"}}`)
		c.want(`{"jsonrpc":"2.0","id":4,"result":{}}`)
		c.send(`{"id":5,"method":"resources/list"}`)
		c.want(`{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"there is no method \"resources/list\""}}`)
		c.send(`{"id":6,"method":"elicitation/create"}`) // that is for us to ask
		c.want(`{"jsonrpc":"2.0","id":6,"error":{"code":-32601,"message":"there is no method \"elicitation/create\""}}`)
		c.send(`{"method":"turn_aborted"}`)
		c.nothing()
	})
}

func TestUnknownVersionIsNegotiated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, "")
		c.send(`{"id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{}}}`)
		if got := c.skip("1"); !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
			t.Error(got)
		}
	})
}

func TestListedTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, "")
		c.send(`{"id":1,"method":"tools/list"}`)
		var got struct {
			Result struct {
				Tools []struct {
					Name        string
					InputSchema struct {
						Type       string
						Required   []string
						Properties map[string]struct{ Enum []string }
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(c.skip("1")), &got); err != nil {
			t.Fatal(err)
		}
		codex, reply := got.Result.Tools[0], got.Result.Tools[1]
		if codex.Name != "codex" || reply.Name != "codex-reply" || codex.InputSchema.Type != "object" {
			t.Errorf("tools %+v", got)
		}
		if d := cmp.Diff([]string{"prompt"}, codex.InputSchema.Required); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"prompt"}, reply.InputSchema.Required); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"untrusted", "on-failure", "on-request", "never"}, codex.InputSchema.Properties["approval-policy"].Enum); d != "" {
			t.Error(d)
		}
		for _, name := range []string{"conversationId", "threadId", "sessionId"} {
			if _, ok := reply.InputSchema.Properties[name]; !ok {
				t.Errorf("codex-reply does not take %s", name)
			}
		}
	})
}

// named is the part of an answer that holds its text for those who read nothing else, and the conversation.
func named(text string) string {
	return `"structuredContent":{"content":"` + text + `","conversationId":"C","threadId":"C"}`
}

// begin calls codex with a request id.
func (c *client) begin(id string) {
	c.t.Helper()
	c.send(`{"id":%s,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go","cwd":"/w"}}}`, id)
}

func (c *client) reply(id, more string) {
	c.t.Helper()
	c.send(`{"id":%s,"method":"tools/call","params":{"name":"codex-reply","arguments":{"conversationId":"C","prompt":"more"%s}}}`, id, more)
}

func TestCodexCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("7")
		m := c.e.Request()
		m.Usage = nil
		m.Delta("Do")
		synctest.Wait()
		m.Answer("Done")
		line := func(method, rest string) string {
			return `{"jsonrpc":"2.0","method":"` + method + `","params":{"_meta":{"requestId":7,"conversationId":"C"` + rest + `}}`
		}
		configured := `},"id":"","msg":{"type":"session_configured","session_id":"C","model":"puppet","history_log_id":0,"history_entry_count":0}`
		c.want(line("codex/event", configured), line("session_configured", configured))
		for _, e := range []string{
			`,"seq":2},"id":"1","msg":{"type":"task_started","model_context_window":null}`,
			`},"id":"1","msg":{"type":"agent_message_delta","delta":"Do"}`,
			`},"id":"1","msg":{"type":"agent_message_delta","delta":"ne"}`,
			`,"seq":5},"id":"1","msg":{"type":"agent_message","message":"Done"}`,
			`,"seq":7},"id":"1","msg":{"type":"task_complete","last_agent_message":"Done"}`,
		} {
			c.want(line("codex/event", e))
			if kind := strings.Split(strings.Split(e, `"type":"`)[1], `"`)[0]; !strings.HasSuffix(kind, "_delta") {
				c.want(line(kind, e))
			}
		}
		c.want(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"Done"}],` + named("Done") + `}}`)
		c.nothing()
	})
}

func TestReplyInItsOwnTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		c.e.Request().Answer("one")
		c.skip("1")
		c.reply(`"b"`, `,"sessionId":"C","threadId":"C"`)
		m := c.e.Request()
		m.Fail(enginetest.Refused())
		c.hear("task_started 2", "error 2", "task_complete 2")
		c.want(`{"jsonrpc":"2.0","method":"task_complete","params":{"_meta":{"requestId":"b","conversationId":"C","seq":13},"id":"2","msg":{"type":"task_complete","last_agent_message":null}}}`,
			`{"jsonrpc":"2.0","id":"b","result":{"content":[{"type":"text","text":"refused"}],"isError":true,`+named("refused")+`}}`)
		c.reply("3", "") // nothing of the failed turn is in the way
		c.e.Request().Answer("three")
		c.hear("task_started 3", "agent_message 3", "task_complete 3", "answer 3")
	})
}

func TestBadCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		for _, x := range []struct{ params, text string }{
			{`{"name":"codex","arguments":{}}`, "prompt is missing"},
			{`{"name":"codex"}`, "prompt is missing"},
			{`{"name":"codex","arguments":{"prompt":"x","model":"bad"}}`, "there is no model bad"},
			{`{"name":"codex-reply","arguments":{"prompt":"x"}}`, "conversationId is missing"},
			{`{"name":"codex-reply","arguments":{"prompt":"x","threadId":"a","sessionId":"b"}}`, "conversationId, threadId and sessionId differ"},
			{`{"name":"codex-reply","arguments":{"prompt":"x","threadId":"a"}}`, `"a" is not a conversation id`},
			{`{"name":"codex-reply","arguments":{"prompt":"x","threadId":"00000000-0000-0000-0000-000000000000"}}`, "unknown conversation: 00000000-0000-0000-0000-000000000000"},
			{`{"name":"codex-reply","arguments":{"prompt":"x","threadId":"a","whenBusy":"never"}}`, `whenBusy: "never" is none of steer, queue, replace`},
			{`{"name":"nothing","arguments":{}}`, "unknown tool nothing"},
		} {
			c.send(`{"id":1,"method":"tools/call","params":%s}`, x.params)
			text, _ := json.Marshal(x.text)
			c.want(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":` + string(text) + `}],"isError":true}}`)
		}
		c.send(`{"id":1,"method":"tools/call","params":{"arguments":{}}}`)
		c.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"name is missing"}}`)
	})
}

func TestCancelStopsTheTurnAndIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		m := c.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		run := c.e.Run()
		c.cancel("1")
		<-run.Ctx.Done()
		c.hear("session_configured", "task_started 1", "turn_aborted 1")
		c.want(`{"jsonrpc":"2.0","method":"turn_aborted","params":{"_meta":{"requestId":1,"conversationId":"C","seq":10},"id":"1","msg":{"type":"turn_aborted","reason":"interrupted"}}}`)
		c.nothing()

		c.reply("2", "") // and again
		c.e.Request().Delta("half")
		synctest.Wait()
		c.cancel("2")
		c.hear("task_started 2", "agent_message_delta 2", "turn_aborted 2")
		c.next()
		c.nothing()
	})
}

func TestStoppedBySomebodyElseIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		c.e.Request().Delta("half an ans")
		synctest.Wait()
		c.hear("session_configured", "task_started 1", "agent_message_delta 1")
		c.e.Must(p.ConversationID(c.id), p.Interrupt{})
		if got, want := c.skip("1"), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"turn interrupted"},{"type":"text","text":"half an ans"}],"isError":true,`+named(`turn interrupted\n\nhalf an ans`)+`}}`; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
}

func TestSteeredReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		m := c.e.Request()
		c.hear("session_configured", "task_started 1")
		const calls = 10 // so that one of them would be quicker than the first, if it could
		for id := 2; id <= calls; id++ {
			c.reply(strconv.Itoa(id), "")
		}
		synctest.Wait()
		m.Answer("first")
		c.e.Request().Answer("second")
		answers := map[string]bool{}
		for over := false; len(answers) < calls; {
			line, h := c.next()
			over = over || h.Method == "task_complete"
			switch {
			case h.Method != "" && !strings.Contains(line, `"requestId":1`):
				t.Errorf("an event of another request: %s", line)
			case h.Method == "" && (!over || !strings.Contains(line, `"text":"second"`)):
				t.Errorf("an answer, the turn told to its end %v: %s", over, line)
			case h.Method == "":
				answers[bare(h.ID)] = true
			}
		}
		c.nothing()
	})
}

func TestReplyToAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		c.e.Request().Answer("one")
		c.skip("1")
		c.reply("2", "")
		m := c.e.Request()
		c.reply("3", "") // does not wait for the end of the one before
		synctest.Wait()
		m.Answer("two")
		if got := c.e.Request().Inputs(); got[len(got)-1] != "user more" {
			t.Errorf("the model was told %q", got)
		}
		c.cancel("2")
		if got := c.skip("3"); !strings.Contains(got, "turn interrupted") {
			t.Error(got)
		}
	})
}

// A reply that has yet to join the turn is taken back alone; one that has joined takes the turn with it.
func TestCancelOfASteeredReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		m := c.e.Request()
		c.hear("session_configured", "task_started 1")
		c.reply("2", "")
		synctest.Wait()
		c.cancel("2")
		c.drain()
		c.reply("3", "")
		synctest.Wait()
		m.Answer("one")
		c.hear("agent_message 1")
		m = c.e.Request()
		if got := m.Inputs(); len(got) != 4 || got[3] != "user more" { // once, not twice
			t.Errorf("the model was told %q", got)
		}
		c.cancel("3")
		m.Stopped()
		if got := c.skip("1"); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "turn interrupted") {
			t.Error(got)
		}
		c.nothing()
	})
}

// A reply that is handed back was never part of the turn that ran: it tells nothing of it, and
// leaves telling to those that are.
func TestReplyHandedBackTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.message("1", "go")
		m := c.e.Request()
		c.skip("1")
		c.reply("2", `,"whenBusy":"queue"`)
		synctest.Wait()
		c.cancel("2")
		c.nothing()
		c.reply("3", `,"whenBusy":"queue"`)
		synctest.Wait()
		c.reply("4", `,"whenBusy":"steer"`)
		synctest.Wait()
		m.Answer("one")
		c.e.Request().Delta("tw")
		synctest.Wait() // or the client may see the text only when it is cut
		c.interrupt("5")
		var told []string
		answers := map[string]string{}
		for len(answers) < 3 {
			line, h := c.next()
			switch {
			case h.Method == "":
				answers[bare(h.ID)] = line
			case h.Method == "codex/event" && h.Params.Msg["type"] != "token_count":
				told = append(told, h.Params.Msg["type"].(string)+" "+h.Params.ID)
				if !strings.Contains(line, `"requestId":4`) {
					t.Errorf("an event of another request: %s", line)
				}
			}
		}
		want := []string{"task_started 1", "agent_message 1", "agent_message_delta 1", "background_event 1", "turn_aborted 1"}
		if d := cmp.Diff(want, told); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		for id, want := range map[string]string{
			"3": `[{"type":"text","text":"the message was not delivered"}],"isError":true,` + named(`the message was not delivered`),
			"4": `[{"type":"text","text":"turn interrupted"},{"type":"text","text":"tw"}],"isError":true,` + named(`turn interrupted\n\ntw`),
		} {
			if want = `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":` + want + `}}`; answers[id] != want {
				t.Errorf("got %s\nwant %s", answers[id], want)
			}
		}
		c.nothing()
	})
}

// A call that learns of its turn when another has told all of it tells nothing again.
func TestTurnIsToldByOneCall(t *testing.T) {
	c := &conversation{reporters: map[p.TurnID]*turnCall{}}
	first, second := &turnCall{c: c, asks: newAsker(t.Context(), newDesk(nil, ""), byCall, nil), turn: 1, mine: true, events: event.New(0), progress: &progress{}}, &turnCall{c: c}
	end := p.Event{Turn: 1, Body: &p.TurnEnded{Reason: p.Interrupted}}
	if !c.reports(first, 1) || c.reports(second, 1) {
		t.Error("the first call tells, no other")
	}
	first.s = &Server{conn: jsonrpc.New(t.Context(), jsonrpc.Options{})}
	first.r, first.life = &jsonrpc.Request{}, t.Context()
	first.event(end)
	if c.reports(second, 1) {
		t.Error("told twice")
	}
}

// What is known when a turn fails is told: why, what became of the message, and the text so far.
func TestProblemsOfATurn(t *testing.T) {
	broken := p.TurnEnded{Reason: p.Failed, Error: &p.Error{Message: "no model"}}
	for want, end := range map[string]engine.TurnEnd{
		"no model":                         {End: broken},
		"no model|so far":                  {End: broken, Message: "so far"},
		"turn replaced by another message": {End: p.TurnEnded{Reason: p.Replaced}},
		"the message was not delivered":    {Returned: true},
		"turn interrupted|the message was not delivered|so far": {End: p.TurnEnded{Reason: p.Interrupted}, Returned: true, Message: "so far"},
		"the message was not delivered|so far":                  {End: p.TurnEnded{Reason: p.Completed}, Returned: true, Message: "so far"},
	} {
		if got := strings.Join(problems(end), "|"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestQueuedReplyHasItsOwnEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		m := c.e.Request()
		c.hear("session_configured", "task_started 1")
		c.reply("2", `,"whenBusy":"queue"`)
		synctest.Wait()
		m.Answer("one")
		c.e.Request().Answer("two")
		var second []string
		for answers := 0; answers < 2; { // the end of the one and the start of the other may mix
			line, h := c.next()
			if h.Method == "" {
				answers++
			}
			if h.Method == "codex/event" && strings.Contains(line, `"requestId":2`) {
				second = append(second, h.Params.Msg["type"].(string)+" "+h.Params.ID)
			}
		}
		if d := cmp.Diff([]string{"task_started 2", "agent_message 2", "token_count 2", "task_complete 2"}, second); d != "" {
			t.Errorf("the second call (-want +got):\n%s", d)
		}
	})
}

func TestTwoCallsDoNotSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		one := c.e.Request()
		synctest.Wait()
		c.begin("2")
		two := c.e.Request()
		two.Answer("two")
		one.Answer("one")
		of := map[string]string{}
		for n := 0; n < 2; {
			line, h := c.next()
			if h.Method == "" {
				n++
				want := map[string]string{"1": "one", "2": "two"}[bare(h.ID)]
				if !strings.Contains(line, want) {
					t.Errorf("the answer is not %s: %s", want, line)
				}
				continue
			}
			var m struct {
				Params struct {
					Meta struct {
						RequestID      json.Number `json:"requestId"`
						ConversationID string      `json:"conversationId"`
					} `json:"_meta"`
				}
			}
			_ = json.Unmarshal([]byte(line), &m)
			meta := m.Params.Meta
			if was := of[meta.RequestID.String()]; was != "" && was != meta.ConversationID {
				t.Errorf("request %s has events of %s and %s", meta.RequestID, was, meta.ConversationID)
			}
			of[meta.RequestID.String()] = meta.ConversationID
		}
		if len(of) != 2 || of["1"] == of["2"] {
			t.Errorf("conversations %v", of)
		}
	})
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.send(`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go"},"_meta":{"progressToken":"tok"}}}`)
		c.e.Request().Answer("x")
		c.next()
		c.next()
		c.want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":1,"message":"session_configured"}}`)
		c.skip("1")

		c.send(`{"id":2,"method":"tools/call","params":{"name":"codex-reply","arguments":{"prompt":"go","threadId":"C"},"_meta":{"progressToken":null}}}`)
		c.e.Request().Answer("x")
		for h := (heard{}); bare(h.ID) != "2"; {
			if _, h = c.next(); h.Method == "notifications/progress" {
				t.Fatal("progress that the user did not ask for")
			}
		}

		c.send(`{"id":3,"method":"tools/call","params":{"name":"codex-reply","arguments":{"prompt":"go","threadId":"C"},"_meta":{"progressToken":3}}}`)
		c.e.Request()
		c.hear("task_started 3", "notifications/progress")
		c.send(`{"id":4,"method":"tools/call","params":{"name":"codex-reply","arguments":{"prompt":"go","threadId":"C","whenBusy":"queue"},"_meta":{"progressToken":4}}}`)
		synctest.Wait()
		time.Sleep(silence + time.Second) // nothing happens, and both calls are told so
		synctest.Wait()
		progress := map[string]bool{}
		for range 2 {
			line, _ := c.next()
			progress[line] = true
		}
		for _, want := range []string{
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":2,"message":"working"}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":4,"progress":1,"message":"working"}}`,
		} {
			if !progress[want] {
				t.Errorf("not told: %s\ntold %v", want, progress)
			}
		}
		c.cancel("4")
		synctest.Wait()
		c.cancel("3")
		c.hear("background_event 3", "notifications/progress", "turn_aborted 3")
		c.next()
		time.Sleep(2 * silence)
		c.nothing() // no progress of what is over
	})
}

func TestConversationOfAnEarlierProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		c.begin("1")
		c.e.Request().Answer("one")
		c.skip("1")
		again := attach(t, enginetest.New(t, enginetest.Options{Store: c.e.Store}))
		if err := c.e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		again.id = c.id
		again.reply("1", "")
		again.e.Request().Answer("two")
		again.hear("task_started 2", "agent_message 2", "task_complete 2", "answer 1")
	})
}

func TestTheEndStopsAndAnswers(t *testing.T) {
	for name, end := range map[string]func(*client){
		"end of the stream": func(c *client) { c.in.Close() },
		"signal":            func(c *client) { c.stop(errors.New("stopped by SIGTERM")) },
		"stream broken":     func(c *client) { c.in.CloseWithError(io.ErrUnexpectedEOF) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, asks)
				c.begin("1")
				c.e.Request().Delta("half")
				synctest.Wait()
				end(c)
				c.hear("session_configured", "task_started 1", "agent_message_delta 1", "turn_aborted 1", "answer 1")
				<-c.ended
			})
		})
	}
}

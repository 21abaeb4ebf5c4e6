package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

// direct begins a conversation by the direct requests.
func direct(t *testing.T) *client {
	t.Helper()
	c := connect(t, "")
	c.send(`{"id":1,"method":"newConversation","params":{"cwd":"/w","approvalPolicy":"never","sandbox":"danger-full-access"}}`)
	c.want(`{"jsonrpc":"2.0","id":1,"result":{"conversationId":"C","model":"puppet"}}`)
	return c
}

// listen attaches a listener and returns its subscription.
func (c *client) listen(id string) string {
	c.t.Helper()
	c.send(`{"id":%s,"method":"addConversationListener","params":{"conversationId":"C"}}`, id)
	var got struct {
		Result struct{ SubscriptionID string }
	}
	if err := json.Unmarshal([]byte(c.skip(id)), &got); err != nil || got.Result.SubscriptionID == "" {
		c.t.Fatalf("addConversationListener: %+v, %v", got, err)
	}
	return got.Result.SubscriptionID
}

func (c *client) message(id, text string) {
	c.t.Helper()
	c.send(`{"id":%s,"method":"sendUserMessage","params":{"conversationId":"C","items":[{"type":"text","data":{"text":%q}}]}}`, id, text)
}

func (c *client) interrupt(id string) {
	c.t.Helper()
	c.send(`{"id":%s,"method":"interruptConversation","params":{"conversationId":"C"}}`, id)
}

// told turns what a listener is told into lines like those of an exact exchange.
func told(turn, m string) string {
	kind := strings.Split(strings.Split(m, `"type":"`)[1], `"`)[0]
	return `{"jsonrpc":"2.0","method":"codex/event/` + kind + `","params":{"id":"` + turn + `","msg":` + m + `,"conversationId":"C"}}`
}

const done = `{"abortReason":"interrupted"}`

func TestDirectFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		sub := c.listen("2")
		c.message("3", "hi")
		c.take("3")
		m := c.e.Request()
		m.Usage = nil
		m.Answer("Done")
		c.want(told("1", `{"type":"task_started","model_context_window":null}`), told("1", `{"type":"agent_message","message":"Done"}`), told("1", `{"type":"task_complete","last_agent_message":"Done"}`))
		c.send(`{"id":4,"method":"removeConversationListener","params":{"subscriptionId":%q}}`, sub)
		c.want(`{"jsonrpc":"2.0","id":4,"result":{}}`)
		c.message("5", "again")
		c.want(`{"jsonrpc":"2.0","id":5,"result":{}}`)
		c.e.Request().Answer("unheard")
		c.nothing()
		c.send(`{"id":6,"method":"removeConversationListener","params":{"subscriptionId":%q}}`, sub)
		c.want(`{"jsonrpc":"2.0","id":6,"error":{"code":-32600,"message":"unknown subscription: ` + sub + `"}}`)
	})
}

func TestInterruptIsAnsweredAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.listen("2")
		c.listen("3")
		c.message("4", "work")
		c.take("4")
		m := c.e.Request()
		m.Call("c", "work", "immortal")
		m.End()
		run := c.e.Run()
		synctest.Wait()
		c.hear("task_started 1", "task_started 1")
		for len(c.lines) > 0 {
			c.next()
		}
		c.interrupt("5")
		c.interrupt("6")
		<-run.Ctx.Done()
		c.nothing()
		run.Finish("at last")
		aborted := told("1", `{"type":"turn_aborted","reason":"interrupted"}`)
		c.want(aborted, aborted) // each listener, before the answers
		answers := map[string]bool{}
		for range 2 {
			line, _ := c.next()
			answers[line] = true
		}
		if d := cmp.Diff(map[string]bool{`{"jsonrpc":"2.0","id":5,"result":` + done + `}`: true, `{"jsonrpc":"2.0","id":6,"result":` + done + `}`: true}, answers); d != "" {
			t.Errorf("answers (-want +got):\n%s", d)
		}
		c.interrupt("7")
		c.want(`{"jsonrpc":"2.0","id":7,"result":{"abortReason":null}}`)
	})
}

// A message and its interrupt in one breath: the interrupt is for that turn.
func TestInterruptRightBehindTheMessage(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			c := direct(t)
			c.message("2", "work")
			c.interrupt("3") // and no client listens
			c.want(`{"jsonrpc":"2.0","id":2,"result":{}}`, `{"jsonrpc":"2.0","id":3,"result":`+done+`}`)
			c.e.Idle()
		})
	}
}

func TestMessagesAreQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.message("2", "one")
		c.message("3", "two")
		c.want(`{"jsonrpc":"2.0","id":2,"result":{}}`, `{"jsonrpc":"2.0","id":3,"result":{}}`)
		c.listen("4")
		c.e.Request().Answer("1")
		second := c.e.Request()
		if got := second.Inputs(); got[len(got)-1] != "user two" {
			t.Errorf("the model was told %q", got)
		}
		second.Answer("2")
		c.hear("task_started 1", "agent_message 1", "task_complete 1", "task_started 2", "agent_message 2", "task_complete 2")
	})
}

func TestListenerGetsWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.message("2", "one")
		c.take("2")
		m := c.e.Request()
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("rm", "x")
		synctest.Wait()
		c.listen("3")
		c.hear("task_started 1", "exec_approval_request 1", "execCommandApproval")
		c.nothing()
		c.listen("4") // a client is asked once, however many listeners it has
		c.hear("task_started 1", "exec_approval_request 1")
		c.nothing()
		c.send(`{"id":0,"result":{"decision":"approved"}}`)
		c.e.Run().Finish("removed")
		c.e.Request().Answer("done")
		synctest.Wait()
		counts := map[string]int{}
		for len(c.lines) > 0 {
			_, h := c.next()
			counts[h.Method]++
		}
		if d := cmp.Diff(map[string]int{"codex/event/agent_message": 2, "codex/event/token_count": 2, "codex/event/task_complete": 2}, counts); d != "" {
			t.Errorf("two listeners (-want +got):\n%s", d)
		}
		c.listen("5")
		c.hear("task_started 1", "exec_approval_request 1", "agent_message 1", "task_complete 1")
		c.nothing() // what was approved is not asked again
	})
}

func TestResolvedApprovalIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.message("2", "one")
		c.take("2")
		m := c.e.Request()
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("rm", "x")
		synctest.Wait()
		c.e.Must(p.ConversationID(c.id), p.Approve{Call: p.CallID{Turn: 1, Response: 1}, Decision: p.Approved})
		c.e.Run() // it runs, and the turn goes on
		c.listen("3")
		c.hear("task_started 1", "exec_approval_request 1")
		c.nothing()
	})
}

func TestDirectApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.listen("2")
		c.message("3", "one")
		c.take("3")
		m := c.e.Request()
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("rm", "x")
		c.hear("task_started 1", "exec_approval_request 1")
		c.want(`{"jsonrpc":"2.0","id":0,"method":"execCommandApproval","params":{"conversation_id":"C","call_id":"call_1","command":["rm","x"],"reason":"why not"}}`)
		c.send(`{"id":0,"error":{"code":1,"message":"what?"}}`)
		c.e.Request().Answer("then not")
		c.hear("agent_message 1", "task_complete 1")
	})
	patch := &p.ApprovalRequested{Kind: p.ApprovePatch, Cwd: "/w", Detail: json.RawMessage(`{"/w/a":"delete"}`)}
	method, params := directApproval("C", question{ApprovalRequested: patch, turn: 1, wireID: "call_2"})
	got, _ := json.Marshal(params)
	if want := `{"conversation_id":"C","call_id":"call_2","file_changes":{"/w/a":"delete"}}`; method != "applyPatchApproval" || string(got) != want {
		t.Errorf("%s %s, want %s", method, got, want)
	}
}

func TestDirectErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		const nobody = "00000000-0000-0000-0000-000000000000"
		for _, x := range []struct {
			method, params string
			code           string
		}{
			{"newConversation", `{"model":"bad"}`, "-32600"},
			{"newConversation", `{"model":7}`, "-32602"},
			{"sendUserMessage", `{"conversationId":"` + nobody + `","items":[]}`, "-32600"},
			{"sendUserMessage", `{"conversationId":"x","items":[]}`, "-32600"},
			{"sendUserMessage", `{"conversationId":"C"}`, "-32602"},
			{"sendUserMessage", `{"conversationId":"C","items":[]}`, "-32602"},
			{"sendUserMessage", `{"conversationId":"C","items":[{"type":"sound"}]}`, "-32602"},
			{"sendUserMessage", `{"conversationId":"C","items":[{"type":"localImage","data":{"path":"/no/such"}}]}`, "-32602"},
			{"sendUserTurn", `{"conversationId":"C","items":[]}`, "-32602"},
			{"sendUserTurn", `{"conversationId":"C","items":[{"type":"text","text":"x"}],"cwd":"/w","approvalPolicy":"perhaps","sandboxPolicy":{"mode":"read-only"},"model":"m"}`, "-32602"},
			{"sendUserTurn", `{"conversationId":"C","items":[{"type":"text","text":"x"}],"cwd":"/w","approvalPolicy":"never","sandboxPolicy":{"mode":"cardboard"},"model":"m"}`, "-32602"},
			{"sendUserTurn", `{"conversationId":"C","items":[{"type":"text","text":"x"}],"cwd":"/w","approvalPolicy":"never","sandboxPolicy":{},"model":"m"}`, "-32602"},
			{"sendUserTurn", `{"conversationId":"C","items":[{"type":"text","text":"x"}],"cwd":"/w","approvalPolicy":"","sandboxPolicy":{"mode":"read-only"},"model":"m"}`, "-32602"},
			{"execOneOffCommand", `{"command":["x"],"sandboxPolicy":{"mode":"cardboard"}}`, "-32602"},
			{"newConversation", `{"sandbox":"cardboard"}`, "-32602"},
			{"interruptConversation", `{"conversationId":"` + nobody + `"}`, "-32600"},
			{"addConversationListener", `{"conversationId":"` + nobody + `"}`, "-32600"},
			{"resumeConversation", `{"path":"/no/such"}`, "-32600"},
			{"resumeConversation", `{"conversationId":"` + nobody + `"}`, "-32600"},
			{"archiveConversation", `{"conversationId":"` + nobody + `"}`, "-32600"},
			{"listConversations", `{"cursor":"what"}`, "-32600"},
			{"loginChatGpt", `{}`, "-32600"},
		} {
			c.send(`{"id":9,"method":%q,"params":%s}`, x.method, x.params)
			if got := c.skip("9"); !strings.Contains(got, `"error":{"code":`+x.code) {
				t.Errorf("%s %s: %s, want %s", x.method, x.params, got, x.code)
			}
		}
		c.e.Idle()
	})
}

func TestUserTurnChangesSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.send(`{"id":2,"method":"sendUserTurn","params":{"conversationId":"C","items":[{"type":"text","data":{"text":"x"}}],"cwd":"/v","approvalPolicy":"untrusted",` +
			`"sandboxPolicy":{"mode":"workspace-write","network_access":true},"model":"other","effort":"low","summary":"auto"}}`)
		c.want(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		c.e.Request().Answer("ok")
		snap, err := c.e.Resume(t.Context(), p.ConversationID(c.id))
		if err != nil {
			t.Fatal(err)
		}
		want := p.Settings{
			Cwd: "/v", Model: "other", Effort: "low", Summary: "auto", Approval: p.ApprovalUntrusted,
			Sandbox: p.SandboxPolicy{Mode: p.SandboxWorkspaceWrite, NetworkAccess: true},
		}
		if d := cmp.Diff(want, snap.Settings); d != "" {
			t.Errorf("settings (-want +got):\n%s", d)
		}
	})
}

// A turn names its directory and model as a request does.
func TestUserTurnSomewhereElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		for i, x := range []struct{ cwd, model, wantCwd, wantModel string }{
			{"", "", "/w", "puppet"},
			{"sub", "other", "/server/sub", "other"},
			{"", "", "/server/sub", "other"},
			{"/v", "", "/v", "other"},
		} {
			c.send(`{"id":%d,"method":"sendUserTurn","params":{"conversationId":"C","items":[{"type":"text","data":{"text":"x"}}],"cwd":%q,"approvalPolicy":"never",`+
				`"sandboxPolicy":{"mode":"read-only"},"model":%q,"effort":null,"summary":"auto"}}`, i+2, x.cwd, x.model)
			c.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i+2))
			c.e.Request().Answer("ok")
			synctest.Wait()
			snap, err := c.e.Resume(t.Context(), p.ConversationID(c.id))
			if err != nil || snap.Settings.Cwd != x.wantCwd || snap.Settings.Model != x.wantModel {
				t.Errorf("%q, %q: %+v, %v", x.cwd, x.model, snap.Settings, err)
			}
		}
	})
}

func TestListResumeArchive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.message("2", "remember me")
		c.skip("2")
		c.e.Request().Answer("I do")
		synctest.Wait()
		c.send(`{"id":3,"method":"listConversations"}`)
		if got := c.skip("3"); !strings.Contains(got, `"preview":"remember me"`) || !strings.Contains(got, `"conversationId":"C"`) || strings.Contains(got, "nextCursor") {
			t.Error(got)
		}
		other := attach(t, c.e)
		other.id = c.id
		other.send(`{"id":1,"method":"resumeConversation","params":{"conversationId":"C","overrides":{"model":"other"}}}`)
		other.want(`{"jsonrpc":"2.0","method":"codex/event","params":{"id":"","msg":{"type":"session_configured","session_id":"C","model":"other","history_log_id":0,"history_entry_count":0}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"conversationId":"C","model":"other","initialMessages":[{"type":"user_message","message":"remember me","kind":"plain"},{"type":"agent_message","message":"I do"}]}}`)
		other.listen("2") // hears only what comes from here on
		other.nothing()
		c.message("4", "more")
		c.e.Request().Answer("yes")
		other.hear("task_started 2", "agent_message 2", "task_complete 2")
		c.skip("4")
		c.send(`{"id":5,"method":"archiveConversation","params":{"conversationId":"C"}}`)
		c.want(`{"jsonrpc":"2.0","id":5,"result":{}}`)
		c.send(`{"id":6,"method":"listConversations"}`)
		c.want(`{"jsonrpc":"2.0","id":6,"result":{"items":[]}}`)
	})
}

func TestResumeTellsNothingThatWasTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		for i, text := range []string{"keep", "drop", "drop, too"} {
			c.message(strconv.Itoa(i+2), text)
			c.e.Request().Answer(text + "ped")
			synctest.Wait()
		}
		c.e.Must(p.ConversationID(c.id), p.Revert{Before: 2})
		c.drain()
		c.send(`{"id":9,"method":"resumeConversation","params":{"conversationId":"C"}}`)
		const want = `"initialMessages":[{"kind":"plain","message":"keep","type":"user_message"},{"message":"keepped","type":"agent_message"}]}}`
		if got := c.skip("9"); !strings.HasSuffix(got, want) {
			t.Errorf("got %s", got)
		}
	})
}

func TestEndTellsListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.listen("2")
		c.message("3", "work")
		c.take("3")
		m := c.e.Request()
		c.hear("task_started 1")
		c.in.Close()
		m.Stopped()
		c.hear("turn_aborted 1")
		if err := <-c.ended; err != nil {
			t.Error(err)
		}
	})
}

// A turn that only waits for a person goes on waiting when the client goes.
func TestEndWhileADirectApprovalIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.listen("2")
		c.message("3", "work")
		c.take("3")
		m := c.e.Request()
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("rm", "x")
		c.hear("task_started 1", "exec_approval_request 1", "execCommandApproval")
		c.in.Close()
		if err := <-c.ended; err != nil {
			t.Error(err)
		}
		snap, err := c.e.Resume(t.Context(), p.ConversationID(c.id))
		if err != nil || !snap.Waiting {
			t.Errorf("the turn waits no more: %+v, %v", snap, err)
		}
	})
}

func TestWhoAmI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, "")
		c.send(`{"id":1,"method":"getUserAgent"}`)
		c.want(`{"jsonrpc":"2.0","id":1,"result":{"userAgent":"fermata/1.2.3"}}`)
		c.send(`{"id":2,"method":"getAuthStatus","params":{"includeToken":true}}`)
		c.want(`{"jsonrpc":"2.0","id":2,"result":{"preferredAuthMethod":"apikey"}}`)
		c.local.key = "k"
		c.send(`{"id":3,"method":"getAuthStatus","params":{}}`)
		c.want(`{"jsonrpc":"2.0","id":3,"result":{"authMethod":"apikey","preferredAuthMethod":"apikey"}}`)
		c.send(`{"id":4,"method":"getAuthStatus","params":{"includeToken":true,"refreshToken":false}}`)
		c.want(`{"jsonrpc":"2.0","id":4,"result":{"authMethod":"apikey","preferredAuthMethod":"apikey","authToken":"k"}}`)
	})
}

func TestItems(t *testing.T) {
	dir := t.TempDir()
	png := "\x89PNG\r\n\x1a\nrest"
	if err := os.WriteFile(filepath.Join(dir, "a.png"), []byte(png), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	var items []item
	if err := json.Unmarshal([]byte(`[{"type":"text","data":{"text":"a"}},{"type":"text","text":"b"},{"type":"image","data":{"image_url":"u"}},{"type":"local_image","path":"a.png"}]`), &items); err != nil {
		t.Fatal(err)
	}
	got, err := contents(items, dir)
	want := []p.Content{
		{Type: p.ContentText, Text: "a"},
		{Type: p.ContentText, Text: "b"},
		{Type: p.ContentImage, ImageURL: "u"},
		{Type: p.ContentImage, ImageURL: "data:image/png;base64,iVBORw0KGgpyZXN0"},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, it := range map[string]item{
		"a text":                  {Type: "localImage", Data: &itemData{Path: "a.txt"}},
		"a pipe without a writer": {Type: "localImage", Data: &itemData{Path: "pipe"}},
		"an image without a name": {Type: "image", Data: &itemData{}},
	} {
		if _, err := contents([]item{it}, dir); err == nil {
			t.Errorf("%s was taken for an image", name)
		}
	}
}

// A message that was not delivered is in the answer to resumeConversation until it is sent.
func TestReturnedMessagesInResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.message("2", "go")
		c.skip("2")
		c.e.Request()
		c.message("3", "late")
		c.skip("3")
		c.send(`{"id":4,"method":"interruptConversation","params":{"conversationId":"C"}}`)
		c.skip("4")
		c.message("5", "another")
		c.skip("5")
		c.e.Request().Answer("ok")
		synctest.Wait()
		c.send(`{"id":6,"method":"resumeConversation","params":{"conversationId":"C"}}`)
		if got := c.skip("6"); !strings.Contains(got, `"returned":[{"id":2,"text":"late"}]`) {
			t.Error(got)
		}
		const send = `{"id":%d,"method":"sendUserMessage","params":{"conversationId":"C","items":[],"returned":[2]}}`
		c.send(send, 7)
		c.skip("7")
		r := c.e.Request()
		if got := r.Inputs(); got[len(got)-1] != "user late" {
			t.Errorf("the model is sent %q", got)
		}
		c.send(send, 8)
		if got := c.skip("8"); !strings.Contains(got, "no longer returned") {
			t.Error(got)
		}
		r.Answer("done")
		synctest.Wait()
		c.send(`{"id":9,"method":"resumeConversation","params":{"conversationId":"C"}}`)
		if got := c.skip("9"); strings.Contains(got, "returned") {
			t.Error(got)
		}
	})
}

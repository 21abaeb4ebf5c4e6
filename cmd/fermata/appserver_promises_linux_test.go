package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// checkLog checks what holds of every turn that a client has seen: each item that starts ends before its turn, each question is
// resolved before it, and nothing of the turn comes after its end.
func checkLog(t *testing.T, log []string) {
	t.Helper()
	open, asked, over := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, line := range log {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		method, _ := m["method"].(string)
		turn, _ := within(m, "params", "turnId").(string)
		if over[turn] && method != "thread/tokenUsage/updated" { // which a client that attaches is sent
			t.Errorf("after the end of its turn: %s", line)
		}
		switch {
		case method == "item/started":
			open[fmt.Sprint(within(m, "params", "item", "id"))] = true
		case method == "item/completed":
			delete(open, fmt.Sprint(within(m, "params", "item", "id")))
		case method != "" && m["id"] != nil:
			asked[fmt.Sprint(m["id"])] = true
		case method == "serverRequest/resolved":
			delete(asked, fmt.Sprint(within(m, "params", "requestId")))
		case method == "turn/completed":
			over[fmt.Sprint(within(m, "params", "turn", "id"))] = true
			if len(open)+len(asked) > 0 {
				t.Errorf("at the end of a turn these are open: %v %v", open, asked)
			}
		}
	}
}

// An interrupt is valid from the answer to turn/start on, and is answered after the end of the turn, also while an approval is pending; a steer that
// was acknowledged and not delivered is returned.
func TestAppServerInterruptAnywhere(t *testing.T) {
	t.Parallel()
	onBoth(t, []string{"-c", `approval_policy="untrusted"`}, func(t *testing.T, _ *place, c *appClient) {
		c.start()
		interrupt := func(turn string) map[string]any {
			id := c.ask("turn/interrupt", fmt.Sprintf(`{"threadId":"T","turnId":%q}`, turn))
			done := c.await("turn/completed")
			c.answer(id)
			if got := fmt.Sprint(within(done, "params", "turn", "status"), " ", within(done, "params", "turn", "abortReason")); got != "interrupted interrupted" {
				t.Errorf("the turn is %s", got)
			}
			return done
		}
		interrupt(c.say("talk 500"))

		turn := c.say("run: touch never")
		q := c.await("item/commandExecution/requestApproval")
		interrupt(turn)
		c.send(fmt.Sprintf(`{"id":%q,"result":{"decision":"accept"}}`, q["id"])) // too late

		turn = c.say("run: touch declined")
		q = c.await("item/commandExecution/requestApproval")
		c.send(fmt.Sprintf(`{"id":%q,"result":{"decision":"cancel"}}`, q["id"]))
		if done := c.await("turn/completed"); within(done, "params", "turn", "status") != "interrupted" || within(done, "params", "turn", "id") != turn {
			t.Errorf("cancel: %v", done)
		}
		list := fmt.Sprint(c.result("thread/items/list", `{"threadId":"T","limit":100}`))
		contains(t, "the items", list, "touch declined", "status:declined", "touch never")

		turn = c.say("talk 500")
		c.await("item/agentMessage/delta")
		c.result("turn/steer", fmt.Sprintf(`{"threadId":"T","expectedTurnId":%q,"clientUserMessageId":"late","input":[{"type":"text","text":"and this"}]}`, turn))
		contains(t, "returned", fmt.Sprint(within(interrupt(turn), "params", "turn", "returnedInput")), "late", "and this")
	})
}

// Who attaches in the middle of a turn gets the output so far, the approval that is pending, with the same id, and the rest.
func TestAppServerAttach(t *testing.T) {
	t.Parallel()
	onBoth(t, []string{"-c", `approval_policy="untrusted"`}, func(t *testing.T, pl *place, c *appClient) {
		c.start()
		c.say("run: echo seen; until test -e go; do sleep 0.05; done; echo rest")
		q := c.await("item/commandExecution/requestApproval")
		if r := c.result("thread/resume", `{"threadId":"T"}`); r["seq"] == nil {
			t.Errorf("no seq in %v", r)
		}
		again := c.await("item/commandExecution/requestApproval")
		if q["id"] != again["id"] {
			t.Errorf("asked as %v and as %v", q["id"], again["id"])
		}
		c.send(fmt.Sprintf(`{"id":%q,"result":{"decision":"accept"}}`, q["id"]))
		c.await("item/commandExecution/outputDelta")
		status, texts := itemTexts(c.result("thread/resume", `{"threadId":"T"}`)["thread"])
		if !strings.HasPrefix(status, "inProgress") || !strings.Contains(texts, "seen") {
			t.Errorf("the turn is %s: %s", status, texts)
		}
		if err := os.WriteFile(filepath.Join(pl.work, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.await("turn/completed")
		contains(t, "the messages", strings.Join(c.log, ""), `"aggregatedOutput":"seen\nrest\n"`)
		read := c.result("thread/read", `{"threadId":"T","includeTurns":true}`)
		if status, texts := itemTexts(read["thread"]); status != "completed <nil>" || !strings.Contains(texts, "rest") {
			t.Errorf("the turn is %s: %s", status, texts)
		}
	})
}

// Whatever is wrong with a request is answered with the code for it, and the connection lives.
func TestAppServerCodes(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, _ *place, c *appClient) {
		c.start()
		none := "01a1e3a1-2176-725a-9c46-eb164d150ff5"
		for _, tt := range []struct{ method, params, want string }{
			{"no/such", `{}`, "-32601"},
			{"initialize", `{"clientInfo":{"name":"t","version":"1"}}`, "-32600 Already initialized"},
			{"turn/start", `{"threadId":"T"}`, "-32602"},
			{"turn/start", fmt.Sprintf(`{"threadId":%q,"input":[{"type":"text","text":"x"}]}`, none), "-32600 thread not found: " + none},
			{"thread/read", fmt.Sprintf(`{"threadId":%q}`, none), "-32600 thread not loaded: " + none},
			{"thread/resume", fmt.Sprintf(`{"threadId":%q}`, none), "-32600 no rollout found for thread id " + none},
			{"turn/interrupt", `{"threadId":"T","turnId":""}`, "-32600 no active turn to interrupt"},
			{"turn/steer", `{"threadId":"T","expectedTurnId":"x","input":[{"type":"text","text":"x"}]}`, "-32600 no active turn to steer"},
		} {
			if got := c.refused(tt.method, tt.params); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s: %s", tt.method, got)
			}
		}
		c.send(`{"id":`)
		if m := c.next("an answer"); m["id"] != nil || within(m, "error", "code") != float64(-32700) {
			t.Errorf("half a message: %v", m)
		}
		c.say("run: echo lives")
		c.await("turn/completed")
	})
}

// A turn that fails says so before its end, and the next one is run.
func TestAppServerFailedTurn(t *testing.T) {
	t.Parallel()
	args := []string{
		"-c", `model_providers.none.base_url="http://127.0.0.1:1"`, "-c", `model_providers.none.name="none"`,
		"-c", `model_providers.none.request_max_retries=0`, "-c", `model_providers.none.stream_max_retries=0`,
	}
	onBoth(t, args, func(t *testing.T, _ *place, c *appClient) {
		c.thread, _ = within(c.result("thread/start", `{"model":"m","modelProvider":"none"}`), "thread", "id").(string)
		c.say("hi")
		c.await("error")
		if done := c.await("turn/completed"); within(done, "params", "turn", "status") != "failed" || within(done, "params", "turn", "error", "message") == nil {
			t.Errorf("the turn: %v", done)
		}
		contains(t, "the messages", strings.Join(c.log, ""), `"willRetry":false`, `{"type":"systemError"}`)
	})
}

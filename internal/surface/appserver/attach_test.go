package appserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// join resumes the thread of another client.
func (x *site) join(other *client) (*client, map[string]any) {
	x.t.Helper()
	c := x.connect()
	c.id = other.id
	return c, c.result("thread/resume", `{"threadId":"T","excludeTurns":true}`)
}

// Whoever resumes in the middle of a turn gets what there is, and then what happens: a message that is not finished in one
// piece, a command with its output so far, the approvals that are open.
func TestAttachInTheMiddle(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		a := x.connect()
		a.start()
		a.say("hi")
		r := x.e.Request()
		r.Message("before")
		r.Delta("one ")
		synctest.Wait()
		r.Delta("two ")
		a.until("delta 1.1.1 two")

		b, got := x.join(a)
		same(t, []string{"U1 inProgress; userMessage; agentMessage before"}, b.turns(got["thread"]))
		if at(got, "thread", "status", "type") != "active" || got["seq"].(float64) < 4 {
			t.Errorf("answer %v", got)
		}
		b.want("item/started agentMessage 1.1.1", "delta 1.1.1 one two ")
		r.Delta("three")
		r.Message("one two three")
		r.Call("w", "work", "")
		r.End()
		b.want("delta 1.1.1 three", "item/completed agentMessage 1.1.1 one two three")
		run := x.e.Run()
		if err := run.Call.Host.Record(run.Ctx, &p.CommandStarted{Call: run.Call.ID, Command: []string{"make"}, Cwd: "/w"}); err != nil {
			t.Fatal(err)
		}
		run.Print("cc \xe2\x82") // half of a character
		b.want("item/started commandExecution 1.1.2 make inProgress", "delta 1.1.2 cc ")

		c, got := x.join(a)
		same(t, []string{"U1 inProgress; userMessage; agentMessage before; agentMessage one two three; commandExecution inProgress cc "}, c.turns(got["thread"]))
		run.Print("\xac a.c\n")
		for _, cl := range []*client{b, c} {
			cl.until("delta 1.1.2 € a.c\n")
		}
		run.Question(p.ApprovalRequested{Kind: p.ApproveCommand, Command: []string{"make", "install"}, Tried: &p.CommandResult{Output: "cc € a.c\n"}})
		for _, cl := range []*client{b, c} {
			cl.want("status active [\"waitingOnApproval\"]", "ask 1.1.2 make install")
		}
		d, got := x.join(a)
		same(t, []string{"U1 inProgress; userMessage; agentMessage before; agentMessage one two three; commandExecution inProgress cc € a.c\n"}, d.turns(got["thread"]))
		d.until("ask 1.1.2 make install")
		if b.last["id"] != d.last["id"] {
			t.Errorf("the approval has the ids %v and %v", b.last["id"], d.last["id"])
		}
	})
}

// Everybody who follows is asked, the first answer counts, and everybody hears that it is over.
func TestApprovals(t *testing.T) {
	for name, tt := range map[string]struct{ answer, end string }{
		"accept":  {`"result":{"decision":"accept"}`, ""},
		"session": {`"result":{"decision":"acceptForSession"}`, ""},
		"decline": {`"result":{"decision":"decline"}`, "item/completed commandExecution 1.1.0 rm x declined"},
		"cancel":  {`"result":{"decision":"cancel"}`, "item/completed commandExecution 1.1.0 rm x declined"},
		"object":  {`"result":{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["rm"]}}}`, "item/completed commandExecution 1.1.0 rm x declined"},
		"network": {`"result":{"decision":{"applyNetworkPolicyAmendment":{"network_policy_amendment":{"host":"h","action":"allow"}}}}`, "item/completed commandExecution 1.1.0 rm x declined"},
		"unknown": {`"result":{"decision":"perhaps"}`, "item/completed commandExecution 1.1.0 rm x declined"},
		"error":   {`"error":{"code":-32601,"message":"what?"}`, "item/completed commandExecution 1.1.0 rm x declined"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, x *site) {
				a := x.connect()
				a.start()
				b, _ := x.join(a)
				a.say("hi")
				x.command("work", "")
				x.e.Run().Ask("rm", "x")
				a.until("ask 1.1.0 rm x")
				b.until("ask 1.1.0 rm x")
				id := a.last["id"]
				b.send(`{"id":%q,%s}`, id, tt.answer)
				if tt.end == "" {
					x.e.Run().Return(p.ToolOutput{Output: "gone"})
					x.e.Request().Answer("done")
				} else if name != "cancel" {
					x.e.Request().Answer("done")
				}
				for _, c := range []*client{a, b} {
					got := c.until("turn/completed")
					if all := strings.Join(got, "|"); !strings.Contains(all, "resolved T/1.1.0/") || !strings.Contains(all, tt.end) ||
						(name == "cancel") != strings.Contains(all, "interrupted") {
						t.Errorf("got %q", got)
					}
				}
				a.send(`{"id":%q,"result":{"decision":"accept"}}`, id) // too late: ignored
				a.nothing()
				got := a.result("thread/items/list", `{"threadId":"T","sortDirection":"asc"}`)
				if list := fmt.Sprint(got["data"]); !strings.Contains(list, "commandExecution") {
					t.Errorf("the command is missing in %s", list)
				}
			})
		})
	}
}

// A client can allow commands that begin like the one it is asked about for good, but only as was offered.
func TestApprovalForGood(t *testing.T) {
	for name, tt := range map[string]struct {
		amendment string
		cantSave  error
		want      string // of what happens then
		saved     string
	}{
		"offered":     {`{"execpolicy_amendment":["go","test"]}`, nil, "", "go test in /w"},
		"not offered": {`{"execpolicy_amendment":["go"]}`, nil, `the decision "acceptWithExecpolicyAmendment" was not offered`, ""},
		"unreadable":  {`{"execpolicy_amendment":"go test"}`, nil, `the decision "acceptWithExecpolicyAmendment" was not offered`, ""},
		"not saved":   {`{"execpolicy_amendment":["go","test"]}`, errors.New("the disk is full"), "allowed this time only, since `go test` could not be saved: the disk is full", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, x *site) {
				x.cantSave = tt.cantSave
				c := x.connect()
				c.start()
				c.say("hi")
				x.command("work", "")
				x.e.Run().Ask("go", "test", "./...")
				c.until("ask 1.1.0 go test ./...")
				params, _ := json.Marshal(c.last["params"])
				if !strings.Contains(string(params), `"availableDecisions":["accept","acceptForSession",{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["go","test"]}},"decline","cancel"]`) ||
					!strings.Contains(string(params), `"proposedExecpolicyAmendment":["go","test"]`) {
					t.Errorf("asked %s", params)
				}
				c.send(`{"id":%q,"result":{"decision":{"acceptWithExecpolicyAmendment":%s}}}`, c.last["id"], tt.amendment)
				refused := strings.Contains(tt.want, "not offered")
				if !refused {
					x.e.Run().Return(p.ToolOutput{Output: "ok"})
				}
				x.e.Request().Answer("done")
				all := strings.Join(c.until("turn/completed"), "|")
				if tt.want != "" && !strings.Contains(all, "warning") { // it is sent beside the turn, and may come later
					all += "|" + strings.Join(c.until("warning"), "|")
				}
				if !strings.Contains(all, tt.want) || refused != strings.Contains(all, "declined") || tt.want == "" && strings.Contains(all, "warning") {
					t.Errorf("got %q", all)
				}
				if saved := strings.Join(x.allowed, "|"); saved != tt.saved {
					t.Errorf("saved %q, want %q", saved, tt.saved)
				}
			})
		})
	}
}

// An approval is kept while nobody is attached, and an interrupt resolves it before the turn completes.
func TestApprovalWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		a := x.connect()
		a.start()
		a.say("hi")
		x.command("work", "")
		x.e.Run().Ask("rm", "x")
		a.until("ask")
		a.in.Close()
		<-a.ended
		time.Sleep(time.Hour)
		b, _ := x.join(a)
		b.until("ask 1.1.0 rm x")
		b.ask("turn/interrupt", `{"threadId":"T","turnId":"U1"}`)
		got := b.until("answer 3")
		if all := strings.Join(got, "|"); !strings.HasPrefix(all, "resolved") || !strings.Contains(all, "|turn/completed U1 interrupted interrupted|answer 3") {
			t.Errorf("got %q", got)
		}
	})
}

// A turn goes on when its client goes; the only client of a process takes it along, and is sent its end.
func TestTheEndOfAConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		a := x.connect()
		a.start()
		a.say("hi")
		r := x.e.Request()
		r.Delta("text")
		a.until("delta")
		a.in.Close()
		if err := <-a.ended; err != nil {
			t.Error(err)
		}
		b, got := x.join(a)
		same(t, []string{"U1 inProgress; userMessage"}, b.turns(got["thread"]))
		r.Answer("text, finished")
		b.until("turn/completed U1 completed")
	})
	inBubble(t, func(t *testing.T, x *site) {
		c := x.dial(Only)
		c.result("initialize", `{"clientInfo":{"name":"t","version":"1"}}`)
		c.start()
		c.say("hi")
		x.e.Request().Delta("text")
		c.until("delta")
		c.in.Close()
		c.until("turn/completed U1 interrupted")
		if err := <-c.ended; err != nil {
			t.Error(err)
		}
	})
}

// A new server after a crash has the turn, with what was seen of it, and the next one works.
func TestAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemoryStore(journal.MemoryOptions{})
		x := newSiteWith(t, enginetest.New(t, enginetest.Options{Store: store}))
		a := x.connect()
		a.start()
		a.say("hi")
		x.e.Request().Delta("half a ")
		a.until("delta")
		time.Sleep(time.Minute) // it is on disk
		x.e.Kill()
		y := newSiteWith(t, enginetest.New(t, enginetest.Options{Store: store}))
		b, got := y.join(a)
		same(t, []string{"U1 interrupted crashed; userMessage; agentMessage half a "}, b.turns(got["thread"]))
		b.say("again")
		y.e.Request().Answer("whole")
		b.until("turn/completed U2 completed")
	})
}

// A thread that has only been started can be resumed by a new server.
func TestResumeBeforeTheFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemoryStore(journal.MemoryOptions{})
		x := newSiteWith(t, enginetest.New(t, enginetest.Options{Store: store}))
		a := x.connect()
		a.start()
		x.e.Kill()
		y := newSiteWith(t, enginetest.New(t, enginetest.Options{Store: store}))
		b, got := y.join(a)
		if turns := b.turns(got["thread"]); len(turns) != 0 {
			t.Errorf("turns %q", turns)
		}
		if got := b.refused("thread/resume", `{"threadId":"01a1e3a1-2176-725a-9c46-eb164d150ff5"}`); got != "-32600 no rollout found for thread id 01a1e3a1-2176-725a-9c46-eb164d150ff5" {
			t.Error(got)
		}
	})
}

// A late answer to one question does not answer the next one about the same call.
func TestLateAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		a := x.connect()
		a.start()
		b, _ := x.join(a)
		a.say("hi")
		x.command("work", "")
		x.e.Run().Ask("rm", "x")
		a.until("ask")
		b.until("ask")
		first := b.last["id"]
		a.send(`{"id":%q,"result":{"decision":"accept"}}`, a.last["id"])
		x.e.Run().Ask("rm", "-f", "x") // it failed in the sandbox
		b.until("ask 1.1.0 rm -f x")
		if b.last["id"] == first {
			t.Error("two questions have the same id")
		}
		b.send(`{"id":%q,"result":{"decision":"accept"}}`, first)
		x.e.Idle()
		b.nothing()
		b.send(`{"id":%q,"result":{"decision":"accept"}}`, b.last["id"])
		x.e.Run().Finish("gone")
		x.e.Request().Answer("done")
		b.until("turn/completed U1 completed")
	})
}

// Two threads ask with the same turn and call: each answer belongs to the request with its id.
func TestAnAnswerBelongsToItsRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		ask := func(command string) (*client, any) {
			c := x.connect()
			c.start()
			c.say("hi")
			x.command("work", "")
			x.e.Run().Ask("rm", command)
			c.until("ask 1.1.0 rm " + command)
			return c, c.last["id"]
		}
		a, first := ask("a")
		b, second := ask("b")
		if first == second {
			t.Fatalf("both requests have the id %v", first)
		}
		b.send(`{"id":%q,"result":{"decision":"decline"}}`, second)
		x.e.Request().Answer("done")
		b.until("turn/completed") // it was this one's, which asked last
		a.send(`{"id":%q,"result":{"decision":"decline"}}`, first)
		x.e.Request().Answer("done")
		a.until("turn/completed")
	})
}

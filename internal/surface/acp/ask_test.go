package acp

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// Each answer to a request for permission means what it says; whatever was not offered is a no, and the turn goes on with it.
func TestPermission(t *testing.T) {
	for name, tt := range map[string]struct {
		answer  string
		grant   p.Decision // what the call runs with; empty: it does not run
		stopped bool       // the turn ends
		output  string     // what the model is sent if the call does not run
	}{
		"once":               {`"result":{"outcome":{"outcome":"selected","optionId":"approved"}}`, p.Approved, false, ""},
		"for the session":    {`"result":{"outcome":{"outcome":"selected","optionId":"approved_for_session"}}`, p.ApprovedForSession, false, ""},
		"always":             {`"result":{"outcome":{"outcome":"selected","optionId":"allow_prefix"}}`, p.Approved, false, ""},
		"no":                 {`"result":{"outcome":{"outcome":"selected","optionId":"denied"}}`, "", false, "rejected by the user"},
		"stop":               {`"result":{"outcome":{"outcome":"selected","optionId":"abort"}}`, "", true, ""},
		"cancelled":          {`"result":{"outcome":{"outcome":"cancelled"}}`, "", true, ""},
		"not offered":        {`"result":{"outcome":{"outcome":"selected","optionId":"yes!"}}`, "", false, "not one of those offered"},
		"error":              {`"error":{"code":-32603,"message":"what?"}`, "", false, "could not answer"},
		"no answer at all":   {`"result":"yes"`, "", false, "could not be read"},
		"neither the one...": {`"result":{}`, "", false, "not one of those offered"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, x *site) {
				c := x.connect()
				c.start()
				c.say("hi")
				x.command().Ask("make", "install")
				c.until("permission 1.1.0 make install: approved approved_for_session allow_prefix denied abort")
				c.wrong()
				id := c.last["id"]
				c.send(`{"jsonrpc":"2.0","id":%v,%s}`, id, tt.answer)
				switch {
				case tt.grant != "":
					run := x.e.Run()
					if run.Call.Grant != tt.grant {
						t.Errorf("it runs with %s", run.Call.Grant)
					}
					run.Finish("ok")
					x.e.Request().Answer("fine")
					c.until("answer 3 end_turn")
				case tt.stopped:
					got := c.until("answer 3 cancelled")
					if !strings.HasPrefix(got[len(got)-2], "tool_call_update 1.1.0 failed") {
						t.Errorf("the call is left open: %q", got)
					}
				default:
					r := x.e.Request()
					if got := lastOutput(r); !strings.Contains(got, tt.output) {
						t.Errorf("the model is not told: %s", got)
					}
					r.Answer("fine")
					got := strings.Join(c.until("answer 3 end_turn"), "\n")
					if !strings.Contains(got, "tool_call_update 1.1.0 failed") {
						t.Errorf("the call is not shown as failed: %s", got)
					}
				}
				c.send(`{"jsonrpc":"2.0","id":%v,"result":{"outcome":{"outcome":"selected","optionId":"approved"}}}`, id) // too late
				c.nothing()
				x.e.Idle()
				if allowed := strings.Join(x.allowed, ", "); (name == "always") != (allowed == "make") {
					t.Errorf("allowed for good: %s", allowed)
				}
			})
		})
	}
}

// lastOutput is the last output that a request has for the model.
func lastOutput(r *enginetest.Request) (text string) {
	for _, it := range r.Prompt.Items {
		if it.Kind == p.PromptOutput {
			text = it.Text
		}
	}
	return text
}

// A client that has forms can say why not.
func TestDenyBecause(t *testing.T) {
	for name, tt := range map[string]struct{ answer, want string }{
		"said":     {`{"action":"accept","content":{"reason":"the disk is full"}}`, "the disk is full"},
		"not said": {`{"action":"cancel"}`, "rejected by the user"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, x *site) {
				c := x.connect(`{"elicitation":{"form":{}}}`)
				c.start()
				c.say("hi")
				x.command().Ask("rm", "x")
				c.until("permission 1.1.0 rm x: approved approved_for_session denied denied_because abort")
				c.send(`{"jsonrpc":"2.0","id":%v,"result":{"outcome":{"outcome":"selected","optionId":"denied_because"}}}`, c.last["id"])
				c.until("elicit form Why")
				c.send(`{"jsonrpc":"2.0","id":%v,"result":%s}`, c.last["id"], tt.answer)
				r := x.e.Request()
				if got := lastOutput(r); !strings.Contains(got, tt.want) {
					t.Errorf("the model is told: %s", got)
				}
				r.Answer("fine")
				c.until("answer 3 end_turn")
			})
		})
	}
}

// What an MCP server asks is asked where the client can, and declined where it cannot.
func TestElicitation(t *testing.T) {
	schema := `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	for name, tt := range map[string]struct{ offers, url, shown, answer, want string }{
		"form":        {`{"elicitation":{"form":{}}}`, "", "elicit form srv: who?", `{"action":"accept","content":{"name":"me"}}`, `accept {"name":"me"}`},
		"declined":    {`{"elicitation":{"form":{}}}`, "", "elicit form srv: who?", `{"action":"decline"}`, `decline `},
		"nonsense":    {`{"elicitation":{"form":{}}}`, "", "elicit form srv: who?", `{"action":"perhaps"}`, `cancel `},
		"page":        {`{"elicitation":{"url":{}}}`, "https://x.test/", "elicit url srv: who?", `{"action":"accept"}`, `accept `},
		"no page":     {`{"elicitation":{"form":{}}}`, "https://x.test/", "", "", `decline `},
		"not offered": {`{}`, "", "", "", `decline `},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, x *site) {
				c := x.connect(tt.offers)
				c.start()
				c.say("hi")
				run := x.command()
				got := make(chan string, 1)
				go func() {
					q := p.ElicitationRequested{Server: "srv", Message: "who?", URL: tt.url}
					if tt.url == "" {
						q.Schema = []byte(schema)
					}
					r, err := elicit(run, q)
					got <- fmt.Sprint(r.Action, " ", string(r.Content))
					if err != nil {
						t.Error(err)
					}
				}()
				if tt.shown != "" {
					c.until(tt.shown)
					c.send(`{"jsonrpc":"2.0","id":%v,"result":%s}`, c.last["id"], tt.answer)
				}
				if answer := <-got; answer != tt.want {
					t.Errorf("the server is answered %q, want %q", answer, tt.want)
				}
				run.Finish("ok")
				x.e.Request().Answer("fine")
				c.until("answer 3 end_turn")
			})
		})
	}
}

// Another client that answers first withdraws the question.
func TestAnsweredElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.say("hi")
		run := x.command()
		run.Ask("rm", "x")
		c.until("permission")
		x.e.Must(p.ConversationID(c.id), p.Approve{Call: run.Call.ID, Decision: p.Approved})
		c.want("tool_call_update 1.1.0 in_progress", "withdrawn 0")
		x.e.Must(p.ConversationID(c.id), p.UserTurn{Content: p.Text("and this")})
		x.e.Run().Finish("ok")
		synctest.Wait()
		x.e.Request().Answer("fine")
		c.want("tool_call_update 1.1.0 completed \"```\\nok\\n```\"", "user_message u1.0.1 and this", "agent_message 1.2.0 fine", "answer 3 end_turn")
	})
}

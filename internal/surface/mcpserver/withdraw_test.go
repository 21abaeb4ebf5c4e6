package mcpserver

import (
	"testing"
	"testing/synctest"

	p "github.com/fermata-agent/fermata/protocol"
)

// askedByStream is a client whose stream has put a question, which has the id 0.
func askedByStream(t *testing.T) *client {
	t.Helper()
	c := toolCreated(t, asks)
	c.stream("11")
	c.say("12")
	m := c.e.Request()
	m.Call("call_1", "work", "{}")
	m.End()
	c.e.Run().Ask("rm", "x")
	synctest.Wait()
	c.drain()
	return c
}

const withdrawn = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0,"reason":"no client follows the conversation"}}`

// Pausing the stream withdraws its question; an answer that the client had sent by then counts.
func TestAnswerToAWithdrawnQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := askedByStream(t)
		c.cancel("11")
		c.want(withdrawn)
		c.send(`{"id":0,"result":{"decision":"approved"}}`)
		if run := c.e.Run(); run.Call.Grant != p.Approved {
			t.Errorf("run with the grant %q", run.Call.Grant)
		}
	})
}

// What is no answer does not count: the approval stays open and is asked again.
func TestErrorForAWithdrawnQuestion(t *testing.T) {
	for name, reply := range map[string]string{
		"error":   `"error":{"code":-32800,"message":"cancelled"}`,
		"nothing": `"result":{}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := askedByStream(t)
				c.cancel("11")
				c.want(withdrawn)
				c.send(`{"id":0,%s}`, reply)
				synctest.Wait()
				c.tool("13", "conversationStream", `{"conversation_id":"C"}`)
				c.hear("answer 13", "notifications/initial_state", "elicitation/create")
				c.send(`{"id":1,"result":{"decision":"approved"}}`)
				c.e.Run().Finish("removed")
				c.e.Request().Answer("done")
			})
		})
	}
}

// When the stream that was asked is paused, the listener is.
func TestQuestionMovesToTheListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := askedByStream(t)
		c.listen("13")
		synctest.Wait()
		c.drain()
		c.cancel("11")
		c.want(withdrawn)
		c.hear("execCommandApproval")
		c.send(`{"id":1,"result":{"decision":"denied"}}`)
		c.e.Request().Answer("as you like")
	})
}

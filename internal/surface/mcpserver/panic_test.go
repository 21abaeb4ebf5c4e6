package mcpserver

import (
	"bufio"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A defect that shows in a request, or in what follows a conversation, is an error of that request or a message to the client.
// Other conversations, and the server, go on.
func TestPanicIsAnErrorOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		faulty := &enginetest.Faulty{Engine: e}
		var traces atomic.Int32
		c := &client{t: t, e: e, lines: make(chan string, 10000), taken: map[string]bool{}}
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		c.in = inW
		s := New(t.Context(), Options{Engine: faulty, Settings: puppetSettings, Change: puppetChange, Local: &c.local, Panicked: func(any, []byte) { traces.Add(1) }})
		go func() { _ = s.Serve(t.Context(), inR, outW) }() // ends with inW
		go func() {                                         // ends with outR
			for lines := bufio.NewScanner(outR); lines.Scan(); {
				c.lines <- lines.Text()
			}
		}()
		t.Cleanup(func() { inW.Close(); outR.Close() })

		other, id := e.Begin(), e.Begin()
		e.Say(other, "go")
		request := e.Request()
		faulty.ID, c.id = id, string(id)
		c.send(`{"id":"listen","method":"addConversationListener","params":{"conversationId":"C"}}`)
		c.take("listen")
		faulty.Broken.Store(true)
		requests := map[string]string{
			"1": `"method":"resumeConversation","params":{"conversationId":"C"}`,
			"2": `"method":"listConversations","params":{}`,
			"3": `"method":"addConversationListener","params":{"conversationId":"C"}`,
			"4": `"method":"sendUserMessage","params":{"conversationId":"C","items":[{"type":"text","data":{"text":"x"}}]}`,
			"5": `"method":"interruptConversation","params":{"conversationId":"C"}`,
			"6": `"method":"archiveConversation","params":{"conversationId":"C"}`,
			"7": `"method":"tools/call","params":{"name":"codex-reply","arguments":{"conversationId":"C","prompt":"x"}}`,
			"8": `"method":"tools/call","params":{"name":"conversationStream","arguments":{"conversation_id":"C"}}`,
			"9": `"method":"tools/call","params":{"name":"conversationsList","arguments":{}}`,
		}
		for name, request := range requests {
			c.send(`{"id":%q,%s}`, name, request)
			c.take(name)
			if !strings.Contains(c.last, `"error":{"code":-32603,"message":"internal error: a defect"}`) {
				t.Errorf("%s is answered %s", request, c.last)
			}
		}
		if traces.Load() != int32(len(requests)) {
			t.Errorf("%d traces", traces.Load())
		}
		e.Say(id, "go") // the listener's reader panics
		e.Request()
		synctest.Wait()
		if traces.Load() <= int32(len(requests)) {
			t.Error("the panic of what the listener follows was not logged")
		}
		faulty.Broken.Store(false)
		c.send(`{"id":"again","method":"interruptConversation","params":{"conversationId":"C"}}`)
		c.take("again")
		request.Answer("I never noticed")
		synctest.Wait()
		if snap, err := e.Resume(t.Context(), other); err != nil || snap.Ended != p.Completed {
			t.Errorf("%v: the other conversation's turn ended %q", err, snap.Ended)
		}
	})
}

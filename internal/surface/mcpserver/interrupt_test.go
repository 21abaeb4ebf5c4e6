package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A lateEngine submits the second interrupt, and those after it, only when it is told to.
type lateEngine struct {
	engine.Engine
	late chan struct{}
	n    int // of interrupts; they come one by one
}

func (e *lateEngine) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	if _, ok := op.(p.Interrupt); ok {
		if e.n++; e.n > 1 {
			<-e.late
		}
	}
	return e.Engine.Submit(ctx, id, op)
}

// Interrupts that come while one is pending are answered after the end's events, with the reason of the turn that they stopped,
// also if they find that it has ended. One that comes later finds nothing.
func TestEveryPendingInterruptIsAnsweredWithTheReason(t *testing.T) {
	for _, listens := range []bool{true, false} {
		t.Run(fmt.Sprintf("listens %v", listens), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := enginetest.New(t, enginetest.Options{})
				late := &lateEngine{Engine: e, late: make(chan struct{})}
				c := attachTo(t, e, late)
				c.id = string(e.Begin())
				if listens {
					c.listen("2")
				}
				c.message("3", "hi")
				c.take("3")
				e.Request().Delta("half a sen")
				synctest.Wait()
				line := `{"id":"%s","method":"interruptConversation","params":{"conversationId":"C"}}`
				c.send(line+"\n"+line+"\n"+line, "a", "b", "c")
				c.take("a")
				close(late.late)
				c.take("b")
				c.take("c")
				c.interrupt("7")
				c.take("7")
				var got []string
				for len(c.back) > 0 {
					_, h := c.next()
					if kind, ok := h.Params.Msg["type"].(string); ok && !strings.Contains(kind, "delta") {
						got = append(got, kind)
					}
				}
				want := ""
				if listens {
					want = "task_started turn_aborted"
				}
				if strings.Join(got, " ") != want {
					t.Errorf("before the answers came %q", got)
				}
				for id, reason := range map[string]string{`"a"`: `"interrupted"`, `"b"`: `"interrupted"`, `"c"`: `"interrupted"`, "7": "null"} {
					if want := `{"jsonrpc":"2.0","id":` + id + `,"result":{"abortReason":` + reason + `}}`; !c.taken[want] {
						t.Errorf("there is no %s in %v", want, c.taken)
					}
				}
			})
		})
	}
}

// No answer overtakes the end of the turn that its request has ended, for anybody who listens on this connection.
func TestAnswersThatEndATurnComeAfterItsEnd(t *testing.T) {
	const hi = `"items":[{"type":"text","data":{"text":"rather this"}}]`
	for name, x := range map[string]struct{ first, request, answer string }{
		"interrupt": {"", `"method":"interruptConversation","params":{"conversationId":"C"}`, `"abortReason":"interrupted"`},
		"archive":   {"", `"method":"archiveConversation","params":{"conversationId":"C"}`, `"result":{}`},
		"replaced call": {
			`{"id":"answer","method":"tools/call","params":{"name":"codex-reply","arguments":{"conversationId":"C","prompt":"more"}}}`,
			`"method":"sendUserMessage","params":{"conversationId":"C","whenBusy":"replace",` + hi + `}`, "turn replaced by another message",
		},
		"interrupted call": {
			`{"id":"answer","method":"tools/call","params":{"name":"codex-reply","arguments":{"conversationId":"C","prompt":"more"}}}`,
			`"method":"interruptConversation","params":{"conversationId":"C"}`, "turn interrupted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				synctest.Test(t, func(t *testing.T) {
					c := direct(t)
					c.listen("2")
					c.listen("3")
					c.message("4", "hi")
					c.take("4")
					c.e.Request().Delta("half a sen")
					id := "answer"
					if x.first != "" {
						c.send("%s", x.first)
						synctest.Wait()
						id = "other"
					}
					c.send(`{"id":%q,%s}`, id, x.request)
					ends := 0
					for {
						line, h := c.next()
						if h.Params.Msg["type"] == "turn_aborted" && strings.HasPrefix(h.Method, "codex/event/") {
							ends++
						}
						if h.Method == "" && bare(h.ID) == "answer" {
							if ends != 2 || !strings.Contains(line, x.answer) {
								t.Errorf("after %d ends came %s", ends, line)
							}
							return
						}
					}
				})
			}
		})
	}
}

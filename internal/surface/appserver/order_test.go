package appserver

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// No answer overtakes the end of the turn that its request has ended, nor does a notification that the thread is gone, also for
// others who follow it.
func TestAnswersThatEndATurnComeAfterItsEnd(t *testing.T) {
	for name, x := range map[string]struct{ method, params, after string }{
		"interrupt":      {"turn/interrupt", `{"threadId":"T","turnId":"U1"}`, ""},
		"interrupt any":  {"turn/interrupt", `{"threadId":"T","turnId":""}`, ""},
		"archive":        {"thread/archive", `{"threadId":"T"}`, "thread/archived"},
		"delete":         {"thread/delete", `{"threadId":"T"}`, "thread/deleted"},
		"archive, asked": {"thread/archive", `{"threadId":"T"}`, "thread/archived"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				inBubble(t, func(t *testing.T, x2 *site) {
					c := x2.connect()
					c.start()
					other, _ := x2.join(c)
					c.say("hi")
					if strings.HasSuffix(name, "asked") {
						x2.command("work", "")
						x2.e.Run().Ask("rm", "x")
						c.until("ask")
					} else {
						x2.e.Request().Delta("half a sen")
						c.until("delta")
					}
					c.ask(x.method, x.params)
					got := c.until("answer")
					if text := strings.Join(got, "|"); !strings.Contains(text, "turn/completed U1 interrupted interrupted") || strings.Contains(text, "error") {
						t.Errorf("before the answer came only %q", got)
					}
					if x.after == "" {
						return
					}
					for _, cl := range []*client{c, other} {
						if !strings.Contains(strings.Join(got, "|"), "|"+x.after) {
							got = append(got, cl.until(x.after)...)
						}
						ended := false
						for _, line := range got {
							ended = ended || strings.HasPrefix(line, "turn/completed")
							if !ended && (strings.HasPrefix(line, "thread/closed") || strings.HasPrefix(line, "status notLoaded") || strings.HasPrefix(line, x.after)) {
								t.Errorf("the thread was gone before its turn had ended: %q", got)
							}
						}
						got = nil
					}
				})
			}
		})
	}
}

// A message that replaces a turn is accepted first; then comes the end of that turn, and only then the next one.
func TestReplaceIsAnsweredFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.say("hi")
		x.e.Request().Delta("half")
		c.until("delta")
		c.ask("turn/start", `{"threadId":"T","whenBusy":"replace","input":[{"type":"text","text":"rather this"}]}`)
		c.want("answer 4", "item/completed agentMessage 1.1.0 half", "status idle", "turn/completed U1 interrupted replaced", "status active []", "turn/started U2 inProgress")
	})
}

// After the answer to thread/unsubscribe nothing more of the thread is sent: it waits for what is being sent.
func TestNothingComesAfterUnsubscribe(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		leave, err := x.s.connected()[0].thread(c.id).enter(t.Context()) // as a subscription does that sends
		if err != nil {
			t.Fatal(err)
		}
		c.ask("thread/unsubscribe", `{"threadId":"T"}`)
		c.nothing()
		leave()
		c.want("answer 3")
		c.say("hi")
		c.want("answer 4")
		x.e.Request().Answer("hello")
		synctest.Wait()
		for len(c.back)+len(c.lines) > 0 {
			if line := c.short(c.next()); !strings.HasPrefix(line, "status ") { // which all clients are sent
				t.Errorf("got %s", line)
			}
		}
	})
}

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

// Interrupts that come while one is pending have the same answer, also if they find that the turn has ended.
func TestEveryPendingInterruptIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &site{t: t, e: enginetest.New(t, enginetest.Options{})}
		late := &lateEngine{Engine: x.e, late: make(chan struct{})}
		x.s = New(t.Context(), Options{Engine: late, Home: t.TempDir(), Cwd: "/w", Settings: puppetSettings, Change: puppetChange, Local: fakeLocal{}, Panicked: x.panicked})
		t.Cleanup(x.s.Close)
		c := x.connect()
		c.start()
		c.say("hi")
		x.e.Request().Delta("half")
		c.until("delta")
		line := `{"id":"%s","method":"turn/interrupt","params":{"threadId":"` + string(c.id) + `","turnId":"%s"}}` + "\n"
		turn := c.turnName(1)
		c.send(line+line+line+line, "a", turn, "b", turn, "c", "", "d", c.turnName(2))
		c.want("item/completed agentMessage 1.1.0 half", "status idle", "turn/completed U1 interrupted interrupted", "answer a")
		close(late.late)
		c.want("answer b", "answer c", "answer d error -32600 no active turn to interrupt")
	})
}

package appserver

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/enginetest"
)

// A defect that shows in a request, or in what follows a thread, is an error of that request or a warning. The turns of other
// threads, and the server, go on.
func TestPanicIsAnErrorOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &site{t: t, e: enginetest.New(t, enginetest.Options{})}
		faulty := &enginetest.Faulty{Engine: x.e}
		var traces atomic.Int32
		x.s = New(t.Context(), Options{Engine: faulty, Home: t.TempDir(), Cwd: "/w", Settings: puppetSettings, Change: puppetChange, Local: fakeLocal{}, Panicked: func(any, []byte) { traces.Add(1) }})
		t.Cleanup(x.s.Close)
		c, other := x.connect(), x.connect()
		other.start()
		other.say("go")
		request := x.e.Request()
		c.want("thread/started", "status active []")
		c.start()
		c.turn("hi", "hello")
		c.say("go")
		broken := x.e.Request()
		c.until("item/completed userMessage")
		synctest.Wait()

		faulty.ID = c.id
		faulty.Broken.Store(true)
		reader := x.connect()
		reader.id = c.id
		methods := map[string]string{
			"thread/list": `{}`, "thread/read": `{"threadId":"T","includeTurns":true}`, "thread/turns/list": `{"threadId":"T"}`, "thread/items/list": `{"threadId":"T"}`,
			"thread/resume": `{"threadId":"T"}`, "thread/fork": `{"threadId":"T"}`, "thread/archive": `{"threadId":"T"}`, "thread/queue/list": `{"threadId":"T"}`,
			"turn/start": `{"threadId":"T","input":[{"type":"text","text":"x"}]}`, "turn/interrupt": `{"threadId":"T","turnId":"U2"}`,
		}
		for method, params := range methods {
			if got := reader.refused(method, params); got != "-32603 internal error: a defect" {
				t.Errorf("%s: %s", method, got)
			}
		}
		if got := traces.Load(); got != int32(len(methods)) {
			t.Errorf("%d traces", got)
		}
		broken.Message("nobody hears this") // since the follower of the connection panics
		synctest.Wait()
		if traces.Load() != int32(len(methods))+1 {
			t.Errorf("the panic of the follower was not logged: %d traces", traces.Load())
		}
		c.until("warning this thread is no longer followed")
		faulty.Broken.Store(false)
		reader.result("thread/resume", `{"threadId":"T"}`)
		broken.Answer("again")
		reader.until("turn/completed U2 completed")
		request.Answer("I never noticed")
		other.until("turn/completed")
	})
}

// A fold that panics ends the subscription with a warning, and the request that began it with an error.
func TestPanicOfASubscription(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		sub := c.x.s.connected()[0].follows(c.id)
		leave, err := sub.t.enter(t.Context()) // nothing is sent meanwhile
		if err != nil {
			t.Fatal(err)
		}
		sub.fold, x.defect = nil, true
		leave()
		c.say("hi")
		x.e.Request().Answer("hello")
		got := c.until("warning")
		if last := got[len(got)-1]; !strings.Contains(last, "no longer followed; resume it") {
			t.Error(last)
		}
		synctest.Wait() // the turn ends meanwhile
		r := c.result("thread/resume", `{"threadId":"T"}`)
		same(t, []string{"U1 completed; userMessage; agentMessage hello"}, c.turns(r["thread"]))
		c.turn("more", "and so on")
	})
}

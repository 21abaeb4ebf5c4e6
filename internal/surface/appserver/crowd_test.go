package appserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/longtest"
)

// A reader is a client that follows one thread for a while and checks what it gets: the pieces of a message are
// the beginning of what it is when it is finished (its end may come only with that), items and turns begin and end in pairs, nothing comes after a turn's end.
type reader struct {
	open map[string]string // text so far by item
	over map[string]bool   // turns that have ended
	bad  string
}

func (r *reader) take(m map[string]any) {
	fail := func(format string, args ...any) {
		if r.bad == "" {
			r.bad = fmt.Sprintf(format, args...)
		}
	}
	params := m["params"]
	item, _ := at(params, "itemId").(string)
	turn, _ := at(params, "turnId").(string)
	if turn != "" && r.over[turn] && m["method"] != "thread/tokenUsage/updated" {
		fail("%v comes after the end of its turn", m["method"])
	}
	switch m["method"] {
	case "item/started":
		id := at(params, "item", "id").(string)
		if _, ok := r.open[id]; ok {
			fail("%s starts twice", id)
		}
		r.open[id] = ""
	case "item/agentMessage/delta":
		if _, ok := r.open[item]; !ok {
			fail("a piece of %s, which has not started", item)
		}
		r.open[item] += at(params, "delta").(string)
	case "item/completed":
		id := at(params, "item", "id").(string)
		text, ok := r.open[id]
		if whole, _ := at(params, "item", "text").(string); at(params, "item", "type") == "agentMessage" && (!ok || !strings.HasPrefix(whole, text)) {
			fail("%s was sent as %q and is %q", id, text, whole)
		}
		delete(r.open, id)
	case "turn/completed":
		r.over[at(params, "turn", "id").(string)] = true
		if len(r.open) > 0 {
			fail("%v are open at the end of a turn", r.open)
		}
	}
}

// visit attaches to a thread and reads until told to leave.
func (x *site) visit(ctx context.Context, id string) string {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan struct{})
	go func() {
		_ = x.s.Serve(x.t.Context(), Shared, inR, outW)
		outW.Close()
		close(served)
	}()
	defer func() { <-served }()
	defer inW.Close()
	stop := context.AfterFunc(ctx, func() { inW.Close() })
	defer stop()
	if _, err := fmt.Fprintf(inW, "{\"id\":1,\"method\":\"initialize\",\"params\":{\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n{\"id\":2,\"method\":\"thread/resume\",\"params\":{\"threadId\":%q}}\n", id); err != nil {
		return ""
	}
	r := &reader{open: map[string]string{}, over: map[string]bool{}}
	answered := false
	for lines := bufio.NewReader(outR); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return r.bad
		}
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			return err.Error()
		}
		switch {
		case m["id"] == float64(2):
			answered = true
			if m["error"] != nil && ctx.Err() == nil {
				return fmt.Sprint(m["error"])
			}
		case answered && m["method"] != nil:
			r.take(m)
		}
	}
}

// A slow reader takes a byte a second.
func (x *site) slow(ctx context.Context, id string) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() { _ = x.s.Serve(ctx, Shared, inR, outW) }()
	go func() {
		_, _ = fmt.Fprintf(inW, "{\"id\":1,\"method\":\"initialize\",\"params\":{\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n{\"id\":2,\"method\":\"thread/resume\",\"params\":{\"threadId\":%q}}\n", id)
	}()
	context.AfterFunc(ctx, func() { outR.Close(); inW.Close() })
	one := make([]byte, 1)
	for ctx.Err() == nil {
		if _, err := outR.Read(one); err != nil {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// A hundred clients attach, leave and come back at random to ten conversations that run, beside one that reads a byte a
// second: nobody misses anything or gets it twice, no turn waits for a client, and what waits for each client is bounded.
func TestCrowd(t *testing.T) {
	clients, rounds := longtest.Default(100, 20), longtest.Default(6, 3)
	if testing.Short() {
		clients, rounds = 20, 3
	}
	synctest.Test(t, func(t *testing.T) {
		x := newSiteWith(t, enginetest.New(t, enginetest.Options{}))
		ctx, stop := context.WithCancel(t.Context())
		var ids []string
		c := x.connect()
		for range 10 {
			c.start()
			ids = append(ids, string(c.id))
		}
		go x.slow(ctx, ids[0])
		problems := make(chan string, clients)
		for n := range clients {
			go func() {
				r := rand.New(rand.NewPCG(1, uint64(n)))
				for ctx.Err() == nil {
					visit, leave := context.WithTimeout(ctx, time.Duration(1+r.IntN(3000))*time.Millisecond)
					bad := x.visit(visit, ids[r.IntN(len(ids))])
					leave()
					if bad != "" {
						problems <- bad
						return
					}
				}
				problems <- ""
			}()
		}
		began := time.Now()
		for round := range rounds {
			for _, id := range ids {
				c.id = ""
				c.result("turn/start", fmt.Sprintf(`{"threadId":%q,"input":[{"type":"text","text":"round %d"}]}`, id, round))
			}
			var requests []*enginetest.Request
			for range ids {
				requests = append(requests, x.e.Request())
			}
			text := ""
			for n := range 20 {
				piece := strings.Repeat(fmt.Sprint(n, " wörd "), 40)
				text += piece
				for _, r := range requests {
					r.Delta(piece)
				}
				time.Sleep(10 * time.Millisecond)
			}
			for _, r := range requests {
				r.Answer(text)
			}
			x.checkBounds()
		}
		// The clock of a bubble stands while anybody works: the turns took their own time, and waited for no client.
		if took, own := time.Since(began), time.Duration(rounds)*200*time.Millisecond; took > 2*own {
			t.Errorf("the turns took %v, want about %v", took, own)
		}
		stop()
		for range clients {
			if bad := <-problems; bad != "" {
				t.Error(bad)
			}
		}
		c.in.Close()
		<-c.ended
	})
}

// More requests than a connection may have are refused with the code for that, and the connection lives on.
func TestOverload(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.say("hi")
		r := x.e.Request()
		r.Deaf() // the turn does not end for a while
		c.until("item/completed userMessage")
		var flood bytes.Buffer
		for n := range maxCalls + 20 {
			fmt.Fprintf(&flood, "{\"id\":\"f%d\",\"method\":\"turn/interrupt\",\"params\":{\"threadId\":%q,\"turnId\":\"\"}}\n", n, c.id)
		}
		done := make(chan struct{})
		go func() { defer close(done); _, _ = c.in.Write(flood.Bytes()) }()
		<-done
		got := strings.Join(c.until("answer f"+fmt.Sprint(maxCalls+19)), "|")
		if !strings.Contains(got, "error -32001 Server overloaded; retry later.") {
			t.Errorf("got %q", got)
		}
		time.Sleep(time.Minute) // the turn is given up
		r.End()
		c.result("thread/loaded/list", `{}`)
	})
}

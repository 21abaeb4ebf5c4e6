package appserver

import (
	"bufio"
	"context"
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

// most is what a connection may hold for a client that does not read: a full queue and one that is being written,
// each with one message more than fits.
const most = 2 * (maxQueue + 1<<20)

// checkBounds checks what every connection holds.
func (x *site) checkBounds() (total int) {
	x.t.Helper()
	for _, c := range x.s.connected() {
		if held := c.rpc.Waiting(); held > most || len(c.late) > maxLate {
			x.t.Errorf("a connection holds %d bytes and %d notifications", held, len(c.late))
		}
		total += c.rpc.Waiting()
	}
	return total
}

// A client that reads a byte a second holds a bounded number of bytes, however much there is for it; the turn and other clients
// do not wait for it; and when it reads again it misses nothing.
func TestSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSiteWith(t, enginetest.New(t, enginetest.Options{}))
		c := x.connect()
		c.start()
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		go func() { _ = x.s.Serve(t.Context(), Shared, inR, outW); outW.Close() }()
		go func() {
			_, _ = fmt.Fprintf(inW, "{\"id\":1,\"method\":\"initialize\",\"params\":{\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n{\"id\":2,\"method\":\"thread/resume\",\"params\":{\"threadId\":%q}}\n", c.id)
		}()
		slow := bufio.NewReader(outR)
		answer := ""
		for !strings.Contains(answer, `"id":2`) {
			answer, _ = slow.ReadString('\n')
		}
		const pieces = 20
		turns := longtest.Default(6, 4)
		piece := strings.Repeat("wörd ", 10_000)
		for range turns {
			c.say("more")
			r := x.e.Request()
			for range pieces {
				r.Delta(piece)
				time.Sleep(time.Second)
				if _, err := slow.ReadByte(); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				x.checkBounds()
			}
			r.Answer(strings.Repeat(piece, pieces))
			c.until("turn/completed")
		}
		synctest.Wait()
		if held := x.checkBounds(); held < maxQueue {
			t.Errorf("%d bytes are held: the bound was never reached", held)
		}
		rest := bufio.NewReader(slow)
		for ended := 0; ended < turns; {
			line, err := rest.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, `"method":"item/completed"`) && strings.Contains(line, "agentMessage") && strings.Count(line, "wörd") != pieces*10_000 {
				t.Error("a message is not whole")
			}
			if strings.Contains(line, `"method":"turn/completed"`) {
				ended++
			}
		}
		inW.Close()
		c.in.Close()
		<-c.ended
	})
}

// BenchmarkTurn is a turn of 100 pieces of text, one every 2 ms as a fast model sends them, alone and in ten conversations that 100 clients
// attach to, leave and come back to beside one that reads a byte a second.
func BenchmarkTurn(b *testing.B) {
	for _, clients := range []int{0, 100} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			x := newSiteWith(b, enginetest.New(b, enginetest.Options{}))
			c := x.connect()
			var ids []string
			for range 10 {
				c.start()
				ids = append(ids, string(c.id))
			}
			ctx, stop := context.WithCancel(b.Context())
			left := make(chan struct{})
			for n := range clients {
				go func() {
					defer func() { left <- struct{}{} }()
					r := rand.New(rand.NewPCG(1, uint64(n)))
					for ctx.Err() == nil {
						visit, leave := context.WithTimeout(ctx, time.Duration(100+r.IntN(900))*time.Millisecond)
						x.visit(visit, ids[r.IntN(len(ids))])
						leave()
					}
				}()
			}
			if clients > 0 {
				go x.slow(ctx, ids[0])
			}
			for b.Loop() {
				c.id = ""
				c.result("turn/start", fmt.Sprintf(`{"threadId":%q,"input":[{"type":"text","text":"go"}]}`, ids[0]))
				r := x.e.Request()
				pace := time.NewTicker(2 * time.Millisecond)
				for range 100 {
					<-pace.C
					r.Delta("some more text ")
				}
				pace.Stop()
				r.Answer(strings.Repeat("some more text ", 100))
				for m := c.next(); m["method"] != "turn/completed"; m = c.next() {
				}
			}
			b.ReportMetric(float64(x.checkBounds()), "held-B")
			stop()
			for range clients {
				<-left
			}
		})
	}
}

package remote_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

// benchEngine is an engine with a turn that streams, and a connection to it by a socket.
func benchEngine(b *testing.B) (e *enginetest.Engine, id p.ConversationID, dial func() engine.Engine) {
	b.Helper()
	e = enginetest.New(b, enginetest.Options{IdleAfter: -1, IdleFollowed: -1})
	l, err := remote.Listen(filepath.Join(b.TempDir(), "run"))
	if err != nil {
		b.Fatal(err)
	}
	s := remote.NewServer(e.Local, "test")
	go l.Serve(b.Context(), s) // ends with the benchmark
	b.Cleanup(func() {
		l.Close()
		s.Close()
	})
	return e, e.Begin(), func() engine.Engine {
		c, err := remote.Dial(b.Context(), l.Address(), remote.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.Close)
		return c
	}
}

// BenchmarkEvent is how long it takes from a piece of text of the model until a client has it.
func BenchmarkEvent(b *testing.B) {
	for _, joined := range []bool{false, true} {
		b.Run(map[bool]string{false: "local", true: "joined"}[joined], func(b *testing.B) {
			e, id, dial := benchEngine(b)
			client := engine.Engine(e.Local)
			if joined {
				client = dial()
			}
			seen := make(chan struct{}, 1000)
			go func() { // ends with the benchmark
				for ev, err := range client.Subscribe(b.Context(), id, 0) {
					if err != nil {
						return
					}
					if _, ok := ev.Body.(*p.Delta); ok {
						seen <- struct{}{}
					}
				}
			}()
			e.Say(id, "go")
			q := e.Request()
			q.Delta("x")
			<-seen
			for b.Loop() {
				q.Delta("x")
				<-seen
			}
			q.Answer("done")
		})
	}
}

// BenchmarkTurn is a turn of 50 pieces of text, one each 10 milliseconds, which is as fast as models are, with
// so many joined clients that follow it.
func BenchmarkTurn(b *testing.B) {
	for _, clients := range []int{0, 1, 20} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			e, id, dial := benchEngine(b)
			for range clients {
				client := dial()
				go func() { // ends with the benchmark
					for _, err := range client.Subscribe(b.Context(), id, 0) {
						if err != nil {
							return
						}
					}
				}()
			}
			w := e.Watch(id, 1)
			for b.Loop() {
				e.Say(id, "go")
				q := e.Request()
				pace := time.NewTicker(10 * time.Millisecond)
				for range 50 {
					<-pace.C
					q.Delta("a few words of text ")
				}
				pace.Stop()
				q.Answer("done")
				w.Expect("turn_ended completed")
			}
		})
	}
}

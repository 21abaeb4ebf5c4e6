package jsonrpc

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"
)

// A plain connection leaves "jsonrpc" out, stamps notifications, chooses the ids of its requests and
// says by itself what it refuses when there is too much.
func TestPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		replies := make(chan string, 2)
		hold := make(chan struct{})
		w := serve(t, Options{
			Plain: true, MaxCalls: 1, Full: Errorf(-32001, "full"),
			Reply: func(id, result json.RawMessage, err error) {
				if err != nil {
					result = json.RawMessage(err.Error())
				}
				replies <- string(id) + string(result)
			},
			Methods: []Method{Handle("wait", func(context.Context, *Request, struct{}) (struct{}, error) { <-hold; return struct{}{}, nil })},
		})
		if err := w.conn.Notify(t.Context(), "n", nil); err != nil {
			t.Fatal(err)
		}
		w.want(`{"method":"n","emittedAtMs":` + string(mustJSON(time.Now().UnixMilli())) + `}`)
		if err := w.conn.Send(t.Context(), "mine", "ask", nil); err != nil {
			t.Fatal(err)
		}
		w.want(`{"id":"mine","method":"ask"}`)
		w.send(`{"id":"mine","result":{"ok":true}}`, `{"id":"mine","error":{"code":1,"message":"no"}}`)
		for range 2 {
			switch got := <-replies; got {
			case `"mine"{"ok":true}`, `"mine"no`:
			default:
				t.Errorf("reply %s", got)
			}
		}
		w.send(`{"id":1,"method":"wait"}`, `{"id":2,"method":"wait"}`)
		w.want(`{"id":2,"error":{"code":-32001,"message":"full"}}`)
		close(hold)
		w.want(`{"id":1,"result":{}}`)
	})
}

// A peer that answers faster than its answers are taken is not read meanwhile, and none of them is lost.
func TestTooManyReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sent, most = 10, 3
		taken, hold := make(chan struct{}, sent), make(chan struct{})
		w := serve(t, Options{MaxCalls: most, Reply: func(json.RawMessage, json.RawMessage, error) {
			taken <- struct{}{}
			<-hold
		}})
		go func() { // ends when all are read
			for range sent {
				_, _ = w.in.Write([]byte(`{"id":"mine","result":{}}` + "\n"))
			}
		}()
		synctest.Wait()
		if n := len(taken); n != most {
			t.Errorf("%d answers are taken at once, want %d", n, most)
		}
		close(hold)
		synctest.Wait()
		if n := len(taken); n != sent {
			t.Errorf("%d answers were taken, want %d", n, sent)
		}
	})
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// What comes first is answered before anything behind it begins.
func TestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := false // only one goroutine at a time: -race sees to it
		first := Handle("first", func(context.Context, *Request, struct{}) (struct{}, error) { ready = true; return struct{}{}, nil })
		first.First = true
		w := serve(t, Options{Methods: []Method{first, Handle("then", func(context.Context, *Request, struct{}) (bool, error) { return ready, nil })}})
		w.send(`{"id":1,"method":"first"}`, `{"id":2,"method":"then"}`)
		w.want(`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":true}`)
	})
}

package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// brokenResult panics when it is encoded.
type brokenResult struct{}

func (brokenResult) MarshalJSON() ([]byte, error) { panic("in the result") }

// A panic is an error of its own request: others, those behind it in its lane and the connection go on.
func TestPanicIsAnErrorOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged atomic.Int32
		lane := func(json.RawMessage) string { return "one" }
		panics := func(name string) Method {
			return Handle(name, func(context.Context, *Request, struct{}) (struct{}, error) { panic("in " + name) })
		}
		first := panics("first")
		first.First = true
		broken := false
		w := serve(t, Options{
			Methods: []Method{
				echo, panics("plain"), first, panics("lane").InLane(lane), Handle("behind", func(context.Context, *Request, struct{}) (string, error) { return "done", nil }).InLane(lane),
				Handle("early", func(_ context.Context, r *Request, _ struct{}) (struct{}, error) {
					r.Reply(struct{}{}, nil)
					panic("after the answer")
				}),
				Handle("result", func(context.Context, *Request, struct{}) (brokenResult, error) { return brokenResult{}, nil }),
				Listen("notice", func(context.Context, struct{}) { panic("in a notification") }),
			},
			Reply:    func(json.RawMessage, json.RawMessage, error) { broken = true; panic("in an answer") },
			Panicked: func(_ any, stack []byte) { logged.Add(1); _ = stack[0] },
		})
		for id, method := range []string{"plain", "first", "lane"} {
			w.send(fmt.Sprintf(`{"id":%d,"method":%q}`, id, method))
			w.want(failure(fmt.Sprint(id), CodeInternal, "internal error: in "+method))
		}
		w.send(`{"id":3,"method":"lane"}`, `{"id":4,"method":"behind"}`)
		w.want(failure("3", CodeInternal, "internal error: in lane"), `{"jsonrpc":"2.0","id":4,"result":"done"}`)
		w.send(`{"id":5,"method":"early"}`)
		w.want(`{"jsonrpc":"2.0","id":5,"result":{}}`)
		w.send(`{"id":6,"method":"result"}`)
		w.want(failure("6", CodeInternal, "internal error: in the result"))
		w.send(`[{"id":7,"method":"plain"}]`)
		w.want("[" + failure("7", CodeInternal, "internal error: in plain") + "]")
		w.send(`{"method":"notice"}`, `{"id":"nobody asked","result":1}`)
		w.conn.Go(func() { panic("beside the requests") })
		if _, err := w.conn.Ask("ours", nil, func(json.RawMessage, error) { panic("in our own") }); err != nil {
			t.Fatal(err)
		}
		w.want(`{"jsonrpc":"2.0","id":0,"method":"ours"}`)
		w.send(`{"id":0,"result":1}`)
		synctest.Wait()
		if got := logged.Load(); got != 11 || !broken {
			t.Errorf("%d traces were logged", got)
		}
		w.send(`{"id":8,"method":"echo","params":{"text":"still here"}}`)
		w.want(`{"jsonrpc":"2.0","id":8,"result":{"text":"still here"}}`)
	})
}

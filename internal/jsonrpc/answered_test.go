package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
)

// Where cancelled requests are answered, each gets one answer: its result, its own error, or that it was cancelled.
func TestCancelledRequestIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := Handle("wait", func(ctx context.Context, _ *Request, in echoParams) (string, error) {
			<-ctx.Done()
			switch in.Text {
			case "result":
				return "done all the same", nil
			case "error":
				return "", errors.New("failed")
			}
			return "", context.Cause(ctx)
		})
		w := serve(t, Options{AnswerCancelled: true, Methods: []Method{wait}})
		for id, line := range map[string]string{
			"result": `{"jsonrpc":"2.0","id":"result","result":"done all the same"}`,
			"error":  `{"jsonrpc":"2.0","id":"error","error":{"code":-32603,"message":"failed"}}`,
			"cancel": `{"jsonrpc":"2.0","id":"cancel","error":{"code":-32800,"message":"cancelled by the client"}}`,
		} {
			cancel := `{"method":"notifications/cancelled","params":{"requestId":"` + id + `"}}`
			w.send(`{"id":"`+id+`","method":"wait","params":{"text":"`+id+`"}}`, cancel, cancel)
			w.want(line)
			w.send(cancel) // it is over
			w.nothing()
		}
	})
}

// Where there are no batches, one is refused as a whole, and nothing in it is carried out.
func TestBatchIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, Options{NoBatches: true, Methods: []Method{echo}})
		w.send(`[{"id":1,"method":"echo","params":{"text":"a"}},{"id":2,"method":"echo","params":{"text":"b"}}]`)
		w.want(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not supported"}}`)
		w.nothing()
	})
}

// A notification keeps its place among the requests of its lane.
func TestNotificationInLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lane := func(json.RawMessage) string { return "one" }
		begin, order := make(chan struct{}), make(chan string, 3)
		w := serve(t, Options{Methods: []Method{
			Handle("start", func(_ context.Context, r *Request, _ struct{}) (string, error) {
				<-begin
				order <- "start"
				r.Release()
				return "", nil
			}).InLane(lane),
			Listen("stop", func(context.Context, struct{}) { order <- "stop" }).InLane(lane),
		}})
		w.send(`{"id":1,"method":"start"}`, `{"method":"stop"}`, `{"method":"stop"}`)
		synctest.Wait()
		if len(order) > 0 {
			t.Fatalf("%s came before the request that was read first", <-order)
		}
		close(begin)
		for _, want := range []string{"start", "stop", "stop"} {
			if got := <-order; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A wire is a connection under test; the test is the peer.
type wire struct {
	t      *testing.T
	conn   *Conn
	in     *io.PipeWriter
	out    *bufio.Reader
	ended  chan error
	cancel context.CancelCauseFunc
}

func serve(t *testing.T, o Options) *wire {
	t.Helper()
	o.Cancel = "notifications/cancelled"
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancelCause(t.Context())
	w := &wire{t: t, conn: New(ctx, o), in: inW, out: bufio.NewReaderSize(outR, 1<<20), ended: make(chan error, 1), cancel: cancel}
	go func() {
		w.ended <- w.conn.Serve(ctx, inR, outW)
		outW.Close()
	}()
	t.Cleanup(func() {
		inW.Close()
		outR.Close()
		cancel(nil)
	})
	return w
}

// send writes lines, each with an end.
func (w *wire) send(lines ...string) {
	w.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(w.in, l+"\n"); err != nil {
			w.t.Fatal(err)
		}
	}
}

// want reads as many lines as given and compares them.
func (w *wire) want(lines ...string) {
	w.t.Helper()
	var got []string
	for range lines {
		line, err := w.out.ReadString('\n')
		if err != nil {
			w.t.Fatalf("after %q: %v", got, err)
		}
		got = append(got, strings.TrimSuffix(line, "\n"))
	}
	if d := cmp.Diff(lines, got); d != "" {
		w.t.Fatalf("lines (-want +got):\n%s", d)
	}
}

// nothing fails the test if there is another line.
func (w *wire) nothing() {
	w.t.Helper()
	synctest.Wait()
	if n := w.out.Buffered(); n > 0 {
		line, _ := w.out.ReadString('\n')
		w.t.Fatalf("unexpected %s", line)
	}
	w.send(`{"id":"sentinel","method":"nobody"}`) // whatever was written is before its answer
	w.want(`{"jsonrpc":"2.0","id":"sentinel","error":{"code":-32601,"message":"there is no method \"nobody\""}}`)
}

type echoParams struct {
	Text string `json:"text"`
	Opt  int    `json:"opt,omitempty"`
}

var echo = Handle("echo", func(_ context.Context, _ *Request, p echoParams) (echoParams, error) { return p, nil })

// stuck is a method that runs until its context ends, and tells why it did.
func stuck(why chan<- error) Method {
	return Handle("stuck", func(ctx context.Context, r *Request, _ struct{}) (any, error) {
		ctx = r.UntilEnd(ctx)
		<-ctx.Done()
		why <- context.Cause(ctx)
		return map[string]string{"stopped": context.Cause(ctx).Error()}, nil
	})
}

func failure(id string, code int, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, text)
}

func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct{ in, out string }{
		"result":               {`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"<hi>","more":[]}}`, `{"jsonrpc":"2.0","id":1,"result":{"text":"<hi>"}}`},
		"without version":      {`{"id":"a","method":"echo","params":{"text":""}}`, `{"jsonrpc":"2.0","id":"a","result":{"text":""}}`},
		"id as it was written": {` {"id": 9007199254740993, "method":"echo","params":{"text":""}} `, `{"jsonrpc":"2.0","id":9007199254740993,"result":{"text":""}}`},
		"id with a fraction":   {`{"id":1.50,"method":"echo","params":{"text":""}}`, `{"jsonrpc":"2.0","id":1.50,"result":{"text":""}}`},
		"unknown method":       {`{"id":1,"method":"x"}`, failure("1", CodeMethod, `there is no method "x"`)},
		"a notification asked": {`{"id":1,"method":"note"}`, failure("1", CodeMethod, `there is no method "note"`)},
		"params missing":       {`{"id":1,"method":"echo"}`, failure("1", CodeParams, "text is missing")},
		"params null":          {`{"id":1,"method":"echo","params":null}`, failure("1", CodeParams, "text is missing")},
		"params of bad type":   {`{"id":1,"method":"echo","params":{"text":1}}`, failure("1", CodeParams, "text: number does not fit")},
		"params a list":        {`{"id":1,"method":"echo","params":[1]}`, failure("1", CodeParams, "params: array does not fit")},
		"handler's own error":  {`{"id":1,"method":"refuse"}`, failure("1", -7, "no")},
		"handler's failure":    {`{"id":1,"method":"fail"}`, failure("1", CodeInternal, "broken")},
		"result no JSON":       {`{"id":1,"method":"odd"}`, failure("1", CodeInternal, "json: unsupported type: chan int")},
		"not JSON":             {`{"id":1,`, failure("null", CodeParse, "not JSON")},
		"two in a line":        {`{"id":1,"method":"echo"} {"id":2}`, failure("null", CodeParse, "not JSON")},
		"not UTF-8":            {"{\"id\":1,\"method\":\"echo\",\"params\":{\"text\":\"\xff\"}}", failure("null", CodeParse, "not UTF-8")},
		"a number":             {`17`, failure("null", CodeRequest, "not an object")},
		"null":                 {`null`, failure("null", CodeRequest, "not an object")},
		"other version":        {`{"jsonrpc":"1.0","id":1,"method":"echo"}`, failure("1", CodeRequest, "this is JSON-RPC 2.0")},
		"id null":              {`{"id":null,"method":"echo"}`, failure("null", CodeRequest, "an id is a text or a number")},
		"id an object":         {`{"id":{},"method":"echo"}`, failure("null", CodeRequest, "an id is a text or a number")},
		"method a number":      {`{"id":1,"method":5}`, failure("1", CodeRequest, "the method is no name")},
		"neither":              {`{"id":1}`, failure("1", CodeRequest, "neither a request nor a response")},
		"both":                 {`{"id":1,"method":"echo","result":1}`, failure("1", CodeRequest, "both a request and a response")},
		"response to nothing":  {`{"result":1}`, failure("null", CodeRequest, "a response to nothing")},
		"empty batch":          {`[]`, failure("null", CodeRequest, "an empty batch")},
		"too long":             {strings.Repeat("x", 2000), failure("null", CodeParse, "a line has more than 1000 bytes")},
	} {
		t.Run(name, func(t *testing.T) {
			w := serve(t, Options{MaxLine: 1000, Methods: []Method{
				echo,
				Listen("note", func(context.Context, struct{}) {}),
				Handle("refuse", func(context.Context, *Request, struct{}) (any, error) { return nil, Errorf(-7, "no") }),
				Handle("fail", func(context.Context, *Request, struct{}) (any, error) { return nil, errors.New("broken") }),
				Handle("odd", func(context.Context, *Request, struct{}) (any, error) { return make(chan int), nil }),
			}})
			w.send(c.in)
			w.want(c.out)
			w.send("", " ", `{"id":"on","method":"echo","params":{"text":"and on"}}`)
			w.want(`{"jsonrpc":"2.0","id":"on","result":{"text":"and on"}}`)
		})
	}
}

func TestSilentlyPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, Options{Methods: []Method{echo}})
		w.send(`{"method":"unknown"}`, `{"method":"echo"}`, `{"id":5,"result":{}}`, `{"id":"x","error":{"code":1,"message":"m"}}`,
			`{"method":"notifications/cancelled"}`, `{"method":"notifications/cancelled","params":{"requestId":77}}`, `[{"method":"unknown"}]`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}`)
		w.nothing()
	})
}

func TestBigLine(t *testing.T) {
	w := serve(t, Options{Methods: []Method{Handle("length", func(_ context.Context, _ *Request, p echoParams) (int, error) { return len(p.Text), nil })}})
	go io.WriteString(w.in, `{"id":1,"method":"length","params":{"text":"`+strings.Repeat("x", 17<<20)+`"}}`+"\n")
	w.want(`{"jsonrpc":"2.0","id":1,"result":17825792}`)
}

func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := make(chan error, 1)
		w := serve(t, Options{Methods: []Method{echo, stuck(why)}})
		w.send(`[{"id":1,"method":"stuck"},{"method":"unknown"},7,{"id":2,"method":"stuck"}]`)
		w.nothing()
		w.send(`{"method":"notifications/cancelled","params":{"requestId":1}}`)
		<-why
		w.nothing()
		w.send(`{"method":"notifications/cancelled","params":{"requestId":2}}`)
		w.want(`[` + failure("null", CodeRequest, "not an object") + `]`)
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := make(chan error, 1)
		w := serve(t, Options{Methods: []Method{stuck(why)}})
		w.send(`{"id":"A","method":"stuck"}`, `{"method":"notifications/cancelled","params":{"requestId":"\u0041","reason":"changed my mind"}}`)
		var c *CancelledError
		if err := <-why; !errors.As(err, &c) || c.Reason != "changed my mind" {
			t.Errorf("cause %v", err)
		}
		w.nothing() // a cancelled request has no answer

		w.send(`{"id":1,"method":"stuck"}`, `{"method":"notifications/cancelled","params":{"requestId":"1"}}`)
		w.nothing() // "1" is not 1
		if len(why) > 0 {
			t.Error("the wrong request was cancelled")
		}
	})
}

func TestAnswerEarlyRunOnAndBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan bool, 1)
		w := serve(t, Options{Methods: []Method{Handle("stream", func(ctx context.Context, r *Request, _ struct{}) (any, error) {
			r.Reply("answered", nil)
			for i := range 2 {
				_ = r.Conn.Notify(ctx, "tick", map[string]int{"n": i})
			}
			<-ctx.Done()
			over <- errors.As(context.Cause(ctx), new(*CancelledError))
			return "ignored", nil
		})}})
		w.send(`{"id":1,"method":"stream"}`)
		w.want(`{"jsonrpc":"2.0","id":1,"result":"answered"}`, `{"jsonrpc":"2.0","method":"tick","params":{"n":0}}`, `{"jsonrpc":"2.0","method":"tick","params":{"n":1}}`)
		w.send(`{"method":"notifications/cancelled","params":{"requestId":1}}`)
		if !<-over {
			t.Error("the context does not know that it was cancelled")
		}
		w.nothing()
	})
}

func TestIDInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := make(chan error, 2)
		w := serve(t, Options{Methods: []Method{stuck(why), echo}})
		w.send(`{"id":1,"method":"stuck"}`, `{"id":1,"method":"echo","params":{"text":""}}`)
		w.want(failure("1", CodeRequest, "the id 1 is in use"))
		w.send(`{"method":"notifications/cancelled","params":{"requestId":1}}`)
		<-why
		w.send(`{"id":1,"method":"echo","params":{"text":"free"}}`)
		w.want(`{"jsonrpc":"2.0","id":1,"result":{"text":"free"}}`)
	})
}

func TestTooManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := make(chan error, 2)
		w := serve(t, Options{Methods: []Method{stuck(why), echo}, MaxCalls: 2})
		w.send(`{"id":1,"method":"stuck"}`, `{"id":2,"method":"stuck"}`, `{"id":3,"method":"echo","params":{"text":""}}`)
		w.want(failure("3", CodeRequest, "more than 2 requests at once"))
		w.send(`{"method":"notifications/cancelled","params":{"requestId":1}}`)
		<-why
		synctest.Wait()
		w.send(`{"id":3,"method":"echo","params":{"text":"free"}}`)
		w.want(`{"jsonrpc":"2.0","id":3,"result":{"text":"free"}}`)
	})
}

// A peer that asks and never reads is not read any more, so that its answers do
// not fill the memory.
func TestAnswersThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, Options{Methods: []Method{echo}, MaxCalls: 2, MaxQueue: 1000})
		sent := make(chan int)
		go func() { // ends with the connection
			n := 0
			for ; n < 1000; n++ {
				if _, err := fmt.Fprintln(w.in, `{"id":1,"method":"nobody","params":{}}`); err != nil {
					break
				}
			}
			sent <- n
		}()
		synctest.Wait()
		select {
		case n := <-sent:
			t.Errorf("%d requests were read of a peer that reads nothing", n)
		default:
		}
		w.in.Close()
		if n := <-sent; n < 5 || n > 50 {
			t.Errorf("%d requests were read", n)
		}
	})
}

func TestLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{}), "c": make(chan struct{}), "d": make(chan struct{})}
		begun := make(chan string, 10)
		m := Handle("work", func(_ context.Context, r *Request, p echoParams) (any, error) {
			begun <- p.Text
			if p.Text == "b" {
				r.Release() // runs on while the next begins
			}
			<-gates[p.Text]
			return p.Text, nil
		}).InLane(func(params json.RawMessage) string {
			var p echoParams
			_ = json.Unmarshal(params, &p)
			return map[int]string{1: "one", 2: "two"}[p.Opt]
		})
		w := serve(t, Options{Methods: []Method{m}})
		for i, text := range []string{"a", "b", "c"} {
			w.send(fmt.Sprintf(`{"id":%d,"method":"work","params":{"text":%q,"opt":1}}`, i, text))
		}
		w.send(`{"id":9,"method":"work","params":{"text":"d","opt":2}}`, `{"method":"notifications/cancelled","params":{"requestId":1}}`)
		synctest.Wait()
		if got := []string{<-begun, <-begun}; len(begun) != 0 || !(got[0] == "a" && got[1] == "d" || got[0] == "d" && got[1] == "a") {
			t.Fatalf("begun %q and %d more, want a and d", got, len(begun))
		}
		close(gates["a"])
		w.want(`{"jsonrpc":"2.0","id":0,"result":"a"}`)
		synctest.Wait()
		if got := []string{<-begun, <-begun}; got[0] != "b" || got[1] != "c" {
			t.Errorf("then begun %q", got)
		}
		for _, n := range []string{"b", "c", "d"} {
			close(gates[n])
		}
	})
}

func TestCallsOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, Options{})
		type got struct {
			Result string
			Err    string
		}
		results := make(chan got, 10)
		ctx, cancel := context.WithCancelCause(t.Context())
		call := func(n int) {
			go func() {
				r, err := w.conn.Call(ctx, "ask", map[string]int{"n": n})
				g := got{Result: string(r)}
				if err != nil {
					g.Err = err.Error()
				}
				results <- g
			}()
			w.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ask","params":{"n":%[1]d}}`, n))
		}
		for n := range 4 {
			call(n)
		}
		for _, c := range []struct {
			reply string
			want  got
		}{
			{`{"id":1,"result":{"a":1}}`, got{`{"a":1}`, ""}},
			{`{"id":0,"error":{"code":-1,"message":"no"}}`, got{"", "no"}},
			{`{"id":2,"error":"what"}`, got{"", "an error that cannot be read"}},
		} {
			w.send(c.reply, c.reply) // the second one is nobody's
			if d := cmp.Diff(c.want, <-results); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.reply, d)
			}
		}
		cancel(errors.New("enough"))
		w.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"enough","requestId":3}}`)
		if d := cmp.Diff(got{"", "enough"}, <-results); d != "" {
			t.Error(d)
		}
		w.send(`{"id":3,"result":"late"}`)
		w.nothing()

		ctx = t.Context()
		call(4)
		w.in.Close()
		if d := cmp.Diff(got{"", ErrClosed.Error()}, <-results); d != "" {
			t.Error(d)
		}
		if _, err := w.conn.Call(ctx, "ask", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("call after the end: %v", err)
		}
	})
}

func TestEndIsHeldBack(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*wire)
		text string
		err  string
	}{
		"end of the stream": {func(w *wire) { w.in.Close() }, ErrEnd.Error(), "<nil>"},
		"half a line":       {func(w *wire) { _, _ = io.WriteString(w.in, `{"id":3,"met`); w.in.Close() }, ErrEnd.Error(), "<nil>"},
		"context":           {func(w *wire) { w.cancel(errors.New("SIGTERM")) }, "SIGTERM", "SIGTERM"},
		"read error":        {func(w *wire) { w.in.CloseWithError(errors.New("EIO")) }, "read: EIO", "read: EIO"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				why, quick := make(chan error, 1), make(chan struct{})
				slow := Handle("slow", func(ctx context.Context, _ *Request, _ struct{}) (any, error) {
					<-quick
					return "done", ctx.Err()
				})
				w := serve(t, Options{Methods: []Method{stuck(why), slow}})
				w.send(`{"id":1,"method":"stuck"}`, `{"id":2,"method":"slow"}`)
				synctest.Wait()
				go c.end(w)
				if name == "half a line" {
					w.want(failure("null", CodeParse, "not JSON"))
				}
				w.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"stopped":%q}}`, c.text))
				close(quick)
				w.want(`{"jsonrpc":"2.0","id":2,"result":"done"}`)
				if _, err := w.out.ReadByte(); err != io.EOF {
					t.Errorf("there is more: %v", err)
				}
				if err := fmt.Sprint(<-w.ended); err != c.err {
					t.Errorf("Serve: %s, want %s", err, c.err)
				}
			})
		})
	}
}

func TestHandlerThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		killed := make(chan error, 1)
		w := serve(t, Options{Drain: time.Second, Methods: []Method{Handle("deaf", func(ctx context.Context, _ *Request, _ struct{}) (any, error) {
			<-ctx.Done()
			killed <- context.Cause(ctx)
			return nil, ctx.Err()
		})}})
		w.send(`{"id":1,"method":"deaf"}`)
		synctest.Wait()
		begin := time.Now()
		w.in.Close()
		go func() { _, _ = io.Copy(io.Discard, w.out) }()
		if err := <-w.ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("the end took %v", took)
		}
		if err := <-killed; !errors.Is(err, ErrClosed) {
			t.Errorf("cause %v", err)
		}
	})
}

func TestPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := make(chan error, 1)
		w := serve(t, Options{MaxQueue: 1000, Drain: time.Second, Methods: []Method{echo, stuck(why)}})
		sent := make(chan int, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			n := 0
			for w.conn.Notify(ctx, "tick", strings.Repeat("x", 100)) == nil {
				n++
			}
			sent <- n
		}()
		synctest.Wait() // the notifications are stuck; requests and cancels are not
		w.send(`{"id":1,"method":"echo","params":{"text":""}}`, `{"id":2,"method":"stuck"}`, `{"method":"notifications/cancelled","params":{"requestId":2}}`, `rubbish`)
		<-why
		cancel()
		if n := <-sent; n < 5 || n > 20 {
			t.Errorf("%d notifications were taken", n)
		}
		w.in.Close()
		if err := <-w.ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := w.conn.Notify(t.Context(), "tick", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("notify after the end: %v", err)
		}
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("EPIPE") }

// A handler that waits for such a peer does not hold up the end.
func TestEndWithPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, Options{MaxQueue: 1000, Drain: time.Minute, Methods: []Method{Handle("talk", func(ctx context.Context, r *Request, _ struct{}) (any, error) {
			for r.Conn.Notify(ctx, "tick", strings.Repeat("x", 100)) == nil {
			}
			return nil, nil
		})}})
		w.send(`{"id":1,"method":"talk"}`)
		synctest.Wait()
		time.Sleep(readTimeout / 2)
		begin := time.Now()
		w.in.Close()
		if err := <-w.ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if took := time.Since(begin); took > readTimeout {
			t.Errorf("the end took %v", took)
		}
	})
}

// A slow one gets everything.
func TestEndWithSlowPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, Options{Drain: time.Minute, Methods: []Method{echo}})
		text := strings.Repeat("x", 10*piece)
		go func() {
			w.send(`{"id":1,"method":"echo","params":{"text":"` + text + `"}}`)
			w.in.Close()
		}()
		slow := bufio.NewReaderSize(slowly{w.out}, 1<<20)
		line, err := slow.ReadString('\n')
		if err != nil || !strings.Contains(line, text) {
			t.Errorf("got %d bytes, %v", len(line), err)
		}
	})
}

type slowly struct{ r io.Reader }

func (s slowly) Read(b []byte) (int, error) {
	time.Sleep(readTimeout / 2)
	return s.r.Read(b[:min(len(b), piece)])
}

func TestPeerThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, send := io.Pipe()
		defer send.Close()
		why := make(chan error, 1)
		c := New(t.Context(), Options{Methods: []Method{echo, stuck(why)}})
		ended := make(chan error, 1)
		go func() { ended <- c.Serve(t.Context(), in, brokenPipe{}) }()
		_, _ = io.WriteString(send, `{"id":1,"method":"stuck"}`+"\n"+`{"id":2,"method":"echo","params":{"text":""}}`+"\n")
		if err := <-ended; err == nil || err.Error() != "write: EPIPE" {
			t.Errorf("Serve: %v", err)
		}
		if err := <-why; err == nil || err.Error() != "write: EPIPE" {
			t.Errorf("cause %v", err)
		}
	})
}

func TestNotifyForSomethingThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.conn.Notify(ctx, "tick", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("notify: %v", err)
		}
		w.nothing()
	})
}

func TestNotificationIsHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan string, 2)
		w := serve(t, Options{Methods: []Method{Listen("note", func(_ context.Context, p echoParams) { heard <- p.Text })}})
		w.send(`{"method":"note","params":{}}`, `{"method":"note","params":{"text":"hi"}}`)
		w.nothing()
		if got := <-heard; got != "hi" {
			t.Errorf("heard %q", got)
		}
	})
}

// Connections that share a room take no more than that for their long lines, and give it back.
func TestRoomForLongLines(t *testing.T) {
	room := NewRoom(4 << 20)
	long := strings.Repeat("x", 4<<20) + "\n"
	one := newLineReader(strings.NewReader(long+"short\n"), 64<<20, room)
	if line, err := one.next(); err != nil || len(line) != 4<<20 {
		t.Fatalf("%d bytes, %v", len(line), err)
	}
	two := newLineReader(strings.NewReader(long+"short\n"+long), 64<<20, room)
	if _, err := two.next(); !errors.Is(err, errLong) {
		t.Errorf("a second one: %v", err)
	}
	if line, err := two.next(); err != nil || string(line) != "short" {
		t.Errorf("after it: %q, %v", line, err)
	}
	if _, err := one.next(); err != nil {
		t.Fatal(err)
	}
	if line, err := two.next(); err != nil || len(line) != 4<<20 {
		t.Errorf("when there is room: %d bytes, %v", len(line), err)
	}
	two.release()
	if left := room.left.Load(); left != 4<<20 {
		t.Errorf("%d bytes are left", left)
	}
}

package modeltest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	"github.com/fermata-agent/fermata/protocol"
)

// Key is the key that the suite gives to an adapter, and that must not appear in any error.
const Key = "sk-conformance-0123456789abcdef"

// An Adapter is a client to be tested by the suite.
type Adapter struct {
	Wire   wirecheck.Wire
	New    func(Config) model.Client
	Custom bool // the wire knows custom tools
}

// Config is what an adapter needs to know.
type Config struct {
	URL  string // base address, ending in /v1
	Key  string
	HTTP http.RoundTripper // nil is the default
	Idle time.Duration     // 0 is the default
}

// Conform runs the suite that every adapter passes.
func Conform(t *testing.T, a Adapter) {
	t.Run("items", func(t *testing.T) { conformItems(t, a) })
	t.Run("history", func(t *testing.T) { conformHistory(t, a) })
	t.Run("errors", func(t *testing.T) { conformErrors(t, a) })
	t.Run("drops", func(t *testing.T) { conformDrops(t, a) })
	t.Run("stops", func(t *testing.T) { conformStops(t, a) })
	t.Run("silence", func(t *testing.T) { conformSilence(t, a) })
}

// local returns a client that reaches the server without a network.
func (a Adapter) local(s *Server) model.Client {
	return a.New(Config{URL: "http://model.test/v1", Key: Key, HTTP: s.Transport()})
}

// dialing returns a client that reaches the server over the loopback network.
func (a Adapter) dialing(s *Server) model.Client { return a.New(Config{URL: s.URL(), Key: Key}) }

// Hello is a prompt that says hi and offers two tools.
func Hello() model.Prompt {
	return model.Prompt{
		Model: "test-model", Instructions: "be brief", CacheKey: "conversation-1",
		Items: []*protocol.PromptItem{{Kind: protocol.PromptUser, Content: protocol.Text("hi")}},
		Tools: []model.ToolSpec{
			{Name: "shell", Description: "runs a command", Kind: protocol.CallFunction, Parameters: []byte(`{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"]}`)},
			{Name: "patch", Description: "changes files", Kind: protocol.CallCustom, Grammar: "start: /.+/"},
		},
	}
}

type outcome struct {
	rec *Recorder
	end model.End
	err error
}

// run streams a prompt and checks that the rules of a sink were kept.
func run(t *testing.T, ctx context.Context, c model.Client, p model.Prompt) outcome {
	t.Helper()
	o := outcome{rec: &Recorder{}}
	o.end, o.err = c.Stream(ctx, p, o.rec)
	for _, b := range o.rec.Broken {
		t.Errorf("rule of a sink broken: %s", b)
	}
	return o
}

func (o outcome) wants(t *testing.T, items ...string) {
	t.Helper()
	if o.err != nil {
		t.Fatalf("Stream: %v", o.err)
	}
	if d := cmp.Diff(items, o.rec.Summary()); d != "" {
		t.Errorf("items (-want +got):\n%s", d)
	}
}

const (
	shellArgs = `{"command":["bash","-lc","echo \"é😀\" > a.txt"]}`
	nested    = `{"command":["a"],"env":{"X":"\\\"{}[]"},"n":-1.5e3}`
)

func conformItems(t *testing.T, a Adapter) {
	tests := map[string]struct {
		steps []Step
		want  []string
	}{
		"text":                {[]Step{Say("Hel", "lo, ", "wörld 😀\n\"\\\t<&>\u2028")}, []string{`text "Hello, wörld 😀\n\"\\\t<&>\u2028"`}},
		"one piece":           {[]Step{Say("x")}, []string{`text "x"`}},
		"many pieces":         {[]Step{Say(strings.Split(strings.Repeat("word ", 300), "o")...)}, []string{`text "` + strings.ReplaceAll(strings.Repeat("word ", 300), "o", "") + `"`}},
		"a call":              {[]Step{Call("call_1", "shell", shellArgs)}, []string{"call call_1 shell " + shellArgs}},
		"parallel calls":      {[]Step{Calls(ToolCall{ID: "call_1", Name: "shell", Arguments: shellArgs}, ToolCall{ID: "call_2", Name: "shell", Arguments: nested})}, []string{"call call_1 shell " + shellArgs, "call call_2 shell " + nested}},
		"calls in sequence":   {[]Step{Call("call_1", "shell", shellArgs), Call("call_2", "shell", nested), Call("call_3", "shell", `{}`)}, []string{"call call_1 shell " + shellArgs, "call call_2 shell " + nested, "call call_3 shell {}"}},
		"text and a call":     {[]Step{Say("I ", "look"), Call("call_1", "shell", shellArgs)}, []string{`text "I look"`, "call call_1 shell " + shellArgs}},
		"reasoning":           {[]Step{Think("h", "m"), Say("ok")}, []string{`think "hm"`, `text "ok"`}},
		"reasoning in parts":  {[]Step{ThinkParts("first", "second"), Say("ok")}, []string{`think "first\n\nsecond"`, `text "ok"`}},
		"reasoning and calls": {[]Step{Think("hm"), Say("so"), Call("call_1", "shell", nested)}, []string{`think "hm"`, `text "so"`, "call call_1 shell " + nested}},
		"signs of life":       {[]Step{Ping(), Say("a"), Ping(), Ping()}, []string{`text "a"`}},
		"a long piece":        {[]Step{Say(strings.Repeat("0123456789abcdef", 1<<16))}, []string{`text "` + strings.Repeat("0123456789abcdef", 1<<16) + `"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := New(t, Respond(tt.steps...), Respond(tt.steps...).KeepOpen())
			o := run(t, t.Context(), a.local(s), Hello())
			o.wants(t, tt.want...)
			if o.end.ID == "" || cmp.Diff(o.end.Usage, &protocol.Usage{Input: 10, Output: 5, Total: 15}) != "" {
				t.Errorf("end is %+v, usage %+v", o.end, o.end.Usage)
			}
			t.Run("over a socket that stays open", func(t *testing.T) {
				run(t, t.Context(), a.dialing(s), Hello()).wants(t, tt.want...)
				Wait(t, "the client to hang up", s.Wait(2).Gone())
			})
		})
	}
	t.Run("slowly", func(t *testing.T) {
		for _, n := range []int{1, 2, 3, 7, 100} {
			s := New(t, Respond(Think("hm"), Say("é", "😀"), Call("call_1", "shell", shellArgs)).Slowly(n, 0))
			run(t, t.Context(), a.local(s), Hello()).wants(t, `think "hm"`, `text "é😀"`, "call call_1 shell "+shellArgs)
		}
	})
	t.Run("the body is read to its end", func(t *testing.T) {
		// Only then can the connection be used for the next request.
		end := &endReader{}
		body := io.MultiReader(bytes.NewReader(record(t, a, []Step{Say("x")})), end)
		o := run(t, t.Context(), a.New(Config{URL: "http://model.test/v1", Key: Key, HTTP: replayReader{body}}), Hello())
		o.wants(t, `text "x"`)
		if !end.read {
			t.Error("it was not")
		}
	})
	conformUsage(t, a)
	conformDeltas(t, a)
	if a.Custom {
		t.Run("custom", func(t *testing.T) {
			s := New(t, Respond(Custom("call_1", "patch", "*** Begin\n")))
			o := run(t, t.Context(), a.local(s), Hello())
			o.wants(t, "call call_1 patch *** Begin\n")
			if k := o.rec.Finished()[0].(*protocol.ToolCall).Kind; k != protocol.CallCustom {
				t.Errorf("kind is %q", k)
			}
		})
	}
}

func conformUsage(t *testing.T, a Adapter) {
	t.Run("usage", func(t *testing.T) {
		want := protocol.Usage{Input: 1200, Cached: 1000, Output: 34, Total: 1234}
		if a.Wire == wirecheck.Anthropic {
			want.CacheWrite = 50
		} else {
			want.Reasoning = 12
		}
		s := New(t, Respond(Say("x"), Usage(want)), Respond(Say("x"), NoUsage()))
		c := a.local(s)
		o := run(t, t.Context(), c, Hello())
		if d := cmp.Diff(&want, o.end.Usage); d != "" || o.err != nil {
			t.Errorf("error %v, usage (-want +got):\n%s", o.err, d)
		}
		if o := run(t, t.Context(), c, Hello()); o.err != nil || a.Wire != wirecheck.Anthropic && o.end.Usage != nil {
			t.Errorf("without usage: error %v, usage %+v", o.err, o.end.Usage)
		}
	})
}

// conformDeltas checks that pieces are passed on when they arrive, not at the end.
func conformDeltas(t *testing.T, a Adapter) {
	t.Run("deltas are live", func(t *testing.T) {
		gate := NewGate()
		s := New(t, Respond(Think("hm"), SayCut("one"), Pause(gate), Raw("")))
		rec := &Recorder{OnDelta: func(all string) {
			if all == "hmone" {
				gate.Open()
			}
		}}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := a.local(s).Stream(ctx, Hello(), rec); errors.Is(err, context.DeadlineExceeded) {
			t.Error("the text did not arrive before the response went on")
		}
	})
}

func conformDrops(t *testing.T, a Adapter) {
	steps := []Step{
		Think("h", "m"), Say("some ", "é"),
		Calls(ToolCall{ID: "call_1", Name: "shell", Arguments: nested}, ToolCall{ID: "call_2", Name: "shell", Arguments: `{"command":["ls"]}`}),
	}
	whole := []string{`think "hm"`, `text "some é"`, "call call_1 shell " + nested, `call call_2 shell {"command":["ls"]}`}
	body := record(t, a, steps)
	step := 1
	switch {
	case testing.Short():
		step = 11
	case !longtest.On():
		step = 3
	}
	for name, end := range map[string]error{"cut": io.ErrUnexpectedEOF, "ended": io.EOF} {
		t.Run(name+" at every byte", func(t *testing.T) {
			successes := 0
			for n := 0; n < len(body); n += step {
				o := run(t, t.Context(), a.New(Config{URL: "http://model.test/v1", Key: Key, HTTP: replay{body[:n], end}}), Hello())
				got := o.rec.Summary()
				if o.err == nil {
					successes++
					if d := cmp.Diff(whole, got); d != "" {
						t.Fatalf("after %d of %d bytes: a false success (-want +got):\n%s", n, len(body), d)
					}
					continue
				}
				wantConnectionError(t, o.err)
				for i, item := range got {
					if i >= len(whole) || item != whole[i] {
						t.Fatalf("after %d of %d bytes: item %s, want %v", n, len(body), item, whole)
					}
				}
			}
			// Only what follows the end mark may be missing.
			if successes > len(body)/8 {
				t.Errorf("%d of %d cuts were taken for a success", successes, len(body))
			}
		})
	}
}

func wantConnectionError(t *testing.T, err error) {
	t.Helper()
	var e *protocol.Error
	if !errors.As(err, &e) || !e.Retry || e.Kind != protocol.ErrorConnection && e.Kind != protocol.ErrorModel {
		t.Fatalf("error is %#v, want a failure that can be retried", err)
	}
	if strings.Contains(err.Error(), Key) {
		t.Fatalf("the key is in the error: %v", err)
	}
}

// record returns the body of a reply.
func record(t *testing.T, a Adapter, steps []Step) []byte {
	t.Helper()
	s := New(t, Respond(steps...))
	tape := &recorder{next: s.Transport()}
	o := run(t, t.Context(), a.New(Config{URL: "http://model.test/v1", Key: Key, HTTP: tape}), Hello())
	if o.err != nil {
		t.Fatal(o.err)
	}
	return tape.body.Bytes()
}

// A recorder keeps the bodies that pass through it.
type recorder struct {
	next http.RoundTripper
	body bytes.Buffer
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(resp.Body, &r.body), resp.Body}
	}
	return resp, err
}

// A replay answers every request with a body that ends with an error.
type replay struct {
	body []byte
	end  error
}

// RoundTrip implements http.RoundTripper.
func (r replay) RoundTrip(req *http.Request) (*http.Response, error) {
	return replayReader{io.MultiReader(bytes.NewReader(r.body), iotest.ErrReader(r.end))}.RoundTrip(req)
}

// endReader is at its end, and notes that it was read.
type endReader struct{ read bool }

func (r *endReader) Read([]byte) (int, error) {
	r.read = true
	return 0, io.EOF
}

// A replayReader answers one request with what it reads.
type replayReader struct{ body io.Reader }

// RoundTrip implements http.RoundTripper.
func (r replayReader) RoundTrip(req *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, req.Body)
	req.Body.Close()
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: req,
		Body: io.NopCloser(r.body),
	}, nil
}

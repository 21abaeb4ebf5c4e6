package modeltest

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fermata-agent/fermata/internal/model/emit"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	"github.com/fermata-agent/fermata/protocol"
)

// A refusal is an answer of a service and what must become of it.
type refusal struct {
	name    string
	reply   Reply
	kind    protocol.ErrorKind
	retry   bool
	after   time.Duration
	message string // is in it
}

func openAI(kind, code, message string) string {
	return emit.Marshal(obj{"error": obj{"message": message, "type": kind, "param": nil, "code": code}})
}

func refusals() []refusal {
	return []refusal{
		{name: "bad key", reply: Status(401, openAI("invalid_request_error", "invalid_api_key", "Incorrect API key provided: "+Key+".")), kind: protocol.ErrorAuth, message: "Incorrect API key"},
		{name: "forbidden", reply: Status(403, openAI("invalid_request_error", "unsupported_country", "Country not supported")), kind: protocol.ErrorAuth},
		{name: "unknown model", reply: Status(404, openAI("invalid_request_error", "model_not_found", "The model `x` does not exist or you do not have access to it.")), kind: protocol.ErrorUnknownModel},
		{name: "unknown model in a 400", reply: Status(400, openAI("invalid_request_error", "model_not_found", "The requested model 'x' does not exist.")), kind: protocol.ErrorUnknownModel},
		{name: "unknown model of a local server", reply: Status(404, `{"error":"model \"x\" not found, try pulling it first"}`), kind: protocol.ErrorUnknownModel, message: "try pulling it"},
		{name: "no such address", reply: Status(404, "404 page not found", "Content-Type", "text/plain"), kind: protocol.ErrorRequest},
		{name: "context length", reply: Status(400, openAI("invalid_request_error", "context_length_exceeded", "Your input exceeds the context window of this model.")), kind: protocol.ErrorContextLength},
		{name: "context length in words", reply: Status(400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`), kind: protocol.ErrorContextLength},
		{name: "usage limit", reply: Status(429, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_in_seconds":3600}}`), kind: protocol.ErrorUsageLimit, after: time.Hour},
		{name: "usage not included", reply: Status(429, `{"error":{"type":"usage_not_included","message":"Not in your plan"}}`), kind: protocol.ErrorUsageLimit},
		{name: "quota", reply: Status(429, openAI("insufficient_quota", "insufficient_quota", "You exceeded your current quota"), "Retry-After", "1"), kind: protocol.ErrorUsageLimit},
		{name: "no credit", reply: Status(402, `{"error":{"message":"Insufficient credits","code":402}}`), kind: protocol.ErrorUsageLimit},
		{name: "rate limit with a header", reply: Status(429, openAI("requests", "rate_limit_exceeded", "Rate limit reached"), "Retry-After", "7"), kind: protocol.ErrorRateLimit, retry: true, after: 7 * time.Second},
		{name: "rate limit in milliseconds", reply: Status(429, openAI("requests", "rate_limit_exceeded", "Rate limit reached"), "Retry-After-Ms", "250", "Retry-After", "1"), kind: protocol.ErrorRateLimit, retry: true, after: 250 * time.Millisecond},
		{name: "rate limit in words", reply: Status(429, openAI("tokens", "rate_limit_exceeded", "Rate limit reached. Please try again in 1.5s. Visit us.")), kind: protocol.ErrorRateLimit, retry: true, after: 1500 * time.Millisecond},
		{name: "rate limit without more", reply: Status(429, ""), kind: protocol.ErrorRateLimit, retry: true},
		{name: "timeout", reply: Status(408, `{"detail":"timed out"}`), kind: protocol.ErrorModel, retry: true, message: "timed out"},
		{name: "conflict", reply: Status(409, `{"message":"busy"}`), kind: protocol.ErrorModel, retry: true, message: "busy"},
		{name: "server error", reply: Status(500, openAI("server_error", "", "The server had an error")), kind: protocol.ErrorModel, retry: true, message: "The server had an error"},
		{name: "bad gateway", reply: Status(502, "<html>Bad gateway</html>", "Content-Type", "text/html"), kind: protocol.ErrorModel, retry: true, message: "502"},
		{name: "unavailable", reply: Status(503, "", "Retry-After", "3"), kind: protocol.ErrorModel, retry: true, after: 3 * time.Second},
		{name: "overloaded", reply: Status(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), kind: protocol.ErrorModel, retry: true, message: "Overloaded"},
		{name: "bad request", reply: Status(400, openAI("invalid_request_error", "", "Unsupported value: 'x'")), kind: protocol.ErrorRequest, message: "Unsupported value: 'x'"},
		{name: "unprocessable", reply: Status(422, `[{"error":{"code":422,"message":"no","status":"INVALID"}}]`), kind: protocol.ErrorRequest, message: "no"},
		{name: "too large", reply: Status(413, "too large"), kind: protocol.ErrorContextLength, message: "too large"},
		{name: "redirect", reply: Status(301, "", "Location", "https://other.test/v1?key="+Key), kind: protocol.ErrorRequest, message: "https://other.test/v1"},
		{name: "no stream", reply: Status(200, `{"id":"x"}`), kind: protocol.ErrorModel, message: "without a stream"},
		{name: "a web page", reply: Status(200, `<html>login</html>`, "Content-Type", "text/html; charset=utf-8"), kind: protocol.ErrorModel, message: "without a stream"},
		{name: "an error with status 200", reply: Status(200, openAI("rate_limit_error", "rate_limit_exceeded", "slow down")), kind: protocol.ErrorRateLimit, retry: true},
		{name: "gone before the headers", reply: Respond(Drop()), kind: protocol.ErrorConnection, retry: true},
		{name: "ended at once", reply: Respond(Close()), kind: protocol.ErrorConnection, retry: true},
		{name: "failed", reply: Respond(Say("x"), Fail("server_error", "it broke")), kind: protocol.ErrorModel, retry: true, message: "it broke"},
		{name: "failed by rate limit", reply: Respond(Fail("rate_limit_exceeded", "Rate limit reached. Please try again in 28ms.")), kind: protocol.ErrorRateLimit, retry: true, after: 28 * time.Millisecond},
		{name: "failed by context length", reply: Respond(Fail("context_length_exceeded", "too long")), kind: protocol.ErrorContextLength},
		{name: "failed by quota", reply: Respond(Fail("insufficient_quota", "pay")), kind: protocol.ErrorUsageLimit},
		{name: "failed by the prompt", reply: Respond(Fail("invalid_prompt", "not that")), kind: protocol.ErrorRequest},
		{name: "error event", reply: Respond(Say("x"), ErrorEvent("overloaded_error", "Overloaded")), kind: protocol.ErrorModel, retry: true, message: "Overloaded"},
		{name: "error event with a key", reply: Respond(ErrorEvent("server_error", "bad "+Key)), kind: protocol.ErrorModel, retry: true, message: "bad "},
		{name: "incomplete", reply: Respond(SayCut("x"), Incomplete("max_output_tokens")), kind: protocol.ErrorModel},
		{name: "an unreadable event", reply: Respond(Say("x"), Raw("data: {\"type\":\n\n")), kind: protocol.ErrorModel, retry: true},
	}
}

func conformErrors(t *testing.T, a Adapter) {
	for _, tt := range refusals() {
		t.Run(tt.name, func(t *testing.T) {
			s := New(t, tt.reply)
			o := run(t, t.Context(), a.dialing(s), Hello())
			var e *protocol.Error
			if !errors.As(o.err, &e) {
				t.Fatalf("error is %#v", o.err)
			}
			if e.Kind != tt.kind || e.Retry != tt.retry || e.After != tt.after {
				t.Errorf("%s, retry %v, after %v (%s)\nwant %s, retry %v, after %v", e.Kind, e.Retry, e.After, e.Message, tt.kind, tt.retry, tt.after)
			}
			if e.Message == "" || !strings.Contains(e.Message, tt.message) {
				t.Errorf("message is %q, want %q in it", e.Message, tt.message)
			}
			if all := e.Message + e.Hint; strings.Contains(all, Key) || strings.Contains(all, "0123456789") {
				t.Errorf("the key is in the error: %s", all)
			}
		})
	}
	t.Run("connection refused", func(t *testing.T) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := ln.Addr().String()
		ln.Close()
		o := run(t, t.Context(), a.New(Config{URL: "http://" + addr + "/v1?k=" + Key, Key: Key}), Hello())
		wantConnectionError(t, o.err)
	})
	t.Run("not an address", func(t *testing.T) {
		var e *protocol.Error
		o := run(t, t.Context(), a.New(Config{URL: "nonsense", Key: Key}), Hello())
		if !errors.As(o.err, &e) || e.Retry || e.Kind != protocol.ErrorRequest {
			t.Errorf("error is %#v", o.err)
		}
	})
}

func conformHistory(t *testing.T, a Adapter) {
	t.Run("everything sent back", func(t *testing.T) { conformRoundTrip(t, a) })
	t.Run("refused", func(t *testing.T) { conformRefusedHistory(t, a) })
	t.Run("a call that only the service knows", func(t *testing.T) {
		if a.Wire == wirecheck.Anthropic {
			t.Skip("this wire has no place for it")
		}
		s := New(t, Respond(Say("ok")))
		s.Remember("call_/lost-1")
		s.ExpectRefusals()
		p := Hello()
		c := a.local(s)
		var e *protocol.Error
		if o := run(t, t.Context(), c, p); !errors.As(o.err, &e) || e.Kind != protocol.ErrorHistory || e.Call == nil || *e.Call != (protocol.CallFault{WireID: "call_/lost-1", Fault: protocol.CallWithoutOutput}) {
			t.Fatalf("error is %#v", o.err)
		}
		p.UnknownCalls = []string{e.Call.WireID}
		run(t, t.Context(), c, p).wants(t, `text "ok"`)
		items := s.Wait(2).Items
		if n := len(items); n < 2 || items[n-1].Kind != wirecheck.User || items[n-2].Text != wirecheck.Aborted {
			t.Errorf("the lone output is not before the last message: %+v", items)
		}
	})
}

// conformRoundTrip answers a response with its outputs, in three rounds, and
// checks that each request begins with the one before.
func conformRoundTrip(t *testing.T, a Adapter) {
	s := New(t,
		Respond(Think("hm"), Say("I look"), Calls(ToolCall{ID: "call_1", Name: "shell", Arguments: nested}, ToolCall{ID: "call_2", Name: "shell", Arguments: shellArgs})),
		Respond(Call("call_1", "shell", `{}`)), // services repeat ids
		Respond(Say("done")),
		Respond(Say("still here")),
	)
	c := a.local(s)
	p := Hello()
	p.Items[0].Content = append(p.Items[0].Content, protocol.Content{Type: protocol.ContentImage, ImageURL: "data:image/png;base64,AAAA"})
	for range 3 {
		o := run(t, t.Context(), c, p)
		if o.err != nil {
			t.Fatal(o.err)
		}
		p.Items = append(p.Items, Answer(o.rec.Finished())...)
	}
	p.Items = append(p.Items, &protocol.PromptItem{Kind: protocol.PromptUser, Content: protocol.Text("<turn_aborted>x</turn_aborted>")},
		&protocol.PromptItem{Kind: protocol.PromptUser, Content: protocol.Text("go on")})
	run(t, t.Context(), c, p).wants(t, `text "still here"`)

	var before []wirecheck.Item
	for _, req := range s.Requests() {
		if d := cmp.Diff(before, req.Items[:len(before)], cmpopts.EquateEmpty()); d != "" {
			t.Errorf("request %d does not begin with the one before:\n%s", req.Number, d)
		}
		before = req.Items
	}
	var calls []string
	for _, it := range before {
		if it.Kind == wirecheck.Call {
			calls = append(calls, it.ID+" "+it.Text)
		}
	}
	again := "call_1 {}"
	if a.Wire == wirecheck.Anthropic {
		again = "call_1_2 {}" // this wire wants every id once
	}
	if d := cmp.Diff([]string{"call_1 " + nested, "call_2 " + shellArgs, again}, calls); d != "" {
		t.Errorf("calls sent back (-want +got):\n%s", d)
	}
}

// Answer makes prompt items of a response: its items, and after them an output
// for each call.
func Answer(items []protocol.Body) []*protocol.PromptItem {
	var out, outputs []*protocol.PromptItem
	for _, b := range items {
		switch b := b.(type) {
		case *protocol.AssistantMessage:
			out = append(out, &protocol.PromptItem{Kind: protocol.PromptAssistant, Text: b.Text, Raw: b.Raw})
		case *protocol.Reasoning:
			out = append(out, &protocol.PromptItem{Kind: protocol.PromptReasoning, Text: b.Text, Raw: b.Raw})
		case *protocol.ToolCall:
			out = append(out, &protocol.PromptItem{Kind: protocol.PromptCall, WireID: b.WireID, CallKind: b.Kind, Name: b.Name, Arguments: b.Arguments, Raw: b.Raw})
			outputs = append(outputs, &protocol.PromptItem{Kind: protocol.PromptOutput, WireID: b.WireID, CallKind: b.Kind, Text: "output of " + b.WireID})
		}
	}
	return append(out, outputs...)
}

func conformRefusedHistory(t *testing.T, a Adapter) {
	call := func(id string) *protocol.PromptItem {
		return &protocol.PromptItem{Kind: protocol.PromptCall, WireID: id, CallKind: protocol.CallFunction, Name: "shell", Arguments: "{}"}
	}
	output := func(id string) *protocol.PromptItem {
		return &protocol.PromptItem{Kind: protocol.PromptOutput, WireID: id, CallKind: protocol.CallFunction, Text: "x"}
	}
	user := &protocol.PromptItem{Kind: protocol.PromptUser, Content: protocol.Text("next")}
	tests := map[string]struct {
		items []*protocol.PromptItem
		want  protocol.CallFault
	}{
		"no output":          {[]*protocol.PromptItem{call("call_Az-09/_x"), user}, protocol.CallFault{WireID: "call_Az-09/_x", Fault: protocol.CallWithoutOutput}},
		"one of two outputs": {[]*protocol.PromptItem{call("call_1"), call("call_2"), output("call_1"), user}, protocol.CallFault{WireID: "call_2", Fault: protocol.CallWithoutOutput}},
		"output too late":    {[]*protocol.PromptItem{call("call_1"), user, output("call_1")}, protocol.CallFault{WireID: "call_1", Fault: protocol.CallWithoutOutput}},
		"no call":            {[]*protocol.PromptItem{output("call_9"), user}, protocol.CallFault{WireID: "call_9", Fault: protocol.OutputWithoutCall}},
		"two outputs":        {[]*protocol.PromptItem{call("call_1"), output("call_1"), output("call_1"), user}, protocol.CallFault{WireID: "call_1", Fault: protocol.OutputTwice}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := New(t)
			s.ExpectRefusals()
			p := Hello()
			p.Items = append(p.Items, tt.items...)
			o := run(t, t.Context(), a.local(s), p)
			var e *protocol.Error
			if !errors.As(o.err, &e) || e.Kind != protocol.ErrorHistory || e.Retry || e.Call == nil {
				t.Fatalf("error is %#v", o.err)
			}
			if *e.Call != tt.want {
				t.Errorf("fault is %+v, want %+v", *e.Call, tt.want)
			}
		})
	}
}

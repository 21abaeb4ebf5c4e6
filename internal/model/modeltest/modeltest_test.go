package modeltest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	"github.com/fermata-agent/fermata/protocol"
)

// quiet is a testing.TB that keeps what a server complains of.
type quiet struct {
	testing.TB
	errs    []string
	cleanup []func()
}

func (q *quiet) Helper()          {}
func (q *quiet) Cleanup(f func()) { q.cleanup = append(q.cleanup, f) }
func (q *quiet) Errorf(format string, args ...any) {
	q.errs = append(q.errs, fmt.Sprintf(format, args...))
}

func (q *quiet) end() {
	for _, f := range q.cleanup {
		f()
	}
}

const question = `{"model":"m","input":"hi","messages":[{"role":"user","content":"hi"}],"stream":true}`

var paths = map[wirecheck.Wire]string{
	wirecheck.Responses: "/v1/responses", wirecheck.Chat: "/v1/chat/completions", wirecheck.Anthropic: "/v1/messages",
}

func ask(t *testing.T, ctx context.Context, s *Server, path, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://model.test"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return (&http.Client{Transport: s.Transport()}).Do(req)
}

func body(t *testing.T, s *Server, path, question string) (int, string, error) {
	t.Helper()
	resp, err := ask(t, t.Context(), s, path, question)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// Every wire's stream is made of well-formed events, and of those that a client
// of that wire waits for.
func TestStreamsAreWellFormed(t *testing.T) {
	steps := []Step{
		Think("h", "m"), Say("a", "b"), Ping(),
		Calls(ToolCall{ID: "c1", Name: "f", Arguments: `{"a":"é"}`}, ToolCall{ID: "c2", Name: "g", Arguments: "{}"}), Custom("c3", "p", "x"),
	}
	want := map[wirecheck.Wire][]string{
		wirecheck.Responses: {"response.created", "response.output_item.done", "response.function_call_arguments.delta", "response.custom_tool_call_input.done", "response.completed"},
		wirecheck.Chat:      {`"finish_reason":"tool_calls"`, `"reasoning_content":"h"`, `"usage"`, "[DONE]"},
		wirecheck.Anthropic: {"message_start", "thinking_delta", "signature_delta", "input_json_delta", `"stop_reason":"tool_use"`, "message_stop"},
	}
	for wire, path := range paths {
		s := New(t, Respond(steps...))
		status, text, err := body(t, s, path, question)
		if err != nil || status != 200 {
			t.Errorf("%s: %d, %v", wire, status, err)
		}
		for _, w := range want[wire] {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %s in\n%s", wire, w, text)
			}
		}
		lines := bufio.NewScanner(strings.NewReader(text))
		kind := ""
		for lines.Scan() {
			if k, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				kind = k
			}
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok || data == "[DONE]" {
				continue
			}
			var v struct{ Type string }
			if err := json.Unmarshal([]byte(data), &v); err != nil || v.Type != kind {
				t.Errorf("%s: event %q is %s (%v)", wire, kind, data, err)
			}
		}
	}
}

func TestEndings(t *testing.T) {
	tests := map[string]struct {
		step Step
		want map[wirecheck.Wire]string
	}{
		"incomplete": {Incomplete("max_output_tokens"), map[wirecheck.Wire]string{wirecheck.Responses: `"reason":"max_output_tokens"`, wirecheck.Chat: `"finish_reason":"length"`, wirecheck.Anthropic: `"stop_reason":"max_tokens"`}},
		"failed":     {Fail("code_x", "why"), map[wirecheck.Wire]string{wirecheck.Responses: "response.failed", wirecheck.Chat: `"message":"why"`, wirecheck.Anthropic: `"type":"code_x"`}},
		"error":      {ErrorEvent("code_x", "why"), map[wirecheck.Wire]string{wirecheck.Responses: `"code":"code_x"`, wirecheck.Chat: `"code":"code_x"`, wirecheck.Anthropic: "event: error"}},
		"finish":     {Finish("odd"), map[wirecheck.Wire]string{wirecheck.Responses: "response.completed", wirecheck.Chat: `"finish_reason":"odd"`, wirecheck.Anthropic: `"stop_reason":"odd"`}},
		"no usage":   {NoUsage(), map[wirecheck.Wire]string{wirecheck.Responses: `"usage":null`, wirecheck.Chat: "[DONE]", wirecheck.Anthropic: "message_stop"}},
		"raw":        {Raw("data: odd\n\n"), map[wirecheck.Wire]string{wirecheck.Responses: "data: odd", wirecheck.Chat: "data: odd", wirecheck.Anthropic: "data: odd"}},
	}
	for name, tt := range tests {
		for wire, path := range paths {
			_, text, err := body(t, New(t, Respond(SayCut("x"), tt.step)), path, question)
			if err != nil || !strings.Contains(text, tt.want[wire]) {
				t.Errorf("%s %s: no %s in (%v)\n%s", name, wire, tt.want[wire], err, text)
			}
		}
	}
	_, text, _ := body(t, New(t, Respond(Say("x"), Close())), "/v1/responses", question)
	if strings.Contains(text, "completed\"}") || strings.Contains(text, "response.completed") {
		t.Errorf("Close sends an end mark: %s", text)
	}
}

func TestTheScriptIsFollowedAndRecorded(t *testing.T) {
	s := New(t, Status(418, "tea", "X-Kind", "green"), From(func(r *Request) Reply { return Respond(Say(fmt.Sprint("number ", r.Number))) }))
	s.Add(Respond(Say("third")))
	s.Otherwise(Respond(Say("other")))
	resp, err := ask(t, t.Context(), s, "/v1/responses?a=b", question)
	if err != nil || resp.StatusCode != 418 || resp.Header.Get("X-Kind") != "green" {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	for _, want := range []string{"number 2", "third", "other", "other"} {
		if _, text, err := body(t, s, "/v1/responses", question); err != nil || !strings.Contains(text, want) {
			t.Errorf("no %s in %s (%v)", want, text, err)
		}
	}
	req := s.Wait(1)
	Wait(t, "the request to be finished", req.Finished())
	if req.Number != 1 || req.Path != "/v1/responses" || req.Query.Get("a") != "b" || string(req.Raw) != question || req.Body()["model"] != "m" || req.Wire != wirecheck.Responses {
		t.Errorf("request is %+v", req)
	}
	if d := cmp.Diff([]wirecheck.Item{{Kind: wirecheck.User, Text: "hi"}}, req.Items); d != "" {
		t.Errorf("items:\n%s", d)
	}
	if got := req.List("messages"); len(got) != 1 || got[0]["role"] != "user" || req.List("nothing") != nil {
		t.Errorf("messages are %v", got)
	}
	if n := len(s.Requests()); n != 5 {
		t.Errorf("%d requests", n)
	}
	select {
	case <-req.Gone():
		t.Error("a client that read everything is gone")
	default:
	}
}

func TestMoreRequestsThanTheScriptSays(t *testing.T) {
	q := &quiet{TB: t}
	s := New(q)
	if status, _, _ := body(t, s, "/v1/responses", question); status != http.StatusNotImplemented {
		t.Errorf("status %d", status)
	}
	if len(q.errs) != 1 || !strings.Contains(q.errs[0], "more than the script") {
		t.Errorf("complaints: %v", q.errs)
	}
}

func TestAnInvalidHistoryIsRefused(t *testing.T) {
	const bad = `{"input":[{"type":"function_call_output","call_id":"call_1","output":"aborted"}]}`
	q := &quiet{TB: t}
	s := New(q, Respond(Say("ok")))
	status, text, _ := body(t, s, "/v1/responses", bad)
	if want := `{"error":{"code":null,"message":"No tool call found for function call output with call_id call_1.","param":"input","type":"invalid_request_error"}}`; status != 400 || text != want {
		t.Errorf("%d %s", status, text)
	}
	if f := s.Wait(1).Fault; f == nil || f.Kind != wirecheck.Orphaned {
		t.Errorf("fault is %v", f)
	}
	q.end()
	if len(q.errs) != 1 {
		t.Errorf("the test was not told of the refusal: %v", q.errs)
	}
	q.errs = nil
	s.ExpectRefusals()
	q.end()
	if len(q.errs) != 0 {
		t.Errorf("an expected refusal is reported: %v", q.errs)
	}

	s.Remember("call_1")
	if status, text, _ := body(t, s, "/v1/responses", bad); status != 200 {
		t.Errorf("a remembered call: %d %s", status, text)
	}
	if status, text, _ := body(t, s, "/v1/responses", question); status != 400 || !strings.Contains(text, "No tool output found for function call call_1.") {
		t.Errorf("a remembered call without output: %d %s", status, text)
	}
	s.Forget()
	s.Add(Respond(Say("ok")))
	if status, _, _ := body(t, s, "/v1/responses", question); status != 200 {
		t.Errorf("a forgotten call: %d", status)
	}
}

func TestWhatIsNoRequest(t *testing.T) {
	s := New(t)
	for _, b := range []string{"", "nonsense", `{"input":5}`} {
		if status, text, _ := body(t, s, "/v1/responses", b); status != 400 || !strings.Contains(text, "not a request") {
			t.Errorf("%q: %d %s", b, status, text)
		}
	}
	if status, _, _ := body(t, s, "/v1/elsewhere", question); status != 404 {
		t.Errorf("elsewhere: %d", status)
	}
	resp, err := http.Get(s.URL() + "/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); !bytes.Contains(b, []byte("test-model")) {
		t.Errorf("models: %s", b)
	}
	resp, err = http.Get(s.URL() + "/responses")
	if err != nil || resp.StatusCode != 404 {
		t.Errorf("GET: %v, %v", resp, err)
	}
	resp.Body.Close()
}

func TestCuts(t *testing.T) {
	whole := func() string {
		_, text, err := body(t, New(t, Respond(Say("hello"))), "/v1/chat/completions", question)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}()
	for _, n := range []int{0, 1, 100, len(whole) - 1} {
		_, text, err := body(t, New(t, Respond(Say("hello")).DropAfter(n)), "/v1/chat/completions", question)
		if text != whole[:n] || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("dropped after %d: %d bytes, %v", n, len(text), err)
		}
		_, text, err = body(t, New(t, Respond(Say("hello")).EndAfter(n)), "/v1/chat/completions", question)
		if text != whole[:n] || err != nil {
			t.Errorf("ended after %d: %d bytes, %v", n, len(text), err)
		}
	}
	if _, text, err := body(t, New(t, Respond(Say("hello"), Drop())), "/v1/chat/completions", question); !strings.Contains(text, "hello") || strings.Contains(text, "DONE") || err == nil {
		t.Errorf("dropped: %s, %v", text, err)
	}
}

func TestGatesAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate()
		s := New(t, Respond(Sleep(time.Second), Headers(), Pause(gate), Say("x")).Slowly(10, time.Millisecond))
		begin := time.Now()
		go func() {
			gate.Wait(t)
			if took := time.Since(begin); took < time.Second {
				t.Errorf("at the gate after %v", took)
			}
			time.Sleep(time.Second)
			gate.Open()
			gate.Open()
		}()
		_, text, err := body(t, s, "/v1/responses", question)
		if took := time.Since(begin); err != nil || took < 2*time.Second+time.Duration(len(text)/10-20)*time.Millisecond {
			t.Errorf("%d bytes after %v, %v", len(text), took, err)
		}
	})
}

func TestAClientThatHangsUp(t *testing.T) {
	for name, steps := range map[string][]Step{
		"before the headers": {Stall()},
		"in a stall":         {Say("x"), Stall()},
		"at a gate":          {Say("x"), Pause(NewGate())},
		"in a sleep":         {Say("x"), Sleep(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t, Respond(steps...))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				resp, err := ask(t, ctx, s, "/v1/responses", question)
				if err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}()
			req := s.Wait(1)
			cancel()
			Wait(t, "the hang-up to be seen", req.Gone())
			Wait(t, "the request to be finished", req.Finished())
			<-done
		})
	}
}

func TestTheRecorderNoticesBrokenRules(t *testing.T) {
	msg := func(s string) protocol.Body { return &protocol.AssistantMessage{Text: s} }
	call := &protocol.ToolCall{WireID: "1", Name: "f", Kind: protocol.CallFunction}
	for name, tt := range map[string]struct {
		play   func(*Recorder)
		broken int
	}{
		"nothing":              {func(*Recorder) {}, 0},
		"a message":            {func(r *Recorder) { r.Delta(0, protocol.DeltaMessage, "a"); r.Done(0, msg("a")) }, 0},
		"without deltas":       {func(r *Recorder) { r.Done(0, msg("a")) }, 0},
		"a call before others": {func(r *Recorder) { r.Delta(1, protocol.DeltaMessage, "a"); r.Done(0, call) }, 0},
		"other text":           {func(r *Recorder) { r.Delta(0, protocol.DeltaMessage, "a"); r.Done(0, msg("b")) }, 1},
		"other kind":           {func(r *Recorder) { r.Delta(0, protocol.DeltaMessage, "a"); r.Done(0, &protocol.Reasoning{Text: "a"}) }, 1},
		"mixed kinds":          {func(r *Recorder) { r.Delta(0, protocol.DeltaMessage, "a"); r.Delta(0, protocol.DeltaReasoning, "a") }, 1},
		"late delta":           {func(r *Recorder) { r.Done(0, msg("")); r.Delta(0, protocol.DeltaMessage, "a") }, 1},
		"empty delta":          {func(r *Recorder) { r.Delta(0, protocol.DeltaMessage, "") }, 1},
		"twice":                {func(r *Recorder) { r.Done(0, msg("")); r.Done(0, msg("")) }, 1},
		"a gap":                {func(r *Recorder) { r.Done(99, msg("")) }, 1},
		"a negative index":     {func(r *Recorder) { r.Delta(-1, protocol.DeltaMessage, "a") }, 1},
		"a call with text":     {func(r *Recorder) { r.Delta(0, protocol.DeltaMessage, "a"); r.Done(0, call) }, 1},
		"a call without id":    {func(r *Recorder) { r.Done(0, &protocol.ToolCall{Name: "f", Kind: protocol.CallFunction}) }, 1},
		"another event":        {func(r *Recorder) { r.Done(0, &protocol.Notice{}) }, 1},
	} {
		r := &Recorder{}
		tt.play(r)
		if len(r.Broken) != tt.broken {
			t.Errorf("%s: broken %v, want %d", name, r.Broken, tt.broken)
		}
	}
}

func TestAnswer(t *testing.T) {
	got := Answer([]protocol.Body{
		&protocol.Reasoning{Text: "hm"}, &protocol.AssistantMessage{Text: "a"},
		&protocol.ToolCall{WireID: "1", Kind: protocol.CallFunction, Name: "f", Arguments: "{}"}, &protocol.ToolCall{WireID: "2", Kind: protocol.CallCustom, Name: "g", Arguments: "x"},
	})
	if f := wirecheck.Check(wirecheck.Prompt(got)); f != nil || len(got) != 6 || got[4].WireID != "1" || got[5].CallKind != protocol.CallCustom {
		t.Errorf("fault %v, items %v", f, got)
	}
}

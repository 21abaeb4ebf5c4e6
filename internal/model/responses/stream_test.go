package responses_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/responses"
	"github.com/fermata-agent/fermata/protocol"
)

// answer streams a body that consists of the given events.
func answer(t testing.TB, events ...string) (*modeltest.Recorder, model.End, error) {
	t.Helper()
	s := modeltest.New(t, modeltest.Status(http.StatusOK, "data: "+strings.Join(events, "\n\ndata: ")+"\n\n", "Content-Type", "text/event-stream"))
	rec := &modeltest.Recorder{}
	end, err := responses.New(responses.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport()}).Stream(t.Context(), modeltest.Hello(), rec)
	if len(rec.Broken) > 0 {
		t.Errorf("rules of a sink broken: %v", rec.Broken)
	}
	return rec, end, err
}

const completed = `{"type":"response.completed","response":{"id":"r1","usage":null}}`

// streams are the events of responses, without the end, and the items in them.
var streams = map[string]struct {
	events []string
	want   []string
}{
	"the least a mock sends": {
		[]string{
			`{"type":"response.created","response":{"id":"r1"}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"call_1","name":"shell","arguments":"{\"command\":[\"echo\",\"a\"]}"}}`,
		},
		[]string{`call call_1 shell {"command":["echo","a"]}`},
	},
	"deltas without an index": {
		[]string{
			`{"type":"response.reasoning_summary_text.delta","delta":"h"}`, `{"type":"response.output_text.delta","delta":"do"}`,
			`{"type":"response.output_text.delta","delta":"ne"}`, `{"type":"response.reasoning_summary_text.delta","delta":"m"}`,
			`{"type":"response.output_item.done","item":{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}}`,
			`{"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}}`,
			`{"type":"response.output_text.delta","delta":"more"}`,
			`{"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"more"}]}}`,
		},
		[]string{`think "hm"`, `text "done"`, `text "more"`},
	},
	"items that finish in another order": {
		[]string{
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a"}}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"message"}}`,
			`{"type":"response.output_text.delta","output_index":1,"delta":"x"}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"x"}]}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}}`,
		},
		[]string{`call a f {}`, `text "x"`},
	},
	"what the service does itself takes no index": {
		[]string{
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"web_search_call","id":"ws"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"ws"}}`,
			`{"type":"response.output_text.delta","output_index":1,"delta":"x"}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"x"}]}}`,
		},
		[]string{`text "x"`},
	},
	"parts and refusals": {
		[]string{
			`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a"}`, `{"type":"response.refusal.delta","output_index":0,"content_index":1,"delta":"no"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"}]}}`,
		},
		[]string{`text "ano"`},
	},
	"the reasoning itself": {
		[]string{
			`{"type":"response.reasoning_text.delta","output_index":0,"delta":"raw"}`, `{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"sum"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[{"type":"summary_text","text":"sum"}],"content":[{"type":"reasoning_text","text":"raw"}]}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"silent"}]}}`,
		},
		[]string{`think "raw"`, `think "silent"`},
	},
	"a summary before the reasoning": {
		[]string{
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"sum"}`, `{"type":"response.reasoning_text.delta","output_index":0,"delta":"raw"}`,
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"mary"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[{"text":"sum"},{"text":"mary"}],"content":[{"text":"raw"}]}}`,
		},
		[]string{`think "sum\n\nmary"`},
	},
	"local shell": {
		[]string{`{"type":"response.output_item.done","item":{"type":"local_shell_call","id":"lsh_1","status":"completed","action":{"type":"exec","command":["ls"]}}}`},
		[]string{`call lsh_1 local_shell {"type":"exec","command":["ls"]}`},
	},
	"a call that the service cut": {
		[]string{`{"type":"response.output_item.done","item":{"type":"function_call","status":"incomplete","call_id":"a","name":"f","arguments":"{\"comm"}}`},
		nil,
	},
	"late and doubled events": {
		[]string{
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"text":"a"}]}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"text":"b"}]}}`,
			`{"type":"response.output_text.delta","output_index":0,"delta":"x"}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","summary":[]}}`,
			`{"type":"response.reasoning_text.delta","output_index":1,"delta":"x"}`,
		},
		[]string{`text "a"`, `think ""`},
	},
	"what means nothing": {
		[]string{`keep-alive`, ``, `[DONE]`, `{}`, `{"type":"response.something.new","delta":"x"}`, `{"type":"response.output_text.delta","delta":5}`, `{"type":"response.output_text.delta","delta":""}`, `{"type":5}`},
		nil,
	},
}

func TestEvents(t *testing.T) {
	for name, tt := range streams {
		t.Run(name, func(t *testing.T) {
			rec, end, err := answer(t, append(tt.events, completed)...)
			if err != nil && !(modeltest.SaysNothing(tt.want) && modeltest.IsEmpty(err)) || end.ID != "r1" || end.Usage != nil {
				t.Errorf("end %+v, error %v", end, err)
			}
			if d := cmp.Diff(tt.want, rec.Summary()); d != "" {
				t.Errorf("items (-want +got):\n%s", d)
			}
		})
	}
}

func TestAMessageThatTheServiceCutIsPartial(t *testing.T) {
	rec, end, err := answer(t,
		`{"type":"response.output_item.done","item":{"type":"message","status":"incomplete","content":[{"text":"half"}]}}`,
		`{"type":"response.incomplete","response":{"id":"r1","incomplete_details":{"reason":"content_filter"},"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}}`)
	if m, ok := rec.Finished()[0].(*protocol.AssistantMessage); !ok || !m.Partial || m.Text != "half" {
		t.Errorf("item is %+v", rec.Finished()[0])
	}
	var e *protocol.Error
	if !errors.As(err, &e) || e.Retry || !strings.Contains(e.Message, "content_filter") {
		t.Errorf("error is %v", err)
	}
	if end.Usage == nil || end.Usage.Total != 3 {
		t.Errorf("usage is %+v", end.Usage)
	}
}

func TestErrorEvents(t *testing.T) {
	tests := map[string]struct {
		event string
		kind  protocol.ErrorKind
		text  string
	}{
		"flat":                  {`{"type":"error","code":"rate_limit_exceeded","message":"slow","param":null}`, protocol.ErrorRateLimit, "slow"},
		"nested":                {`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"long"}}`, protocol.ErrorContextLength, "long"},
		"flat with null":        {`{"type":"error","error":null,"message":"broken"}`, protocol.ErrorModel, "broken"},
		"odd members":           {`{"type":"error","code":5,"message":"odd"}`, protocol.ErrorModel, "odd"},
		"without a type":        {`{"error":{"message":"bare","type":"server_error"}}`, protocol.ErrorModel, "bare"},
		"failed without reason": {`{"type":"response.failed","response":{"id":"r1","error":null}}`, protocol.ErrorModel, "the model service failed"},
		"failed without all":    {`{"type":"response.failed"}`, protocol.ErrorModel, "the model service failed"},
		"failed for a call":     {`{"type":"response.failed","response":{"error":{"code":"x","message":"No tool output found for function call call_1."}}}`, protocol.ErrorHistory, "call_1"},
		"incomplete":            {`{"type":"response.incomplete","response":{}}`, protocol.ErrorModel, "no reason given"},
		"garbled end":           {`{"type":"response.completed","response":{"id":5}}`, protocol.ErrorModel, "cannot read"},
		"garbled item":          {`{"type":"response.output_item.done","item":{"type":"message","content":5}}`, protocol.ErrorModel, "cannot read"},
		"an item without item":  {`{"type":"response.output_item.done"}`, protocol.ErrorModel, "cannot read"},
		"a call without id":     {`{"type":"response.output_item.done","item":{"type":"function_call","name":"f"}}`, protocol.ErrorModel, "cannot read"},
		"a call without a name": {`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"f"}}`, protocol.ErrorModel, "cannot read"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rec, _, err := answer(t, tt.event, completed)
			var e *protocol.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(e.Message, tt.text) {
				t.Errorf("error is %#v", err)
			}
			if len(rec.Finished()) > 0 {
				t.Errorf("items %v", rec.Summary())
			}
		})
	}
}

func TestHeadersAndAddress(t *testing.T) {
	s := modeltest.New(t, modeltest.Respond(modeltest.Say("x")))
	c := responses.New(responses.Options{
		BaseURL: "http://model.test/openai/?api-version=1", Key: "sk-key", HTTP: s.Transport(), Originator: "codex_exec", Version: "1.2",
		Headers: map[string]string{"X-Own": "yes", "OpenAI-Beta": "other"}, Query: map[string]string{"more": "a b"},
	})
	if _, err := c.Stream(t.Context(), modeltest.Hello(), &modeltest.Recorder{}); err != nil {
		t.Fatal(err)
	}
	req := s.Wait(1)
	if got := req.Path + "?" + req.Query.Encode(); got != "/openai/responses?api-version=1&more=a+b" {
		t.Errorf("address is %s", got)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer sk-key", "Accept": "text/event-stream", "Content-Type": "application/json", "Originator": "codex_exec",
		"Session_id": "conversation-1", "Session-Id": "conversation-1", "Thread-Id": "conversation-1", "X-Own": "yes", "Openai-Beta": "other",
	} {
		if got := req.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if ua := req.Header.Get("User-Agent"); !strings.HasPrefix(ua, "codex_exec/1.2 (") {
		t.Errorf("User-Agent is %q", ua)
	}
}

func TestWithoutAKey(t *testing.T) {
	s := modeltest.New(t, modeltest.Respond(modeltest.Say("x")))
	p := modeltest.Hello()
	p.CacheKey = ""
	c := responses.New(responses.Options{HTTP: s.Transport()})
	if _, err := c.Stream(t.Context(), p, &modeltest.Recorder{}); err != nil {
		t.Fatal(err)
	}
	h := s.Wait(1).Header
	if h.Get("Authorization") != "" || h.Get("Session_id") != "" || h.Get("Originator") != responses.DefaultOriginator {
		t.Errorf("headers are %v", h)
	}
}

func TestOneClientForManyAtOnce(t *testing.T) {
	s := modeltest.New(t)
	s.Otherwise(modeltest.Respond(modeltest.Say("a", "b"), modeltest.Call("c", "shell", "{}")))
	c := responses.New(responses.Options{BaseURL: s.URL()})
	p := modeltest.Hello()
	done := make(chan error)
	for range 8 {
		go func() {
			_, err := c.Stream(t.Context(), p, &modeltest.Recorder{})
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// FuzzStream feeds any body: it must neither panic nor hang, a success needs the
// end mark, and the rules of a sink are kept.
func FuzzStream(f *testing.F) {
	f.Add("data: " + completed + "\n\n")
	f.Add("data: {\"type\":\"response.output_item.done\",\"output_index\":3,\"item\":{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"{}\"}}\n\ndata: " + completed)
	f.Add("data: {\"type\":\"response.output_text.delta\",\"delta\":\"\\u00e9\"}\r\n\r\ndata: {\"type\":\"error\",\"code\":\"x\"}\n\n")
	f.Add("data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"message\":\"No tool output found for function call call_1\"}}}\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		rec, _, err := answer(t, strings.TrimPrefix(body, "data: "))
		if err == nil && !strings.Contains(body, "response.completed") && !strings.Contains(body, `\`) {
			t.Errorf("success without an end mark, items %v", rec.Summary())
		}
	})
}

func BenchmarkStream20000Deltas(b *testing.B) {
	words := strings.SplitAfter(strings.Repeat("some words ", 10000), " ")
	s := modeltest.New(b)
	s.Otherwise(modeltest.Respond(modeltest.Say(words[:20000]...)))
	modeltest.BenchmarkReplay(b, s, func(rt http.RoundTripper) model.Client {
		return responses.New(responses.Options{BaseURL: "http://model.test/v1", HTTP: rt})
	})
}

// A service may send the reasoning itself beside its summary.
func TestTheReasoningItself(t *testing.T) {
	const said = `{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"so"}]}}`
	both := []string{
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"short"}`,
		`{"type":"response.reasoning_text.delta","output_index":0,"delta":"long"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[{"type":"summary_text","text":"short"}],"content":[{"type":"reasoning_text","text":"long"}]}}`,
		said, completed,
	}
	summary := []string{both[0], `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[{"type":"summary_text","text":"short"}]}}`, said, completed}
	for _, tt := range []struct {
		events []string
		raw    bool
		want   string
	}{{both, false, "short"}, {both, true, "long"}, {summary, true, "short"}} {
		s := modeltest.New(t, modeltest.Status(http.StatusOK, "data: "+strings.Join(tt.events, "\n\ndata: ")+"\n\n", "Content-Type", "text/event-stream"))
		rec := &modeltest.Recorder{}
		o := responses.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport(), RawThought: tt.raw, MaxTokens: 77}
		if _, err := responses.New(o).Stream(t.Context(), modeltest.Hello(), rec); err != nil || len(rec.Broken) > 0 {
			t.Fatalf("%v, %v", err, rec.Broken)
		}
		if got := strings.Join(rec.Summary(), " "); !strings.Contains(got, tt.want) {
			t.Errorf("raw %t: %s, want %s", tt.raw, got, tt.want)
		}
		if got := s.Requests()[0].Body()["max_output_tokens"]; got != 77.0 {
			t.Errorf("the limit of the response is %v", got)
		}
	}
}

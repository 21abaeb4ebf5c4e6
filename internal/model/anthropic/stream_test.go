package anthropic_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/anthropic"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/protocol"
)

func answer(t testing.TB, events ...string) (*modeltest.Recorder, model.End, error) {
	t.Helper()
	s := modeltest.New(t, modeltest.Status(http.StatusOK, "data: "+strings.Join(events, "\n\ndata: ")+"\n\n", "Content-Type", "text/event-stream"))
	rec := &modeltest.Recorder{}
	end, err := anthropic.New(anthropic.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport()}).Stream(t.Context(), modeltest.Hello(), rec)
	if len(rec.Broken) > 0 {
		t.Errorf("rules of a sink broken: %v", rec.Broken)
	}
	return rec, end, err
}

const stop = `{"type":"message_stop"}`

func start(block string) string {
	return `{"type":"content_block_start","index":0,"content_block":` + block + `}`
}

func delta(d string) string {
	return `{"type":"content_block_delta","index":0,"delta":` + d + `}`
}

func end(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":5}}`
}

const closed = `{"type":"content_block_stop","index":0}`

func TestEvents(t *testing.T) {
	tests := map[string]struct {
		events []string
		want   []string
	}{
		"text in the start": {[]string{start(`{"type":"text","text":"a"}`), delta(`{"type":"text_delta","text":"b"}`), closed}, []string{`text "ab"`}},
		"two texts":         {[]string{start(`{"type":"text","text":"a"}`), closed, start(`{"type":"text","text":"b"}`), closed}, []string{`text "a"`, `text "b"`}},
		"an empty text":     {[]string{start(`{"type":"text","text":""}`), closed}, nil},
		"silent thinking":   {[]string{start(`{"type":"thinking","thinking":"","signature":""}`), delta(`{"type":"signature_delta","signature":"s"}`), closed}, []string{`think ""`}},
		"hidden thinking":   {[]string{start(`{"type":"redacted_thinking","data":"xyz"}`), closed}, []string{`think ""`}},
		"thinking at once":  {[]string{start(`{"type":"thinking","thinking":"hm"}`), closed}, []string{`think "hm"`}},
		"a call at once":    {[]string{start(`{"type":"tool_use","id":"1","name":"f","input":{"a":1}}`), closed}, []string{`call 1 f {"a":1}`}},
		"a call of nothing": {[]string{start(`{"type":"tool_use","id":"1","name":"f"}`), delta(`{"type":"input_json_delta","partial_json":""}`), closed}, []string{`call 1 f {}`}},
		"a call in pieces":  {[]string{start(`{"type":"tool_use","id":"1","name":"f","input":{}}`), delta(`{"type":"input_json_delta","partial_json":"{\"a"}`), delta(`{"type":"input_json_delta","partial_json":"\":1}"}`), closed}, []string{`call 1 f {"a":1}`}},
		"what the service does itself takes no index": {
			[]string{start(`{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), delta(`{"type":"input_json_delta","partial_json":"{"}`), closed, start(`{"type":"text","text":"a"}`), closed},
			[]string{`text "a"`},
		},
		"what means nothing": {[]string{`keep-alive`, `{"type":"ping"}`, `{"type":"new_thing"}`, `{}`, start(`{"type":"text","text":"a"}`), delta(`{"type":"citations_delta","citation":{}}`), closed}, []string{`text "a"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			events := append([]string{`{"type":"message_start","message":{"id":"m1","usage":null}}`}, tt.events...)
			rec, e, err := answer(t, append(events, stop)...)
			if err != nil && !(modeltest.SaysNothing(tt.want) && modeltest.IsEmpty(err)) || e.ID != "m1" {
				t.Errorf("end %+v, error %v", e, err)
			}
			if d := cmp.Diff(tt.want, rec.Summary()); d != "" {
				t.Errorf("items (-want +got):\n%s", d)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	text := []string{start(`{"type":"text","text":"half"}`), closed}
	cutCall := []string{start(`{"type":"tool_use","id":"1","name":"f","input":{}}`), delta(`{"type":"input_json_delta","partial_json":"{\"a"}`), closed}
	tests := map[string]struct {
		events []string
		kind   protocol.ErrorKind
		retry  bool
		text   string
		want   []string
	}{
		"too long":                 {append(text, end("max_tokens"), stop), protocol.ErrorModel, false, "max_tokens", []string{`text "half"`}},
		"too long in a call":       {append(append([]string{}, cutCall...), end("max_tokens"), stop), protocol.ErrorModel, false, "max_tokens", nil},
		"cut in a call":            {append(append([]string{}, cutCall...), end("end_turn"), stop), protocol.ErrorModel, true, "in the midst", nil},
		"an open block":            {[]string{start(`{"type":"text","text":"half"}`), stop}, protocol.ErrorModel, true, "in the midst", nil},
		"the window is full":       {append(text, end("model_context_window_exceeded"), stop), protocol.ErrorContextLength, false, "context window", []string{`text "half"`}},
		"refused":                  {append(text, end("refusal"), stop), protocol.ErrorModel, false, "refusal", []string{`text "half"`}},
		"no end":                   {text, protocol.ErrorConnection, true, "before the response was complete", nil},
		"overloaded":               {[]string{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, protocol.ErrorModel, true, "Overloaded", nil},
		"too fast":                 {[]string{`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`}, protocol.ErrorRateLimit, true, "slow", nil},
		"bad key":                  {[]string{`{"type":"error","error":{"type":"authentication_error","message":"no"}}`}, protocol.ErrorAuth, false, "no", nil},
		"unreadable":               {[]string{`{"type":`}, protocol.ErrorModel, true, "cannot read", nil},
		"unreadable start":         {[]string{`{"type":"message_start"}`}, protocol.ErrorModel, true, "cannot read", nil},
		"unreadable usage":         {[]string{`{"type":"message_start","message":{"usage":5}}`}, protocol.ErrorModel, true, "cannot read", nil},
		"unreadable block":         {[]string{`{"type":"content_block_start","index":0}`}, protocol.ErrorModel, true, "cannot read", nil},
		"a block without an index": {[]string{`{"type":"content_block_start","content_block":{"type":"text"}}`}, protocol.ErrorModel, true, "cannot read", nil},
		"a call without an id":     {[]string{start(`{"type":"tool_use","name":"f"}`)}, protocol.ErrorModel, true, "cannot read", nil},
		"a delta of no block":      {[]string{delta(`{"type":"text_delta","text":"x"}`)}, protocol.ErrorModel, true, "cannot read", nil},
		"an unreadable delta":      {[]string{start(`{"type":"text","text":""}`), delta(`5`)}, protocol.ErrorModel, true, "cannot read", nil},
		"the end of no block":      {[]string{closed}, protocol.ErrorModel, true, "cannot read", nil},
		"an unreadable end":        {[]string{`{"type":"message_delta","delta":5}`}, protocol.ErrorModel, true, "cannot read", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rec, _, err := answer(t, tt.events...)
			var e *protocol.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || e.Retry != tt.retry || !strings.Contains(e.Message, tt.text) {
				t.Errorf("error is %#v", err)
			}
			if d := cmp.Diff(tt.want, rec.Summary()); d != "" {
				t.Errorf("items (-want +got):\n%s", d)
			}
			for _, b := range rec.Finished() {
				if m, ok := b.(*protocol.AssistantMessage); ok && !m.Partial {
					t.Errorf("message %q is not marked as partial", m.Text)
				}
			}
		})
	}
}

func TestUsageAddsUp(t *testing.T) {
	_, e, err := answer(t,
		`{"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}`,
		start(`{"type":"text","text":"a"}`), closed, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}`, stop)
	want := protocol.Usage{Input: 115, Cached: 100, CacheWrite: 5, Output: 7, Total: 122}
	if err != nil || e.Usage == nil || *e.Usage != want {
		t.Errorf("usage %+v, error %v", e.Usage, err)
	}
}

func TestWhatGoesBack(t *testing.T) {
	rec, _, err := answer(t,
		start(`{"type":"thinking","thinking":"","signature":""}`), delta(`{"type":"thinking_delta","thinking":"h\"m"}`), delta(`{"type":"signature_delta","signature":"a"}`), delta(`{"type":"signature_delta","signature":"b=="}`), closed,
		start(`{"type":"redacted_thinking","data":"xyz"}`), closed, stop)
	if err != nil && !modeltest.IsEmpty(err) {
		t.Fatal(err)
	}
	var got []string
	for _, b := range rec.Finished() {
		r := b.(*protocol.Reasoning)
		got = append(got, r.Raw.Wire+" "+string(r.Raw.JSON))
	}
	want := []string{`anthropic {"type":"thinking","thinking":"h\"m","signature":"ab=="}`, `anthropic {"type":"redacted_thinking","data":"xyz"}`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
}

func TestHeadersAndAddress(t *testing.T) {
	s := modeltest.New(t, modeltest.Respond(modeltest.Say("x")), modeltest.Respond(modeltest.Say("x")))
	c := anthropic.New(anthropic.Options{
		BaseURL: "http://model.test/v1/?a=1", Key: "sk-ant-key", HTTP: s.Transport(), UserAgent: "me",
		Headers: map[string]string{"anthropic-beta": "b1"}, Query: map[string]string{"b": "2"},
	})
	if _, err := c.Stream(t.Context(), modeltest.Hello(), &modeltest.Recorder{}); err != nil {
		t.Fatal(err)
	}
	if _, err := anthropic.New(anthropic.Options{HTTP: s.Transport()}).Stream(t.Context(), modeltest.Hello(), &modeltest.Recorder{}); err != nil {
		t.Fatal(err)
	}
	req, plain := s.Wait(1), s.Wait(2)
	if got := req.Path + "?" + req.Query.Encode(); got != "/v1/messages?a=1&b=2" {
		t.Errorf("address is %s", got)
	}
	if h := req.Header; h.Get("X-Api-Key") != "sk-ant-key" || h.Get("User-Agent") != "me" || h.Get("Anthropic-Beta") != "b1" || h.Get("Anthropic-Version") != anthropic.Version {
		t.Errorf("headers are %v", h)
	}
	if h := plain.Header; h.Get("X-Api-Key") != "" || h.Get("User-Agent") != "fermata" {
		t.Errorf("headers are %v", h)
	}
}

// FuzzStream feeds any body: it must neither panic nor hang, and a success needs
// the mark of the end.
func FuzzStream(f *testing.F) {
	f.Add(start(`{"type":"text","text":"a"}`) + "\n\ndata: " + closed + "\n\ndata: " + end("end_turn") + "\n\ndata: " + stop + "\n\n")
	f.Add(start(`{"type":"tool_use","id":"1","name":"f","input":{}}`) + "\n\ndata: " + delta(`{"type":"input_json_delta","partial_json":"{}"}`) + "\n\ndata: " + closed + "\n\ndata: " + stop)
	f.Add(start(`{"type":"thinking","thinking":"a"}`) + "\n\ndata: " + delta(`{"type":"signature_delta","signature":"s"}`) + "\n\ndata: " + closed)
	f.Add(`{"type":"error","error":{"type":"overloaded_error"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		rec, _, err := answer(t, body)
		if err == nil && !strings.Contains(body, "message_stop") && !strings.Contains(body, `\`) {
			t.Errorf("success without an end mark, items %v", rec.Summary())
		}
	})
}

func BenchmarkStream20000Deltas(b *testing.B) {
	words := strings.SplitAfter(strings.Repeat("some words ", 10000), " ")
	s := modeltest.New(b)
	s.Otherwise(modeltest.Respond(modeltest.Say(words[:20000]...)))
	modeltest.BenchmarkReplay(b, s, func(rt http.RoundTripper) model.Client {
		return anthropic.New(anthropic.Options{BaseURL: "http://model.test/v1", HTTP: rt})
	})
}

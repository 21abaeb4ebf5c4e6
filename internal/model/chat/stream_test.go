package chat_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/chat"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/protocol"
)

func answer(t testing.TB, events ...string) (*modeltest.Recorder, model.End, error) {
	t.Helper()
	s := modeltest.New(t, modeltest.Status(http.StatusOK, "data: "+strings.Join(events, "\n\ndata: ")+"\n\n", "Content-Type", "text/event-stream"))
	rec := &modeltest.Recorder{}
	end, err := chat.New(chat.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport()}).Stream(t.Context(), modeltest.Hello(), rec)
	if len(rec.Broken) > 0 {
		t.Errorf("rules of a sink broken: %v", rec.Broken)
	}
	return rec, end, err
}

func delta(members string) string {
	return `{"id":"x","choices":[{"index":0,"delta":{` + members + `}}]}`
}

func finish(reason string) string {
	return `{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func TestWhatServersSend(t *testing.T) {
	tests := map[string]struct {
		events []string
		want   []string
	}{
		"everything in one chunk": {
			[]string{`{"choices":[{"delta":{"tool_calls":[{"id":"call_1","function":{"name":"shell","arguments":"{\"command\":[\"sleep\",\"60\"]}"}}]},"finish_reason":"tool_calls"}]}`},
			[]string{`call call_1 shell {"command":["sleep","60"]}`},
		},
		"text with the finish":      {[]string{`{"choices":[{"delta":{"content":"Done"},"finish_reason":"stop"}]}`}, []string{`text "Done"`}},
		"a bare end mark":           {[]string{delta(`"content":"a"`), finish("stop"), "DONE"}, []string{`text "a"`}},
		"an end mark with spaces":   {[]string{delta(`"content":"a"`), finish("stop"), " [DONE] "}, []string{`text "a"`}},
		"no end mark":               {[]string{delta(`"content":"a"`), finish("stop")}, []string{`text "a"`}},
		"garbage after the finish":  {[]string{delta(`"content":"a"`), finish("stop"), `{"usage":`}, []string{`text "a"`}},
		"no finish":                 {[]string{delta(`"content":"a"`), "[DONE]"}, []string{`text "a"`}},
		"an empty finish":           {[]string{`{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}`, "[DONE]"}, []string{`text "a"`}},
		"an unknown finish":         {[]string{delta(`"content":"a"`), finish("eos"), "[DONE]"}, []string{`text "a"`}},
		"calls with finish stop":    {[]string{delta(`"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]`), finish("stop"), "[DONE]"}, []string{`call c f {}`}},
		"only white space":          {[]string{delta(`"content":"\n\n"`), delta(`"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]`), finish("tool_calls"), "[DONE]"}, []string{`call c f {}`}},
		"white space first":         {[]string{delta(`"content":"\n"`), delta(`"content":"\na"`), delta(`"content":" "`), finish("stop"), "[DONE]"}, []string{`text "\n\na "`}},
		"parts":                     {[]string{delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`), delta(`"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]`), finish("stop"), "[DONE]"}, []string{`think "hm"`, `text "ab"`}},
		"refusal":                   {[]string{delta(`"refusal":"no"`), finish("stop"), "[DONE]"}, []string{`text "no"`}},
		"reasoning_content":         {[]string{delta(`"reasoning_content":"h"`), delta(`"reasoning_content":"m","content":null`), delta(`"content":"a"`), finish("stop"), "[DONE]"}, []string{`think "hm"`, `text "a"`}},
		"reasoning":                 {[]string{delta(`"reasoning":"hm","content":""`), delta(`"content":"a"`), finish("stop"), "[DONE]"}, []string{`think "hm"`, `text "a"`}},
		"reasoning as an object":    {[]string{delta(`"reasoning":{"text":"h"}`), delta(`"reasoning":{"content":"m"}`), delta(`"content":"a"`), finish("stop"), "[DONE]"}, []string{`think "hm"`, `text "a"`}},
		"reasoning twice the same":  {[]string{delta(`"reasoning":"hm","reasoning_content":"hm"`), delta(`"content":"a"`), finish("stop"), "[DONE]"}, []string{`think "hm"`, `text "a"`}},
		"thinking":                  {[]string{delta(`"thinking":"hm"`), delta(`"content":"a"`), finish("stop"), "[DONE]"}, []string{`think "hm"`, `text "a"`}},
		"calls without an index":    {[]string{delta(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]`), delta(`"tool_calls":[{"id":"a","function":{"arguments":"1}"}}]`), finish("tool_calls")}, []string{`call a f {"x":1}`, `call b g {}`}},
		"all calls with index 0":    {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`), delta(`"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]`), finish("tool_calls")}, []string{`call a f {}`, `call b g {}`}},
		"neither index nor id":      {[]string{delta(`"tool_calls":[{"function":{"name":"f","arguments":"{\"x\""}}]`), delta(`"tool_calls":[{"function":{"arguments":":1}"}}]`), finish("tool_calls")}, []string{`call call_x_0 f {"x":1}`}},
		"an id in every piece":      {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]`), delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]`), finish("tool_calls")}, []string{`call a f {"x":1}`}},
		"arguments as an object":    {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":[1]}}}]`), finish("tool_calls")}, []string{`call a f {"x":[1]}`}},
		"no arguments":              {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]`), finish("tool_calls")}, []string{`call a f {}`}},
		"null arguments":            {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":null}}]`), finish("tool_calls")}, []string{`call a f {}`}},
		"bare custom input":         {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"patch","arguments":"*** Begin"}}]`), finish("tool_calls")}, []string{`call a patch *** Begin`}},
		"other choices are ignored": {[]string{`{"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"stop"},{"index":0,"delta":{"content":"a"}}]}`, finish("stop"), "[DONE]"}, []string{`text "a"`}},
		"what means nothing":        {[]string{`{}`, `keep-alive`, `{"choices":null}`, `{"choices":[]}`, `{"choices":[{"delta":null}]}`, `{"choices":[{"delta":{"tool_calls":null,"content":5}}]}`, delta(`"content":"a"`), finish("stop"), "[DONE]"}, []string{`text "a"`}},
		"text around a call":        {[]string{delta(`"content":"a"`), delta(`"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]`), delta(`"content":"b"`), finish("tool_calls")}, []string{`text "ab"`, `call c f {}`}},
		"a call before the text":    {[]string{delta(`"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]`), delta(`"content":"b"`), finish("tool_calls")}, []string{`call c f {}`, `text "b"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rec, _, err := answer(t, tt.events...)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, rec.Summary()); d != "" {
				t.Errorf("items (-want +got):\n%s", d)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	callCut := delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]`)
	tests := map[string]struct {
		events []string
		retry  bool
		text   string
		want   []string
	}{
		"too long":                 {[]string{delta(`"content":"half"`), callCut, finish("length"), "[DONE]"}, false, "length", []string{`text "half"`}},
		"filtered":                 {[]string{delta(`"content":"half"`), finish("content_filter"), "[DONE]"}, false, "content_filter", []string{`text "half"`}},
		"failed":                   {[]string{delta(`"content":"half"`), finish("error"), "[DONE]"}, true, "error", []string{`text "half"`}},
		"an error":                 {[]string{delta(`"content":"half"`), `{"error":{"message":"it broke","code":502}}`}, true, "it broke", nil},
		"an error of another form": {[]string{`{"object":"error","message":"it broke","type":"InternalServerError"}`}, true, "it broke", nil},
		"an error of DeepInfra":    {[]string{`{"error_type":"internal_error","error_message":"it broke inside"}`}, true, "it broke inside", nil},
		"an error beside choices":  {[]string{`{"error":{"message":"it broke"},"choices":[{"delta":{"content":"a"},"finish_reason":"error"}]}`}, true, "it broke", nil},
		"ended in a call":          {[]string{callCut, "[DONE]"}, true, "without saying", nil},
		"ended with nothing":       {[]string{"[DONE]"}, true, "without saying", nil},
		"nothing said":             {[]string{delta(`"role":"assistant","content":""`), finish("stop"), "[DONE]"}, true, "empty", nil},
		"reasoning only":           {[]string{delta(`"reasoning_content":"hm"`), finish("stop"), "[DONE]"}, true, "empty", []string{`think "hm"`}},
		"no end at all":            {[]string{delta(`"content":"a"`)}, true, "before the response was complete", nil},
		"a call without a name":    {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]`), finish("tool_calls")}, true, "without a name", nil},
		"unreadable":               {[]string{`{"choices":[`}, true, "cannot read", nil},
		"unreadable choices":       {[]string{`{"choices":{}}`}, true, "cannot read", nil},
		"unreadable choice":        {[]string{`{"choices":[5]}`}, true, "cannot read", nil},
		"unreadable delta":         {[]string{`{"choices":[{"delta":5}]}`}, true, "cannot read", nil},
		"unreadable calls":         {[]string{delta(`"tool_calls":5`)}, true, "cannot read", nil},
		"unreadable call":          {[]string{delta(`"tool_calls":[5]`)}, true, "cannot read", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rec, _, err := answer(t, tt.events...)
			var e *protocol.Error
			if !errors.As(err, &e) || e.Retry != tt.retry || !strings.Contains(e.Message, tt.text) {
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

func TestUsageOfManyForms(t *testing.T) {
	for raw, want := range map[string]protocol.Usage{
		`{"prompt_tokens":5,"completion_tokens":2}`:                                                             {Input: 5, Output: 2, Total: 7},
		`{"prompt_tokens":5,"completion_tokens":2,"total_tokens":9,"prompt_cache_hit_tokens":4}`:                {Input: 5, Cached: 4, Output: 2, Total: 9},
		`{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":null,"completion_tokens_details":{}}`: {Input: 5, Output: 2, Total: 7},
	} {
		_, end, err := answer(t, delta(`"content":"a"`), `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":`+raw+`}`, `{"choices":[],"usage":null}`, "[DONE]")
		if d := cmp.Diff(&want, end.Usage); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", raw, err, d)
		}
	}
}

func TestWhatGoesBack(t *testing.T) {
	rec, _, err := answer(t,
		delta(`"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"}]`), delta(`"reasoning_details":[{"type":"reasoning.encrypted","data":"e"}]`),
		delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"t"}}}]`), finish("tool_calls"), "[DONE]")
	if err != nil {
		t.Fatal(err)
	}
	r := rec.Finished()[0].(*protocol.Reasoning)
	if got, want := string(r.Raw.JSON), `{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"},{"type":"reasoning.encrypted","data":"e"}]}`; got != want || r.Raw.Wire != chat.Wire {
		t.Errorf("reasoning is kept as %s", got)
	}
	if c := rec.Finished()[1].(*protocol.ToolCall); string(c.Raw.JSON) != `{"google":{"thought_signature":"t"}}` {
		t.Errorf("the call is kept as %s", c.Raw.JSON)
	}
}

// A server that sends neither an end mark nor the end of the body does not hold
// a finished response up.
func TestAFinishedResponseDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modeltest.New(t, modeltest.Respond(modeltest.Raw("data: "+delta(`"content":"a"`)+"\n\ndata: "+finish("stop")+"\n\n"), modeltest.Stall()))
		rec := &modeltest.Recorder{}
		begin := time.Now()
		if _, err := chat.New(chat.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport()}).Stream(t.Context(), modeltest.Hello(), rec); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 2*time.Second || len(rec.Finished()) != 1 {
			t.Errorf("took %v, items %v", took, rec.Summary())
		}
	})
}

func TestHeadersAndAddress(t *testing.T) {
	s := modeltest.New(t, modeltest.Respond(modeltest.Say("x")), modeltest.Respond(modeltest.Say("x")))
	c := chat.New(chat.Options{
		BaseURL: "http://model.test/v1/?a=1", Key: "sk-key", HTTP: s.Transport(), UserAgent: "me",
		Headers: map[string]string{"HTTP-Referer": "yes"}, Query: map[string]string{"b": "2"},
	})
	if _, err := c.Stream(t.Context(), modeltest.Hello(), &modeltest.Recorder{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chat.New(chat.Options{HTTP: s.Transport()}).Stream(t.Context(), modeltest.Hello(), &modeltest.Recorder{}); err != nil {
		t.Fatal(err)
	}
	req, plain := s.Wait(1), s.Wait(2)
	if got := req.Path + "?" + req.Query.Encode(); got != "/v1/chat/completions?a=1&b=2" {
		t.Errorf("address is %s", got)
	}
	if h := req.Header; h.Get("Authorization") != "Bearer sk-key" || h.Get("User-Agent") != "me" || h.Get("HTTP-Referer") != "yes" {
		t.Errorf("headers are %v", h)
	}
	if h := plain.Header; h.Get("Authorization") != "" || h.Get("User-Agent") != "fermata" {
		t.Errorf("headers are %v", h)
	}
}

// FuzzStream feeds any body: it must neither panic nor hang, and a success needs
// a mark of the end.
func FuzzStream(f *testing.F) {
	f.Add(delta(`"content":"a"`) + "\n\ndata: " + finish("stop") + "\n\ndata: [DONE]\n\n")
	f.Add(delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`) + "\n\ndata: " + finish("tool_calls") + "\n\n")
	f.Add(delta(`"reasoning":{"text":"x"}`) + "\n\ndata: DONE\n\n")
	f.Add(`{"error":{"message":"x"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		rec, _, err := answer(t, body)
		if err == nil && !strings.Contains(body, "finish_reason") && !strings.Contains(body, "DONE") && !strings.Contains(body, `\`) {
			t.Errorf("success without an end mark, items %v", rec.Summary())
		}
	})
}

func BenchmarkStream20000Deltas(b *testing.B) {
	words := strings.SplitAfter(strings.Repeat("some words ", 10000), " ")
	s := modeltest.New(b)
	s.Otherwise(modeltest.Respond(modeltest.Say(words[:20000]...)))
	modeltest.BenchmarkReplay(b, s, func(rt http.RoundTripper) model.Client {
		return chat.New(chat.Options{BaseURL: "http://model.test/v1", HTTP: rt})
	})
}

package chat_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/chat"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/protocol"
)

// What servers send that is not quite the wire, and what is made of it.
func TestQuirks(t *testing.T) {
	done := finish("stop")
	tests := map[string]struct {
		events []string
		want   []string
	}{
		"two calls with index 0 and no ids": {
			[]string{delta(`"tool_calls":[{"index":0,"function":{"name":"shell","arguments":"{\"a\":1}"}}]`), delta(`"tool_calls":[{"index":0,"function":{"name":"shell","arguments":"{\"a\":2}"}}]`), done},
			[]string{`call call_x_0 shell {"a":1}`, `call call_x_1 shell {"a":2}`},
		},
		"no index and no id": {
			[]string{delta(`"tool_calls":[{"function":{"name":"shell","arguments":"{\"a\":1}"}},{"function":{"name":"patch","arguments":"{\"input\":\"x\"}"}}]`), done},
			[]string{`call call_x_0 shell {"a":1}`, `call call_x_1 patch x`},
		},
		"no arguments, no index and no id": {
			[]string{delta(`"tool_calls":[{"function":{"name":"shell"}},{"function":{"name":"patch","arguments":"{\"input\":\"x\"}"}}]`), done},
			[]string{`call call_x_0 shell {}`, `call call_x_1 patch x`},
		},
		"a name in two pieces": {
			[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"she"}}]`), delta(`"tool_calls":[{"index":0,"function":{"name":"ll","arguments":"{}"}}]`), done},
			[]string{`call a shell {}`},
		},
		"the name with every piece": {
			[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"a\""}}]`), delta(`"tool_calls":[{"index":0,"function":{"name":"shell","arguments":":1}"}}]`), delta(`"tool_calls":[{"index":0,"function":{"name":"shell","arguments":""}}]`), done},
			[]string{`call a shell {"a":1}`},
		},
		"another id with every piece": {
			[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"a\""}}]`), delta(`"tool_calls":[{"index":0,"id":"b","function":{"arguments":":1"}}]`), delta(`"tool_calls":[{"index":0,"id":"c","function":{"arguments":"}"}}]`), done},
			[]string{`call a shell {"a":1}`},
		},
		"a namespace before the name":   {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"functions.shell","arguments":"{}"}}]`), done}, []string{`call a shell {}`}},
		"the model's own marks":         {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"shell<|channel|>commentary","arguments":"{}"}}]`), done}, []string{`call a shell {}`}},
		"another case":                  {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"Shell","arguments":"{}"}}]`), done}, []string{`call a shell {}`}},
		"a tool that was not offered":   {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"browser.open","arguments":"{}"}}]`), done}, []string{`call a browser.open {}`}},
		"reasoning in the text":         {[]string{delta(`"content":"<thi"`), delta(`"content":"nk>h"`), delta(`"content":"m</th"`), delta(`"content":"ink>\n\na"`), done}, []string{`think "hm"`, `text "a"`}},
		"a tag in the midst":            {[]string{delta(`"content":"use <think> here"`), done}, []string{`text "use <think> here"`}},
		"what only begins like a tag":   {[]string{delta(`"content":"<th"`), done}, []string{`text "<th"`}},
		"a call as XML":                 {[]string{delta(`"content":"I look.\n<tool_ca"`), delta(`"content":"ll>\n<function=shell>\n<parameter=command>\n[\"ls\"]\n</parameter>\n<parameter=why>\nto see\n</parameter>\n</function>\n</tool_call>"`), done}, []string{`text "I look.\n"`, `call call_x_0 shell {"command":["ls"],"why":"to see"}`}},
		"a call as JSON in XML":         {[]string{delta(`"content":"<tool_call>{\"name\":\"shell\",\"arguments\":{\"a\":1}}</tool_call>"`), done}, []string{`call call_x_0 shell {"a":1}`}},
		"XML that is no call":           {[]string{delta(`"content":"write <function=x> so"`), done}, []string{`text "write <function=x> so"`}},
		"the old function_call":         {[]string{delta(`"function_call":{"name":"shell","arguments":"{\"a\""}`), delta(`"function_call":{"arguments":":1}"}`), finish("function_call")}, []string{`call call_x_0 shell {"a":1}`}},
		"a message instead of deltas":   {[]string{`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`}, []string{`text "a"`}},
		"a message beside a null delta": {[]string{`{"id":"x","choices":[{"index":0,"delta":null,"message":{"content":"a"},"finish_reason":"stop"}]}`}, []string{`text "a"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rec, _, err := answer(t, append(tt.events, "[DONE]")...)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, rec.Summary()); d != "" {
				t.Errorf("items (-want +got):\n%s", d)
			}
		})
	}
}

func TestEncryptedReasoningIsSentBack(t *testing.T) {
	const details = `[{"type":"reasoning.encrypted","data":"x","id":"r1","format":"google-gemini-v1","index":0}]`
	rec, _, err := answer(t, delta(`"reasoning":null,"reasoning_details":`+details), delta(`"content":"a"`), finish("stop"), "[DONE]")
	if err != nil {
		t.Fatal(err)
	}
	p := modeltest.Hello()
	p.Items = append(p.Items, modeltest.Answer(rec.Finished())...)
	s := modeltest.New(t, modeltest.Respond(modeltest.Say("ok")))
	if _, err := newClient(s).Stream(t.Context(), p, &modeltest.Recorder{}); err != nil {
		t.Fatal(err)
	}
	if raw := string(s.Wait(1).Raw); !strings.Contains(raw, `"reasoning_details":`+details) {
		t.Errorf("not sent back: %s", raw)
	}
}

func newClient(s *modeltest.Server) model.Client {
	return chat.New(chat.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport()})
}

// How servers answer that do not stream, or do not say that they do.
func TestAnswersThatAreNoStream(t *testing.T) {
	whole := `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"c","function":{"name":"shell","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`
	stream := "data: " + delta(`"content":"a"`) + "\n\ndata: " + finish("stop") + "\n\ndata: [DONE]\n\n"
	for name, tt := range map[string]struct {
		kind, body string
		want       []string
	}{
		"a completion in one piece":   {"application/json", whole, []string{`text "a"`, "call c shell {}"}},
		"a stream labelled as JSON":   {"application/json", stream, []string{`text "a"`}},
		"comments first, labelled so": {"application/json; charset=utf-8", ": hi\n\n" + stream, []string{`text "a"`}},
		"a byte order mark":           {"text/event-stream", "\ufeff" + stream, []string{`text "a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.New(t, modeltest.Status(http.StatusOK, tt.body, "Content-Type", tt.kind))
			rec := &modeltest.Recorder{}
			if _, err := newClient(s).Stream(t.Context(), modeltest.Hello(), rec); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, rec.Summary()); d != "" {
				t.Errorf("items (-want +got):\n%s", d)
			}
		})
	}
}

// A member that the service refuses is left out of the second try and of all later
// requests; a request without one is not made again.
func TestSecondTryWithoutAMember(t *testing.T) {
	for name, tt := range map[string]struct {
		refusal string
		gone    string
	}{
		"stream_options":       {`{"error":{"message":"Unknown parameter: 'stream_options'.","type":"invalid_request_error","param":"stream_options","code":"unknown_parameter"}}`, `stream_options`},
		"of an old vLLM":       {`{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted', 'input': {}}]","type":"BadRequestError","param":null,"code":400}`, `stream_options`},
		"reasoning_effort":     {`{"error":{"message":"Unrecognized request argument supplied: reasoning_effort","type":"invalid_request_error","param":null,"code":null}}`, `reasoning_effort`},
		"a value of it":        {`{"detail":"1 validation error: reasoning_effort: expected one of 'low' | 'high', received 'medium'"}`, `reasoning_effort`},
		"no content":           {`{"error":{"message":"Invalid value for 'content': expected a string, got null.","type":"invalid_request_error"}}`, `"content":null`},
		"tool_choice":          {`{"error":{"message":"tool_choice is not supported by this model"}}`, `tool_choice`},
		"reasoning of a model": {`{"error":{"message":"Extra inputs are not permitted: messages.1.reasoning_content_x"}}`, `reasoning_content`},
	} {
		t.Run(name, func(t *testing.T) {
			p := modeltest.Hello()
			p.Effort, p.NoCalls = "medium", true
			p.Items = append(p.Items,
				&protocol.PromptItem{Kind: protocol.PromptReasoning, Raw: protocol.Raw{Wire: chat.Wire, JSON: []byte(`{"reasoning_content":"hm"}`)}},
				&protocol.PromptItem{Kind: protocol.PromptCall, WireID: "c", CallKind: protocol.CallFunction, Name: "shell", Arguments: "{}"},
				&protocol.PromptItem{Kind: protocol.PromptOutput, WireID: "c", CallKind: protocol.CallFunction, Text: "x"})
			s := modeltest.New(t, modeltest.Status(400, tt.refusal), modeltest.Respond(modeltest.Say("ok")), modeltest.Respond(modeltest.Say("ok")))
			c := newClient(s)
			for range 2 {
				if _, err := c.Stream(t.Context(), p, &modeltest.Recorder{}); err != nil {
					t.Fatal(err)
				}
			}
			if len(s.Requests()) != 3 {
				t.Errorf("%d requests, want 3: what is refused is remembered", len(s.Requests()))
			}
			for _, r := range s.Requests() {
				if has := strings.Contains(string(r.Raw), tt.gone); has != (r.Number == 1) {
					t.Errorf("request %d has %s: %v", r.Number, tt.gone, has)
				}
			}
		})
	}

	s := modeltest.New(t, modeltest.Status(400, `{"error":{"message":"Unsupported value: 'x'"}}`))
	var e *protocol.Error
	if _, err := newClient(s).Stream(t.Context(), modeltest.Hello(), &modeltest.Recorder{}); !errors.As(err, &e) || e.Kind != protocol.ErrorRequest {
		t.Errorf("a refusal of something else: %v", err)
	}
}

// Strict templates want user and assistant in turn; the user's own words come last.
func TestMessagesOfTheUserAreMerged(t *testing.T) {
	p := modeltest.Hello()
	text := func(s string) *protocol.PromptItem {
		return &protocol.PromptItem{Kind: protocol.PromptUser, Content: protocol.Text(s)}
	}
	image := &protocol.PromptItem{Kind: protocol.PromptUser, Content: []protocol.Content{{Type: protocol.ContentImage, ImageURL: "data:image/png;base64,AAAA"}}}
	p.Items = []*protocol.PromptItem{text("<environment_context>x</environment_context>"), text("do it"), {Kind: protocol.PromptAssistant, Text: "a"}, text("look"), image}
	s := modeltest.New(t, modeltest.Respond(modeltest.Say("ok")))
	if _, err := newClient(s).Stream(t.Context(), p, &modeltest.Recorder{}); err != nil {
		t.Fatal(err)
	}
	list := s.Wait(1).List("messages")
	var roles []string
	for _, m := range list {
		roles = append(roles, m["role"].(string))
	}
	if d := cmp.Diff([]string{"system", "user", "assistant", "user"}, roles); d != "" {
		t.Error(d)
	}
	if got := list[1]["content"]; got != "<environment_context>x</environment_context>\n\ndo it" {
		t.Errorf("content is %q", got)
	}
	if parts, _ := list[3]["content"].([]any); len(parts) != 2 {
		t.Errorf("content is %v", list[3]["content"])
	}
}

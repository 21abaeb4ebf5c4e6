package chat_test

import (
	"errors"
	"net/http"
	"slices"
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
		"reasoning":            {`{"error":{"message":"property 'reasoning' is unsupported"}}`, `reasoning_content`},
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

// Forms of messages that servers, or the templates of models, refuse, each with a refusal that was seen: the second try has another
// form, and so have all later requests.
func TestSecondTryInAnotherForm(t *testing.T) {
	const png = "data:image/png;base64,iVBORw0KGgo="
	for name, tt := range map[string]struct {
		refusal     string
		first, then []string // what the first try has, and the next ones
	}{
		"DeepSeek, after an interrupt": {
			`{"error":{"message":"Missing ` + "`reasoning_content`" + ` field in the assistant message at message index 2","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`,
			[]string{`{"role":"assistant","content":"half"}`},
			[]string{`{"role":"assistant","reasoning_content":" ","content":"half"}`, `{"role":"assistant","reasoning_content":"hm","content":null,`},
		},
		"Kimi": {
			`{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 3","type":"invalid_request_error"}}`,
			[]string{`{"role":"assistant","content":"half"}`},
			[]string{`{"role":"assistant","reasoning_content":" ","content":"half"}`},
		},
		"Llama's template": {
			`{"error":{"code":500,"message":"Value is not callable: This model only supports single tool-calls at once!","type":"server_error"}}`,
			[]string{`"name":"f","arguments":"{}"}},{"id":"call_two"`},
			[]string{
				`"tool_calls":[{"id":"call_one","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_one","content":"1"},` +
					`{"role":"assistant","content":null,"tool_calls":[{"id":"call_two","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_two","content":"2"}`,
			},
		},
		"Mistral's template": {
			`{"error":{"code":500,"message":"Tool call IDs should be alphanumeric strings with length 9!","type":"server_error"}}`,
			[]string{`"id":"call_one"`, `"tool_call_id":"call_one"`},
			[]string{`"id":"` + shortOne + `"`, `"tool_call_id":"` + shortOne + `"`},
		},
		"Mistral": {
			`{"object":"error","message":"Tool call id was call_one but must be a-z, A-Z, 0-9, with a length of 9.","type":"invalid_request_invalid_args","code":3280}`,
			[]string{`"id":"call_one"`},
			[]string{`"id":"` + shortOne + `"`},
		},
		"Gemma's template": {
			`{"error":{"code":500,"message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"server_error"}}`,
			[]string{png},
			[]string{`"content":"2"}],"stream"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			item := func(kind protocol.PromptKind, n int, wireID string) *protocol.PromptItem {
				return &protocol.PromptItem{Kind: kind, Call: protocol.CallID{Turn: 1, Response: 1, Index: n}, WireID: wireID, CallKind: protocol.CallFunction, Name: "f", Arguments: "{}"}
			}
			first, second := item(protocol.PromptOutput, 0, "call_one"), item(protocol.PromptOutput, 1, "call_two")
			first.Text, second.Text = "1", "2"
			if slices.Contains(tt.first, png) {
				second.Content = []protocol.Content{{Type: protocol.ContentImage, ImageURL: png}}
			}
			p := modeltest.Hello()
			p.Items = append(p.Items,
				&protocol.PromptItem{Kind: protocol.PromptAssistant, Text: "half"},
				&protocol.PromptItem{Kind: protocol.PromptUser, Content: protocol.Text("go on")},
				&protocol.PromptItem{Kind: protocol.PromptReasoning, Raw: protocol.Raw{Wire: chat.Wire, JSON: []byte(`{"reasoning_content":"hm"}`)}},
				item(protocol.PromptCall, 0, "call_one"), item(protocol.PromptCall, 1, "call_two"), first, second)
			s := modeltest.New(t, modeltest.Status(400, tt.refusal), modeltest.Respond(modeltest.Say("ok")), modeltest.Respond(modeltest.Say("ok")))
			c := newClient(s)
			streamTwice(t, c, p)
			for _, r := range s.Requests() {
				want, not := tt.then, tt.first
				if r.Number == 1 {
					want, not = tt.first, tt.then
				}
				for _, part := range want {
					if !strings.Contains(string(r.Raw), part) {
						t.Errorf("request %d lacks %s\n%s", r.Number, part, r.Raw)
					}
				}
				if strings.Contains(string(r.Raw), not[0]) {
					t.Errorf("request %d has %s\n%s", r.Number, not[0], r.Raw)
				}
			}
			if n := len(s.Requests()); n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
		})
	}
}

func streamTwice(t *testing.T, c model.Client, p model.Prompt) {
	t.Helper()
	for range 2 {
		if _, err := c.Stream(t.Context(), p, &modeltest.Recorder{}); err != nil {
			t.Fatal(err)
		}
	}
}

// shortOne stands for call_one where ids have nine characters.
const shortOne = "5yzn7kzry"

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

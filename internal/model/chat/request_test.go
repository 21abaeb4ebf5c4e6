package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
	"github.com/fermata-agent/fermata/protocol"
)

func newClient(t testing.TB) *format {
	t.Helper()
	return newFormat(Options{BaseURL: "http://model.test/v1"})
}

func user(text string) *protocol.PromptItem {
	return &protocol.PromptItem{Kind: protocol.PromptUser, Content: protocol.Text(text)}
}

func assistant(text string) *protocol.PromptItem {
	return &protocol.PromptItem{Kind: protocol.PromptAssistant, Text: text}
}

func toolCall(id string) *protocol.PromptItem {
	return &protocol.PromptItem{Kind: protocol.PromptCall, WireID: id, CallKind: protocol.CallFunction, Name: "f", Arguments: "{}"}
}

func output(id string) *protocol.PromptItem {
	return &protocol.PromptItem{Kind: protocol.PromptOutput, WireID: id, CallKind: protocol.CallFunction, Text: "out " + id}
}

func thought(text string) *protocol.PromptItem {
	return &protocol.PromptItem{Kind: protocol.PromptReasoning, Text: text, Raw: protocol.Raw{Wire: Wire, JSON: json.RawMessage(`{"reasoning_content":"` + text + `"}`)}}
}

// messages are the messages of a request, one per line.
func messages(t *testing.T, p model.Prompt) []string {
	t.Helper()
	var body struct{ Messages []json.RawMessage }
	b := newClient(t).build(p).body
	if err := json.Unmarshal(b, &body); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	var out []string
	for _, m := range body.Messages {
		out = append(out, string(m))
	}
	return out
}

func TestMessages(t *testing.T) {
	image := protocol.Content{Type: protocol.ContentImage, ImageURL: "data:x"}
	tests := map[string]struct {
		items []*protocol.PromptItem
		want  []string
	}{
		"texts": {
			[]*protocol.PromptItem{user("hi"), assistant("ho"), {Kind: protocol.PromptUser, Content: append(protocol.Text("a"), protocol.Text("b")...)}},
			[]string{`{"role":"user","content":"hi"}`, `{"role":"assistant","content":"ho"}`, `{"role":"user","content":"a\nb"}`},
		},
		"an image": {
			[]*protocol.PromptItem{{Kind: protocol.PromptUser, Content: append(protocol.Text("see"), image)}},
			[]string{`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:x"}}]}`},
		},
		"a response is one message": {
			[]*protocol.PromptItem{thought("hm"), assistant("I look"), toolCall("1"), toolCall("2"), output("1"), output("2"), assistant("done")},
			[]string{
				`{"role":"assistant","reasoning_content":"hm","content":"I look","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"1","content":"out 1"}`, `{"role":"tool","tool_call_id":"2","content":"out 2"}`, `{"role":"assistant","content":"done"}`,
			},
		},
		"a call alone": {
			[]*protocol.PromptItem{toolCall("1"), output("1")},
			[]string{`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"1","content":"out 1"}`},
		},
		"reasoning between calls does not split them": {
			[]*protocol.PromptItem{thought("a"), toolCall("1"), thought("b"), toolCall("2"), output("1"), output("2")},
			[]string{
				`{"role":"assistant","reasoning_content":"a","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"1","content":"out 1"}`, `{"role":"tool","tool_call_id":"2","content":"out 2"}`,
			},
		},
		"several texts": {
			[]*protocol.PromptItem{assistant("a"), assistant("\"b\""), user("x")},
			[]string{`{"role":"assistant","content":"a\n\n\"b\""}`, `{"role":"user","content":"x"}`},
		},
		"reasoning of another wire, and without a text": {
			[]*protocol.PromptItem{{Kind: protocol.PromptReasoning, Text: "x", Raw: protocol.Raw{Wire: "responses", JSON: json.RawMessage(`{"a":1}`)}}, assistant("a"), thought("lost"), user("x")},
			[]string{`{"role":"assistant","content":"a"}`, `{"role":"user","content":"x"}`},
		},
		"custom calls, broken arguments and signatures": {
			[]*protocol.PromptItem{
				{Kind: protocol.PromptCall, WireID: "1", CallKind: protocol.CallCustom, Name: "patch", Arguments: "x\n"},
				{Kind: protocol.PromptCall, WireID: "2", CallKind: protocol.CallFunction, Name: "f", Arguments: `{"a`},
				{Kind: protocol.PromptCall, WireID: "3", CallKind: protocol.CallFunction, Name: "f", Arguments: `{}`, Raw: protocol.Raw{Wire: Wire, JSON: json.RawMessage(`{"google":{"thought_signature":"s"}}`)}},
			},
			[]string{`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"patch","arguments":"{\"input\":\"x\\n\"}"}},` +
				`{"id":"2","type":"function","function":{"name":"f","arguments":"{\"invalid\":\"{\\\"a\"}"}},` +
				`{"id":"3","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}}]}`},
		},
		"images of outputs follow them all": {
			[]*protocol.PromptItem{toolCall("1"), toolCall("2"), {Kind: protocol.PromptOutput, WireID: "1", Text: "o", Content: []protocol.Content{image}}, output("2"), assistant("a")},
			[]string{
				`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"1","content":"o"}`, `{"role":"tool","tool_call_id":"2","content":"out 2"}`,
				`{"role":"user","content":[{"type":"text","text":"The images of the tool output above:"},{"type":"image_url","image_url":{"url":"data:x"}}]}`, `{"role":"assistant","content":"a"}`,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, messages(t, model.Prompt{Items: tt.items})); d != "" {
				t.Errorf("messages (-want +got):\n%s", d)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	got := string(newClient(t).build(model.Prompt{
		Model: "m", Instructions: "be brief", Effort: "low", Verbosity: "high", OutputSchema: json.RawMessage(`{"a":1}`),
		Tools: []model.ToolSpec{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"p":1}`)}, {Name: "g"}},
	}).body)
	want := `{"model":"m","messages":[{"role":"system","content":"be brief"}],"stream":true,"stream_options":{"include_usage":true},` +
		`"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"p":1}}},{"type":"function","function":{"name":"g","description":"","parameters":{"type":"object","properties":{}}}}],` +
		`"reasoning_effort":"low","verbosity":"high","response_format":{"type":"json_schema","json_schema":{"name":"output_schema","strict":true,"schema":{"a":1}}}}`
	if got != want {
		t.Errorf("body\n%s\nwant\n%s", got, want)
	}
	if got := string(newClient(t).build(model.Prompt{Model: "m"}).body); got != `{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}` {
		t.Errorf("the least: %s", got)
	}
}

func TestLoneOutputs(t *testing.T) {
	got := messages(t, model.Prompt{Items: []*protocol.PromptItem{user("1"), assistant("a"), user("2")}, UnknownCalls: []string{"x"}})
	want := []string{`{"role":"user","content":"1"}`, `{"role":"assistant","content":"a"}`, `{"role":"tool","tool_call_id":"x","content":"aborted"}`, `{"role":"user","content":"2"}`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("messages (-want +got):\n%s", d)
	}
	if got := messages(t, model.Prompt{Items: []*protocol.PromptItem{assistant("a")}, UnknownCalls: []string{"x"}}); len(got) != 2 || !strings.Contains(got[1], "aborted") {
		t.Errorf("without a message of the user: %v", got)
	}
}

func TestMemo(t *testing.T) {
	it := user("hi")
	c := newClient(t)
	p := model.Prompt{Items: []*protocol.PromptItem{it}}
	c.build(p)
	it.Memo.Store(&protocol.Memo{Wire: Wire, JSON: []byte(`"remembered"`)})
	if b := c.build(p).body; !bytes.Contains(b, []byte(`"content":"remembered"}]`)) {
		t.Errorf("the memo was not used: %s", b)
	}
	it.Memo.Store(&protocol.Memo{Wire: "responses", JSON: []byte(`"of another wire"`)})
	if b := c.build(p).body; bytes.Contains(b, []byte("another")) {
		t.Errorf("the memo of another wire was used: %s", b)
	}
}

func TestThePrefixIsStable(t *testing.T) {
	c := newClient(t)
	p := model.Prompt{Instructions: "x"}
	var before []byte
	for i := range 20 {
		id := fmt.Sprint("call_", i)
		p.Items = append(p.Items, user("q"), thought("hm"), assistant("a"), toolCall(id), output(id))
		b := c.build(p).body
		if !bytes.HasPrefix(b, before) {
			t.Fatalf("request %d does not begin with the one before:\n%s\n%s", i, before, b)
		}
		before = b[:bytes.LastIndex(b, []byte(`],"stream"`))]
	}
}

func TestWhichCallARefusalMeans(t *testing.T) {
	r := newClient(t).build(model.Prompt{Instructions: "i", Items: []*protocol.PromptItem{user("u"), toolCall("1"), output("1"), output("2"), user("v")}})
	missing := newClient(t).build(model.Prompt{Items: []*protocol.PromptItem{user("u"), toolCall("3"), user("v")}})
	twice := newClient(t).build(model.Prompt{Items: []*protocol.PromptItem{toolCall("4"), output("4"), output("4")}})
	tests := map[string]struct {
		r    request
		c    wire.Complaint
		want *protocol.CallFault
	}{
		"by its place":         {r, wire.Complaint{Message: "messages with role 'tool' must be a response to …", Param: "messages.[4].role"}, &protocol.CallFault{WireID: "2", Fault: protocol.OutputWithoutCall}},
		"by our own judgement": {r, wire.Complaint{Message: "Messages with role 'tool' must be a response to …"}, &protocol.CallFault{WireID: "2", Fault: protocol.OutputWithoutCall}},
		"a place that is none": {r, wire.Complaint{Message: "Messages with role 'tool' must …", Param: "messages.[0].role"}, &protocol.CallFault{WireID: "2", Fault: protocol.OutputWithoutCall}},
		"a place too far":      {r, wire.Complaint{Message: "Messages with role 'tool' must …", Param: "messages.[99]"}, &protocol.CallFault{WireID: "2", Fault: protocol.OutputWithoutCall}},
		"missing":              {missing, wire.Complaint{Message: "insufficient tool messages following tool_calls message"}, &protocol.CallFault{WireID: "3", Fault: protocol.CallWithoutOutput}},
		"twice":                {twice, wire.Complaint{Message: "unexpected tool result"}, &protocol.CallFault{WireID: "4", Fault: protocol.OutputTwice}},
		"about something else": {r, wire.Complaint{Message: "temperature is too hot"}, nil},
		"nothing wrong":        {newClient(t).build(model.Prompt{Items: []*protocol.PromptItem{user("u")}}), wire.Complaint{Message: "tool_calls are not supported"}, nil},
	}
	for name, tt := range tests {
		if d := cmp.Diff(tt.want, tt.r.fault(tt.c)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// BenchmarkBody is what building a request costs, as a whole and for each call in it.
func BenchmarkBody(b *testing.B) {
	for _, calls := range []int{10, 50, 200, 1000} {
		b.Run(fmt.Sprintf("calls=%d", calls), func(b *testing.B) {
			c := newClient(b)
			var p model.Prompt
			for i := range calls {
				id := fmt.Sprint("call_", i)
				o := output(id)
				o.Text = strings.Repeat("a line of output\n", 100)
				p.Items = append(p.Items, user("q"), assistant("a"), toolCall(id), o)
			}
			b.SetBytes(int64(len(c.build(p).body)))
			b.ReportAllocs()
			for b.Loop() {
				c.build(p)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*calls), "ns/call")
		})
	}
}

func TestLimitOfTheResponse(t *testing.T) {
	c := newFormat(Options{BaseURL: "http://model.test/v1", MaxTokens: 77})
	if body := string(c.build(model.Prompt{Model: "m"}).body); !strings.Contains(body, `,"max_tokens":77`) {
		t.Error(body)
	}
}

package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/protocol"
)

func newClient(t testing.TB) *format {
	t.Helper()
	return newFormat(Options{BaseURL: "http://model.test/v1"})
}

func user(text string) *protocol.PromptItem {
	return &protocol.PromptItem{Kind: protocol.PromptUser, Content: protocol.Text(text)}
}

func TestBody(t *testing.T) {
	p := model.Prompt{
		Model: "gpt-5", Instructions: "be \"brief\"", Effort: "low", Summary: "auto", Verbosity: "high", CacheKey: "key-1",
		OutputSchema: json.RawMessage(`{"type":"object"}`),
		Tools: []model.ToolSpec{
			{Name: "shell", Description: "runs", Kind: protocol.CallFunction, Parameters: json.RawMessage(`{"type":"object"}`)},
			{Name: "none", Kind: protocol.CallFunction},
			{Name: "apply_patch", Description: "patches", Kind: protocol.CallCustom, Grammar: "start: x"},
			{Name: "free", Kind: protocol.CallCustom},
			{Kind: protocol.CallLocalShell},
		},
		Items: []*protocol.PromptItem{
			{Kind: protocol.PromptUser, Content: []protocol.Content{{Type: protocol.ContentText, Text: "hi"}, {Type: protocol.ContentImage, ImageURL: "data:image/png;base64,AA"}}},
			{Kind: protocol.PromptReasoning, Text: "of another wire", Raw: protocol.Raw{Wire: "anthropic", JSON: json.RawMessage(`{}`)}},
			{Kind: protocol.PromptAssistant, Text: "cut <here>"},
			{Kind: protocol.PromptCall, WireID: "c1", CallKind: protocol.CallFunction, Name: "shell", Arguments: `{"command":["ls"]}`},
			{Kind: protocol.PromptCall, WireID: "c2", CallKind: protocol.CallCustom, Name: "apply_patch", Arguments: "*** Begin\n"},
			{Kind: protocol.PromptOutput, WireID: "c1", CallKind: protocol.CallFunction, Text: "a\tb"},
			{Kind: protocol.PromptOutput, WireID: "c2", CallKind: protocol.CallCustom, Text: "done", Content: []protocol.Content{{Type: protocol.ContentImage, ImageURL: "data:x"}}},
			{Kind: protocol.PromptOutput, WireID: "c3", CallKind: protocol.CallLocalShell, Content: []protocol.Content{{Type: protocol.ContentImage, ImageURL: "data:y"}}},
		},
	}
	want := `{"model":"gpt-5","instructions":"be \"brief\"","tools":[` +
		`{"type":"function","name":"shell","description":"runs","strict":false,"parameters":{"type":"object"}},` +
		`{"type":"function","name":"none","description":"","strict":false,"parameters":{"type":"object","properties":{}}},` +
		`{"type":"custom","name":"apply_patch","description":"patches","format":{"type":"grammar","syntax":"lark","definition":"start: x"}},` +
		`{"type":"custom","name":"free","description":""},` +
		`{"type":"local_shell"}],"input":[` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"data:image/png;base64,AA"}]},` +
		`{"type":"message","role":"assistant","content":"cut <here>"},` +
		`{"type":"function_call","call_id":"c1","name":"shell","arguments":"{\"command\":[\"ls\"]}"},` +
		`{"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"*** Begin\n"},` +
		`{"type":"function_call_output","call_id":"c1","output":"a\tb"},` +
		`{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"done"},{"type":"input_image","image_url":"data:x"}]},` +
		`{"type":"function_call_output","call_id":"c3","output":[{"type":"input_image","image_url":"data:y"}]}` +
		`],"tool_choice":"auto","parallel_tool_calls":true,"reasoning":{"effort":"low","summary":"auto"},"store":false,"stream":true,` +
		`"include":["reasoning.encrypted_content"],"prompt_cache_key":"key-1",` +
		`"text":{"verbosity":"high","format":{"type":"json_schema","name":"output_schema","strict":true,"schema":{"type":"object"}}}}`
	got := newClient(t).build(p).body
	if !json.Valid(got) {
		t.Error("not valid JSON")
	}
	if d := cmp.Diff(strings.Split(want, ","), strings.Split(string(got), ",")); d != "" {
		t.Errorf("body (-want +got):\n%s", d)
	}
}

func TestSettings(t *testing.T) {
	tests := map[string]struct {
		prompt model.Prompt
		with   []string
		not    []string
	}{
		"nothing asked for": {model.Prompt{Model: "gpt-5"}, []string{`"include":["reasoning.encrypted_content"]`, `"input":[]`}, []string{`"reasoning":`, `"text":`, "prompt_cache_key"}},
		"only effort":       {model.Prompt{Effort: "high"}, []string{`"reasoning":{"effort":"high"}`}, nil},
		"only summary":      {model.Prompt{Summary: "auto"}, []string{`"reasoning":{"summary":"auto"}`}, nil},
		"only verbosity":    {model.Prompt{Verbosity: "low"}, []string{`"text":{"verbosity":"low"}`}, nil},
		"only a schema":     {model.Prompt{OutputSchema: json.RawMessage(`{}`)}, []string{`"text":{"format":{"type":"json_schema","name":"output_schema","strict":true,"schema":{}}}`}, nil},
		"an older model":    {model.Prompt{Model: "gpt-4.1"}, []string{`"include":[]`}, nil},
		"told to reason":    {model.Prompt{Model: "gpt-4.1", Effort: "low"}, []string{`"include":["reasoning.encrypted_content"]`}, nil},
	}
	for name, tt := range tests {
		body := string(newClient(t).build(tt.prompt).body)
		if !json.Valid([]byte(body)) {
			t.Errorf("%s: not JSON: %s", name, body)
		}
		for _, w := range tt.with {
			if !strings.Contains(body, w) {
				t.Errorf("%s: no %s in %s", name, w, body)
			}
		}
		for _, n := range tt.not {
			if strings.Contains(body, n) {
				t.Errorf("%s: %s in %s", name, n, body)
			}
		}
	}
}

func TestLoneOutputs(t *testing.T) {
	lone := `{"type":"function_call_output","call_id":"call_x","output":"aborted"}`
	answer := &protocol.PromptItem{Kind: protocol.PromptAssistant, Text: "ok"}
	for name, tt := range map[string]struct {
		items []*protocol.PromptItem
		place int
	}{
		"before the last message": {[]*protocol.PromptItem{user("1"), answer, user("2"), answer}, 2},
		"nothing else":            {nil, 0},
		"no message":              {[]*protocol.PromptItem{answer}, 1},
	} {
		var body struct{ Input []json.RawMessage }
		if err := json.Unmarshal(newClient(t).build(model.Prompt{Items: tt.items, UnknownCalls: []string{"call_x"}}).body, &body); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(body.Input) != len(tt.items)+1 || string(body.Input[tt.place]) != lone {
			t.Errorf("%s: input %s", name, body.Input)
		}
	}
}

func TestRawItemsGoBackAsTheyCame(t *testing.T) {
	tests := map[string]struct {
		item *protocol.PromptItem
		want string
	}{
		"reasoning": {
			&protocol.PromptItem{Kind: protocol.PromptReasoning, Raw: raw(`{"type":"reasoning","id":"rs_1","status":null,"summary":[{"type":"summary_text","text":"hm"}],"content":null,"encrypted_content":"gAAA=="}`)},
			`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA=="}`,
		},
		"message": {
			&protocol.PromptItem{Kind: protocol.PromptAssistant, Text: "x", Raw: raw(`{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","text":"x","annotations":[]}],"role":"assistant","phase":"final_answer"}`)},
			`{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","text":"x","annotations":[]}],"role":"assistant","phase":"final_answer"}`,
		},
		"function call": {
			&protocol.PromptItem{Kind: protocol.PromptCall, WireID: "c", Raw: raw(`{"type":"function_call","id":"fc_1","status":"completed","call_id":"c","name":"f","arguments":"{ }","internal_thing":[1]}`)},
			`{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{ }"}`,
		},
		"custom call": {
			&protocol.PromptItem{Kind: protocol.PromptCall, WireID: "c", Raw: raw(`{"type":"custom_tool_call","id":"ctc_1","status":"completed","call_id":"c","name":"f","input":"x"}`)},
			`{"type":"custom_tool_call","id":"ctc_1","call_id":"c","name":"f","input":"x"}`,
		},
		"local shell call, which needs its status": {
			&protocol.PromptItem{Kind: protocol.PromptCall, WireID: "lsh_1", Raw: raw(`{"type":"local_shell_call","id":"lsh_1","call_id":null,"status":"completed","action":{"type":"exec","command":["ls"]}}`)},
			`{"type":"local_shell_call","id":"lsh_1","status":"completed","action":{"type":"exec","command":["ls"]}}`,
		},
		"a call that was renamed": {
			&protocol.PromptItem{Kind: protocol.PromptCall, WireID: "new", Name: "f", Arguments: "{}", Raw: raw(`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`)},
			`{"type":"function_call","call_id":"new","name":"f","arguments":"{}"}`,
		},
		"garbled": {
			&protocol.PromptItem{Kind: protocol.PromptAssistant, Text: "x", Raw: raw(`{"type":"message","content":[1 2]}`)},
			`{"type":"message","role":"assistant","content":"x"}`,
		},
		"a message without an id": {
			&protocol.PromptItem{Kind: protocol.PromptAssistant, Text: "x", Raw: raw(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}`)},
			`{"type":"message","role":"assistant","content":"x"}`,
		},
		"a message without a status and annotations": {
			&protocol.PromptItem{Kind: protocol.PromptAssistant, Text: "xy", Raw: raw(`{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"x" },{"type":"refusal","refusal":"y"}]}`)},
			`{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]},{"type":"refusal","refusal":"y"}],"status":"completed"}`,
		},
		"a type of its own":     {&protocol.PromptItem{Kind: protocol.PromptReasoning, Raw: raw(`{"type":"web_search_call"}`)}, ""},
		"of another wire":       {&protocol.PromptItem{Kind: protocol.PromptReasoning, Raw: protocol.Raw{Wire: "chat", JSON: json.RawMessage(`{"type":"reasoning"}`)}}, ""},
		"reasoning without raw": {&protocol.PromptItem{Kind: protocol.PromptReasoning, Text: "hm"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := string(encodedItem(tt.item)); got != tt.want {
				t.Errorf("sent back as\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func raw(s string) protocol.Raw { return protocol.Raw{Wire: Wire, JSON: json.RawMessage(s)} }

func TestAnItemIsEncodedOnce(t *testing.T) {
	it := user("hi")
	c := newClient(t)
	c.build(model.Prompt{Items: []*protocol.PromptItem{it}})
	it.Memo.Store(&protocol.Memo{Wire: Wire, JSON: []byte(`"remembered"`)})
	if b := c.build(model.Prompt{Items: []*protocol.PromptItem{it}}).body; !bytes.Contains(b, []byte(`"input":["remembered"]`)) {
		t.Errorf("the memo was not used: %s", b)
	}
	it.Memo.Store(&protocol.Memo{Wire: "chat", JSON: []byte(`"of another wire"`)})
	if b := c.build(model.Prompt{Items: []*protocol.PromptItem{it}}).body; bytes.Contains(b, []byte("another")) {
		t.Errorf("the memo of another wire was used: %s", b)
	}
}

// A later request begins with every byte of the input of an earlier one.
func TestThePrefixIsStable(t *testing.T) {
	c := newClient(t)
	p := longPrompt(50)
	first := c.build(p).body
	at := bytes.Index(first, []byte(`],"tool_choice"`))
	p.Items = append(p.Items, user("more"))
	for _, other := range []*format{c, newClient(t)} {
		if second := other.build(p).body; !bytes.HasPrefix(second, first[:at]) {
			t.Errorf("prefix differs:\n%s\n%s", first, second)
		}
	}
}

func longPrompt(n int) model.Prompt {
	p := model.Prompt{Model: "gpt-5", Instructions: strings.Repeat("instructions ", 500)}
	for i := range 10 {
		p.Tools = append(p.Tools, model.ToolSpec{Name: fmt.Sprint("tool", i), Description: strings.Repeat("words ", 50), Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	for i := range n {
		id := fmt.Sprint("call_", i)
		p.Items = append(p.Items, user("question"),
			&protocol.PromptItem{Kind: protocol.PromptCall, WireID: id, Name: "shell", Arguments: `{"command":["ls"]}`, Raw: raw(`{"type":"function_call","id":"fc","status":"completed","call_id":"` + id + `","name":"shell","arguments":"{\"command\":[\"ls\"]}"}`)},
			&protocol.PromptItem{Kind: protocol.PromptOutput, WireID: id, Text: strings.Repeat("a line of output\n", 100)})
	}
	return p
}

// BenchmarkBody is what building a request costs, as a whole and for each call in it.
func BenchmarkBody(b *testing.B) {
	for _, calls := range []int{10, 50, 200, 1000} {
		b.Run(fmt.Sprintf("calls=%d", calls), func(b *testing.B) {
			c, p := newClient(b), longPrompt(calls)
			b.SetBytes(int64(len(c.build(p).body)))
			b.ReportAllocs()
			for b.Loop() {
				c.build(p)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*calls), "ns/call")
		})
	}
}

package wirecheck

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/protocol"
)

// history reads a short form: u and a are messages, r is reasoning, c and o are
// a function call and its output, C and O a custom one, L a local shell call, x an
// output with the text "aborted".
func history(short string) []Item {
	var items []Item
	for i, word := range strings.Fields(short) {
		letter, id, _ := strings.Cut(word, ":")
		it := Item{ID: id, At: i}
		switch letter {
		case "u":
			it.Kind = User
		case "a":
			it.Kind = Assistant
		case "r":
			it.Kind = Reasoning
		case "c":
			it.Kind, it.Call = Call, protocol.CallFunction
		case "C":
			it.Kind, it.Call = Call, protocol.CallCustom
		case "L":
			it.Kind, it.Call = Call, protocol.CallLocalShell
		case "o":
			it.Kind, it.Call, it.Text = Output, protocol.CallFunction, "ok"
		case "O":
			it.Kind, it.Call, it.Text = Output, protocol.CallCustom, "ok"
		case "x":
			it.Kind, it.Call, it.Text = Output, protocol.CallFunction, Aborted
		default:
			panic("unknown letter " + letter)
		}
		items = append(items, it)
	}
	return items
}

func TestValidHistories(t *testing.T) {
	for _, h := range []string{
		"",
		"u",
		"u a",
		"u a u",
		"u c:1 o:1",
		"u c:1 o:1 a u",
		"u r c:1 o:1 r a",
		"u a c:1 o:1",
		"u c:1 c:2 o:1 o:2",
		"u c:1 c:2 o:2 o:1",
		"u c:1 o:1 c:2 o:2",
		"u c:1 r c:2 o:1 o:2",
		"u r a c:1 C:2 o:1 O:2 u",
		"u C:1 O:1",
		"u L:1 o:1",
		"u c:1 o:1 c:1 o:1",
		"u c:1 o:1 a u c:1 o:1",
		"u c:1 C:1 O:1 o:1", // the nearest call of that id is meant
		"u r r a",
		"u c:1 x:1 u",
	} {
		if f := Check(history(h)); f != nil {
			t.Errorf("%s: %v", h, f)
		}
	}
}

func TestFaults(t *testing.T) {
	tests := map[string]struct {
		kind  FaultKind
		index int
	}{
		"u c:1":                   {Missing, 1},
		"u c:1 u":                 {Missing, 1},
		"u c:1 a":                 {Missing, 1},
		"u c:1 c:2 o:2":           {Missing, 1},
		"u c:1 c:2 o:1":           {Missing, 2},
		"u c:1 c:2 o:1 u":         {Missing, 2},
		"u c:1 o:1 c:1 u":         {Missing, 3},
		"u c:1 u o:1":             {Late, 1},
		"u c:1 a o:1":             {Late, 1},
		"u c:1 c:2 o:1 c:3 o:2":   {Late, 2},
		"u c:1 c:2 o:1 r a o:2":   {Late, 2},
		"u o:1":                   {Orphaned, 1},
		"u c:1 o:1 o:2":           {Orphaned, 3},
		"o:1 u c:2 o:2":           {Orphaned, 0},
		"u x:1 u":                 {Orphaned, 1},
		"u o:1 c:1":               {Early, 1},
		"o:1 u c:1 o:1":           {Early, 0},
		"u c:1 o:1 o:1":           {Twice, 3},
		"u c:1 o:1 u o:1":         {Twice, 4},
		"u c:1 c:2 o:1 o:1 o:2":   {Twice, 4},
		"u c:1 o:1 c:1 o:1 o:1 u": {Twice, 5},
		"u c:1 O:1":               {WrongKind, 2},
		"u C:1 o:1":               {WrongKind, 2},
		"u L:1 O:1":               {WrongKind, 2},
		"u r":                     {Alone, 1},
		"u r u":                   {Alone, 1},
		"u c:1 r o:1":             {Alone, 2},
		"u c:1 o:1 r u":           {Alone, 3},
	}
	for h, want := range tests {
		f := Check(history(h))
		if f == nil {
			t.Errorf("%s: no fault, want %v", h, want)
			continue
		}
		if f.Kind != want.kind || f.Index != want.index {
			t.Errorf("%s: %v, want %s at %d", h, f, want.kind, want.index)
		}
	}
}

func TestAnthropicIDs(t *testing.T) {
	for h, want := range map[string]string{
		"u c:1 o:1 c:1 o:1": "messages.3.content.0: `tool_use` ids must be unique",
		"u c:a.b o:a.b":     "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
		"u c:1":             "messages.1: `tool_use` ids were found without",
		"u c:a-B_9 o:a-B_9": "",
	} {
		got := ""
		if f := CheckWire(Anthropic, history(h)); f != nil {
			got = string(f.Body(Anthropic))
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", h, got, want)
		}
		if f := CheckWire(Responses, history(h)); f != nil && f.Kind != Missing {
			t.Errorf("%s: %v on a wire without such a rule", h, f)
		}
	}
}

func TestRememberedCalls(t *testing.T) {
	tests := map[string]FaultKind{
		"u x:9 u":              "",
		"x:9":                  "",
		"u c:1 o:1 x:9 u":      "",
		"u c:9 o:9 u":          "", // known after all
		"u":                    Missing,
		"u o:9 u":              Orphaned, // not the exact text
		"u x:9 x:9 u":          Twice,
		"u x:8 u":              Orphaned,
		"u x:9 u c:9 o:9":      "",
		"u c:1 x:9 o:1":        "",
		"u c:1 x:9 u":          Missing,
		"u c:9 o:9 a u x:9 u":  Twice,
		"u c:1 c:2 o:1 u o:2 ": Late,
	}
	for h, want := range tests {
		var got FaultKind
		if f := Check(history(h), "9"); f != nil {
			got = f.Kind
		}
		if got != want {
			t.Errorf("%s: fault %q, want %q", h, got, want)
		}
	}
	if f := Check(history("u"), "9"); f.Item.ID != "9" || f.Index != -1 {
		t.Errorf("fault %+v does not name the remembered call", f)
	}
}

// A valid history that loses, doubles or moves one output is invalid: tried on
// many random ones.
func TestEveryMutationIsSeen(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		valid := randomHistory(rnd)
		if f := Check(valid); f != nil {
			t.Fatalf("%v in %v", f, valid)
		}
		for i, it := range valid {
			if it.Kind != Output {
				continue
			}
			without := append(append([]Item(nil), valid[:i]...), valid[i+1:]...)
			wrong := append([]Item(nil), valid...)
			wrong[i].Call = protocol.CallLocalShell
			for name, h := range map[string][]Item{
				"lost":       without,
				"doubled":    append(append(append([]Item(nil), valid[:i+1]...), it), valid[i+1:]...),
				"first":      append([]Item{it}, without...),
				"last":       append(append([]Item(nil), without...), Item{Kind: User}, it),
				"wrong kind": wrong,
			} {
				if Check(h) == nil {
					t.Fatalf("output %d %s: no fault in %v", i, name, h)
				}
			}
		}
	}
}

func randomHistory(rnd *rand.Rand) []Item {
	var items []Item
	for range 1 + rnd.IntN(4) {
		items = append(items, Item{Kind: User})
		for range rnd.IntN(3) {
			if rnd.IntN(2) == 0 {
				items = append(items, Item{Kind: Reasoning}, Item{Kind: Assistant})
			}
			var outs []Item
			for n := range 1 + rnd.IntN(3) {
				kind := []protocol.CallKind{protocol.CallFunction, protocol.CallCustom}[rnd.IntN(2)]
				id := fmt.Sprint("call_", n) // repeated in every response
				items = append(items, Item{Kind: Call, Call: kind, ID: id})
				outs = append(outs, Item{Kind: Output, Call: kind, ID: id})
			}
			rnd.Shuffle(len(outs), func(i, j int) { outs[i], outs[j] = outs[j], outs[i] })
			items = append(items, outs...)
		}
		items = append(items, Item{Kind: Assistant})
	}
	return items
}

func TestPrompt(t *testing.T) {
	got := Prompt([]*protocol.PromptItem{
		{Kind: protocol.PromptUser, Content: protocol.Text("hi")},
		{Kind: protocol.PromptReasoning, Text: "hm"},
		{Kind: protocol.PromptCall, WireID: "1", CallKind: protocol.CallCustom, Name: "t", Arguments: "in"},
		{Kind: protocol.PromptOutput, WireID: "1", CallKind: protocol.CallCustom, Text: "out"},
		{Kind: protocol.PromptAssistant, Text: "bye"},
	})
	want := []Item{
		{Kind: User, Text: "hi"},
		{Kind: Reasoning, Text: "hm", At: 1},
		{Kind: Call, Call: protocol.CallCustom, ID: "1", Name: "t", Text: "in", At: 2},
		{Kind: Output, Call: protocol.CallCustom, ID: "1", Text: "out", At: 3},
		{Kind: Assistant, Text: "bye", At: 4},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("items (-want +got):\n%s", d)
	}
	if f := Check(got); f != nil {
		t.Error(f)
	}
}

func TestParse(t *testing.T) {
	fn := protocol.CallFunction
	tests := map[string]struct {
		wire Wire
		body string
		want []Item
	}{
		"responses": {
			Responses, `{"input":[{"role":"user","content":"hi"},{"type":"message","role":"developer","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]},
			{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]},{"type":"web_search_call","id":"ws"},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}]},
			{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"custom_tool_call","call_id":"2","name":"g","input":"x"},{"type":"local_shell_call","id":"3"},
			{"type":"function_call_output","call_id":"1","output":"o"},{"type":"custom_tool_call_output","call_id":"2","output":[{"type":"input_text","text":"p"}]},{"type":"local_shell_call_output","call_id":"3","output":"q"}]}`,
			[]Item{
				{Kind: User, Text: "hi"},
				{Kind: User, Text: "ab", At: 1},
				{Kind: Reasoning, ID: "rs_1", Text: "hm", At: 2},
				{Kind: Assistant, Text: "web_search_call", At: 3},
				{Kind: Assistant, Text: "yes", At: 4},
				{Kind: Call, Call: fn, ID: "1", Name: "f", Text: "{}", At: 5},
				{Kind: Call, Call: protocol.CallCustom, ID: "2", Name: "g", Text: "x", At: 6},
				{Kind: Call, Call: protocol.CallLocalShell, ID: "3", Name: "local_shell_call", At: 7},
				{Kind: Output, Call: fn, ID: "1", Text: "o", At: 8},
				{Kind: Output, Call: protocol.CallCustom, ID: "2", Text: "p", At: 9},
				{Kind: Output, Call: protocol.CallLocalShell, ID: "3", Text: "q", At: 10},
			},
		},
		"responses with a plain text": {Responses, `{"input":"hi"}`, []Item{{Kind: User, Text: "hi"}}},
		"chat": {
			Chat, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"hi"}]},
			{"role":"assistant","content":"t","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"g"}}]},
			{"role":"tool","tool_call_id":"1","content":"o"},{"role":"tool","tool_call_id":"2","content":"p"},{"role":"assistant","content":"bye"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"3","function":{"name":"f"}}]}]}`,
			[]Item{
				{Kind: User, Text: "s"},
				{Kind: User, Text: "hi", At: 1},
				{Kind: Assistant, Text: "t", At: 2},
				{Kind: Call, Call: fn, ID: "1", Name: "f", Text: "{}", At: 2},
				{Kind: Call, Call: fn, ID: "2", Name: "g", At: 2, Part: 1},
				{Kind: Output, Call: fn, ID: "1", Text: "o", At: 3},
				{Kind: Output, Call: fn, ID: "2", Text: "p", At: 4},
				{Kind: Assistant, Text: "bye", At: 5},
				{Kind: Call, Call: fn, ID: "3", Name: "f", At: 6},
			},
		},
		"anthropic": {
			Anthropic, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"t"},
			{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"o"}]},{"type":"text","text":"go"}]}]}`,
			[]Item{
				{Kind: User, Text: "hi"},
				{Kind: Reasoning, Text: "hm", At: 1},
				{Kind: Reasoning, At: 1, Part: 1},
				{Kind: Assistant, Text: "t", At: 1, Part: 2},
				{Kind: Call, Call: fn, ID: "1", Name: "f", Text: "{}", At: 1, Part: 3},
				{Kind: Output, Call: fn, ID: "1", Text: "o", At: 2},
				{Kind: User, Text: "go", At: 2, Part: 1},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tt.wire, []byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("items (-want +got):\n%s", d)
			}
		})
	}
}

func TestJudgeRefusesWhatIsNoRequest(t *testing.T) {
	for _, tt := range []struct {
		wire Wire
		body string
	}{
		{Responses, `[]`},
		{Responses, `{}`},
		{Responses, `{"input":5}`},
		{Responses, `{"input":[{"content":5}]}`},
		{Responses, `{"input":[{"content":[5]}]}`},
		{Responses, `{"input":[{"content":[{"text":5}]}]}`},
		{Chat, `{"messages":5}`},
		{Chat, `{"messages":[{"content":5}]}`},
		{Anthropic, `x`},
		{Anthropic, `{"messages":[{"content":5}]}`},
		{Anthropic, `{"messages":[{"content":[{"type":"tool_result","content":5}]}]}`},
		{"smoke", `{}`},
	} {
		if _, err := Judge(tt.wire, []byte(tt.body)); err == nil {
			t.Errorf("%s %s: no error", tt.wire, tt.body)
		}
	}
}

func TestBodies(t *testing.T) {
	at := func(w Wire, short string, remembered ...string) string {
		f := Check(history(short), remembered...)
		if f == nil {
			t.Fatalf("%s: no fault", short)
		}
		var body struct {
			Error struct{ Message, Type, Param string } `json:"error"`
		}
		if err := json.Unmarshal(f.Body(w), &body); err != nil {
			t.Fatal(err)
		}
		if body.Error.Type != "invalid_request_error" {
			t.Errorf("%s %s: type %q", w, short, body.Error.Type)
		}
		return body.Error.Message
	}
	tests := []struct {
		wire        Wire
		short, want string
	}{
		{Responses, "u c:call_X", "No tool output found for function call call_X."},
		{Responses, "u C:call_X u O:call_X", "No tool output found for custom tool call call_X."},
		{Responses, "u L:call_X", "No tool output found for local shell call call_X."},
		{Responses, "o:call_X", "No tool call found for function call output with call_id call_X."},
		{Responses, "O:call_X", "No tool call found for custom tool call output with call_id call_X."},
		{Responses, "u c:1 O:1", "No tool call found for custom tool call output with call_id 1."},
		{Responses, "u c:1 o:1 o:1", "Duplicate function_call_output for call_id '1'. Each function_call must have exactly one matching function_call_output."},
		{Responses, "u r:rs_1", "Item 'rs_1' of type 'reasoning' was provided without its required following item."},
		{Chat, "u c:1", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: 1"},
		{Chat, "u o:1", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."},
		{Chat, "u c:1 o:1 o:1", "Invalid parameter: Duplicate value for 'tool_call_id' of '1' in message with role 'tool'."},
		{Anthropic, "u c:1 u", "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: 1. Each `tool_use` block must have a corresponding `tool_result` block in the next message."},
		{Anthropic, "u o:1", "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: 1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."},
		{Anthropic, "u c:1 o:1 o:1", "messages.3.content.0: each tool_use must have a single result. Found multiple `tool_result` blocks with id: 1"},
		{Anthropic, "u r u", "messages.1: The final block in an assistant message cannot be `thinking`."},
	}
	for _, tt := range tests {
		if got := at(tt.wire, tt.short); got != tt.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.wire, tt.short, got, tt.want)
		}
	}
	if got := at(Responses, "u", "call_9"); got != "No tool output found for function call call_9." {
		t.Errorf("a remembered call: %s", got)
	}
	if got := string((&Fault{Kind: Missing, Item: Item{Call: protocol.CallFunction, ID: "call_X"}}).Body(Responses)); got !=
		`{"error":{"code":null,"message":"No tool output found for function call call_X.","param":"input","type":"invalid_request_error"}}` {
		t.Errorf("whole body: %s", got)
	}
}

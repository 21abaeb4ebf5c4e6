package responses_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/responses"
	"github.com/fermata-agent/fermata/protocol"
)

// What services send that is not quite the wire, and what is made of it.
func TestQuirks(t *testing.T) {
	const message = `{"id":"m","type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`
	const call = `{"id":"f","type":"function_call","call_id":"c","name":"shell","arguments":"{}"}`
	for name, tt := range map[string]struct {
		events []string
		want   []string
	}{
		"arguments only when they are done": {
			[]string{
				`{"type":"response.output_item.added","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"shell","arguments":""}}`,
				`{"type":"response.function_call_arguments.done","output_index":0,"item_id":"f","arguments":"{\"a\":1}"}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"shell","arguments":""}}`, completed,
			},
			[]string{`call c shell {"a":1}`},
		},
		"arguments only in pieces": {
			[]string{
				`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\""}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":":1}"}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"shell"}}`, completed,
			},
			[]string{`call c shell {"a":1}`},
		},
		"deltas under an empty message": {[]string{
			`{"type":"response.output_text.delta","output_index":0,"delta":"a"}`, `{"type":"response.output_text.delta","output_index":0,"delta":"b"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"m","type":"message","role":"assistant","content":[]}}`, completed,
		}, []string{`text "ab"`}},
		"items only at the end": {[]string{`{"type":"response.completed","response":{"id":"r","output":[` + message + `,` + call + `]}}`}, []string{`text "a"`, `call c shell {}`}},
		"items at the end as well": {
			[]string{`{"type":"response.output_item.done","output_index":0,"item":` + message + `}`, `{"type":"response.completed","response":{"id":"r","output":[` + message + `]}}`},
			[]string{`text "a"`},
		},
		"all items have the number 0": {
			[]string{
				`{"type":"response.output_text.delta","output_index":0,"item_id":"m","delta":"a"}`, `{"type":"response.output_item.done","output_index":0,"item":` + message + `}`,
				`{"type":"response.output_item.added","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"shell","arguments":""}}`,
				`{"type":"response.output_item.added","output_index":0,"item":{"id":"g","type":"function_call","call_id":"d","name":"shell","arguments":""}}`,
				`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"g","delta":"{\"g\":1}"}`,
				`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"f","delta":"{\"f\":1}"}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"shell"}}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"id":"g","type":"function_call","call_id":"d","name":"shell"}}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"id":"n","type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}}`, completed,
			},
			[]string{`text "a"`, `call c shell {"f":1}`, `call d shell {"g":1}`, `text "b"`},
		},
		"an item that is renamed": {
			[]string{
				`{"type":"response.output_item.added","output_index":0,"item":{"id":"x","type":"message","role":"assistant","content":[]}}`,
				`{"type":"response.output_text.delta","output_index":0,"item_id":"y","delta":"a"}`,
				`{"type":"response.output_item.done","output_index":0,"item":` + message + `}`, completed,
			},
			[]string{`text "a"`},
		},
		"finished messages that all have the number 0": {
			[]string{`{"type":"response.output_item.done","output_index":0,"item":` + message + `}`, `{"type":"response.output_item.done","output_index":0,"item":` + strings.Replace(message, `"m"`, `"n"`, 1) + `}`, completed},
			[]string{`text "a"`, `text "a"`},
		},
		"text without an item": {
			[]string{`{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.output_text.delta","delta":"b"}`, completed},
			[]string{`text "ab"`},
		},
		"a call without a call_id":    {[]string{`{"type":"response.output_item.done","output_index":0,"item":{"id":"f1","type":"function_call","name":"shell","arguments":"{}"}}`, completed}, []string{`call f1 shell {}`}},
		"a namespace before the name": {[]string{`{"type":"response.output_item.done","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"functions.shell","arguments":"{}"}}`, completed}, []string{`call c shell {}`}},
	} {
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
	if _, _, err := answer(t, completed); !modeltest.IsEmpty(err) {
		t.Errorf("an empty response: %v", err)
	}
}

func TestAResponseInOnePiece(t *testing.T) {
	s := modeltest.New(t, modeltest.Status(http.StatusOK, `{"id":"r","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}`, "Content-Type", "application/json"))
	rec := &modeltest.Recorder{}
	end, err := responses.New(responses.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport()}).Stream(t.Context(), modeltest.Hello(), rec)
	if err != nil || end.Usage == nil || end.Usage.Total != 5 || len(rec.Summary()) != 1 {
		t.Errorf("end %+v, error %v, items %v", end, err, rec.Summary())
	}
}

func TestSecondTryWithoutAMember(t *testing.T) {
	for gone, refusal := range map[string]string{
		`"effort"`:              `Unsupported parameter: 'reasoning.effort' is not supported with this model.`,
		`"summary"`:             `Your organization must be verified to generate reasoning summaries. Unsupported value: 'reasoning.summary'`,
		`encrypted_content`:     `Encrypted content is not supported with this model.`,
		`"verbosity"`:           `Unsupported parameter: 'text.verbosity'`,
		`"prompt_cache_key"`:    `Unknown parameter: 'prompt_cache_key'.`,
		`"parallel_tool_calls"`: `parallel_tool_calls is not supported`,
		`"type":"custom"`:       `Invalid value: 'custom'. Supported values are: 'function'`,
	} {
		p := modeltest.Hello()
		p.Effort, p.Summary, p.Verbosity = "medium", "auto", "low"
		s := modeltest.New(t, modeltest.Status(400, `{"error":{"type":"invalid_request_error","message":"`+refusal+`"}}`), modeltest.Respond(modeltest.Custom("c", "patch", "*** x")), modeltest.Respond(modeltest.Say("ok")))
		c := responses.New(responses.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport()})
		for range 2 {
			rec := &modeltest.Recorder{}
			if _, err := c.Stream(t.Context(), p, rec); err != nil {
				t.Errorf("%s: %v", gone, err)
				break
			}
			p.Items = append(p.Items, modeltest.Answer(rec.Finished())...)
		}
		for _, r := range s.Requests() {
			if has := strings.Contains(string(r.Raw), gone); has != (r.Number == 1) {
				t.Errorf("request %d has %s: %v", r.Number, gone, has)
			}
		}
	}
}

// A service that refuses custom tools gets functions, and the calls of them go back
// as what they were.
func TestCustomToolsAsFunctions(t *testing.T) {
	p := modeltest.Hello()
	s := modeltest.New(t, modeltest.Status(400, `{"error":{"message":"Invalid value: 'custom'. Supported values are: 'function'"}}`),
		modeltest.Respond(modeltest.Call("c", "patch", `{"input":"*** x"}`)), modeltest.Respond(modeltest.Say("ok")))
	c := responses.New(responses.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport()})
	for range 2 {
		rec := &modeltest.Recorder{}
		if _, err := c.Stream(t.Context(), p, rec); err != nil {
			t.Fatal(err)
		}
		for _, b := range rec.Finished() {
			if call, ok := b.(*protocol.ToolCall); ok && (call.Kind != protocol.CallFunction || call.Arguments != `{"input":"*** x"}`) {
				t.Errorf("call is %+v", call)
			}
		}
		p.Items = append(p.Items, modeltest.Answer(rec.Finished())...)
	}
}

// Package e2e holds tests that need what the product does not: the official
// SDKs of the model services, as oracles. They read what modeltest serves, and
// take what our adapters send as their own typed parameters. It is a module of
// its own, so that the product's stays small.
package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/protocol"
)

const (
	firstArgs  = `{"command":["bash","-lc","echo \"é😀\" > a.txt"]}`
	secondArgs = `{"command":["ls"]}`
)

// reply is a response with everything in it.
func reply() modeltest.Reply {
	return modeltest.Respond(
		modeltest.Think("h", "m"), modeltest.Say("I ", "look"),
		modeltest.Calls(
			modeltest.ToolCall{ID: "call_1", Name: "shell", Arguments: firstArgs},
			modeltest.ToolCall{ID: "call_2", Name: "shell", Arguments: secondArgs}),
		modeltest.Usage(protocol.Usage{Input: 120, Cached: 20, Output: 30, Total: 150}))
}

// bodies are the requests that our client makes in a conversation with images,
// reasoning, calls, a turn that was stopped, and an output schema at the end.
func bodies(t *testing.T, newClient func(url string) model.Client) (all [][]byte) {
	t.Helper()
	s := modeltest.New(t, reply(), modeltest.Respond(modeltest.Custom("call_3", "patch", "*** Begin Patch")), modeltest.Respond(modeltest.Say("done")))
	c, p := newClient(s.URL()), modeltest.Hello()
	p.Effort, p.Summary = "low", "auto"
	p.Items[0].Content = append(p.Items[0].Content, protocol.Content{Type: protocol.ContentImage, ImageURL: "data:image/png;base64,AAAA"})
	for range 2 {
		rec := &modeltest.Recorder{}
		if _, err := c.Stream(t.Context(), p, rec); err != nil {
			t.Fatal(err)
		}
		p.Items = append(p.Items, modeltest.Answer(rec.Finished())...)
	}
	p.Items = append(p.Items,
		&protocol.PromptItem{Kind: protocol.PromptUser, Content: protocol.Text("<turn_aborted>x</turn_aborted>")},
		&protocol.PromptItem{Kind: protocol.PromptUser, Content: protocol.Text("go on")})
	p.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	if _, err := c.Stream(t.Context(), p, &modeltest.Recorder{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Requests() {
		all = append(all, r.Raw)
	}
	return all
}

// understood checks that an SDK's parameters hold all that a request says:
// what they are written as is the request again. known changes what of our
// request is known to come out differently; it gets every object in it.
func understood(t *testing.T, body []byte, params any, known func(map[string]any)) {
	t.Helper()
	if err := json.Unmarshal(body, params); err != nil {
		t.Fatalf("the SDK does not take our request: %v", err)
	}
	again, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(plain(t, body, known), plain(t, again, func(map[string]any) {})); d != "" {
		t.Errorf("the SDK understands our request differently (-ours +theirs):\n%s", d)
	}
}

// plain is JSON without members that are null, and without stream, for which
// the SDKs have a method in place of a parameter.
func plain(t *testing.T, b []byte, change func(map[string]any)) any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	delete(v, "stream")
	walk(v, change)
	return v
}

func walk(v any, change func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, m any) bool { return m == nil })
		change(v)
		for _, m := range v {
			walk(m, change)
		}
	case []any:
		for _, m := range v {
			walk(m, change)
		}
	}
}

// same compares what an SDK read with what was served.
func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the SDK read\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

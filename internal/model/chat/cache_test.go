package chat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/protocol"
)

// A Claude behind this wire is told what to cache: the instructions and the last
// two messages; other models are not.
func TestCacheMarks(t *testing.T) {
	items := []*protocol.PromptItem{
		{Kind: protocol.PromptUser, Content: protocol.Text("one")},
		{Kind: protocol.PromptAssistant, Text: "two"},
		{Kind: protocol.PromptUser, Content: []protocol.Content{{Type: protocol.ContentText, Text: "look"}, {Type: protocol.ContentImage, ImageURL: "data:x"}}},
		{Kind: protocol.PromptCall, WireID: "c", Name: "f", Arguments: "{}", CallKind: protocol.CallFunction},
		{Kind: protocol.PromptOutput, WireID: "c", Text: `an "output","content":"x"`, CallKind: protocol.CallFunction},
	}
	for name, want := range map[string]int{"anthropic/claude-sonnet-4.5": 3, "qwen3-coder": 0} {
		body := (&format{}).build(model.Prompt{Model: name, Instructions: "be", Items: items}).body
		var req struct {
			Messages []struct {
				Role    string
				Content any
			}
		}
		if err := json.Unmarshal(body, &req); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		if got := strings.Count(string(body), `"cache_control"`); got != want {
			t.Errorf("%s: %d marks in %s", name, got, body)
		}
		if want == 0 {
			continue
		}
		for i, m := range req.Messages {
			marked := false
			if parts, ok := m.Content.([]any); ok {
				_, marked = parts[len(parts)-1].(map[string]any)["cache_control"]
			}
			if should := i == 0 || i >= 3 && m.Role != "assistant"; marked != should {
				t.Errorf("message %d (%s) is marked: %t", i, m.Role, marked)
			}
		}
	}
}

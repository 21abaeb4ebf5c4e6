package anthropic

import (
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/protocol"
)

// The service is told which results are errors.
func TestFailedOutputIsAnError(t *testing.T) {
	for failed, want := range map[bool]int{false: 0, true: 1} {
		body := string((&format{}).build(model.Prompt{Model: "claude", Items: []*protocol.PromptItem{
			{Kind: protocol.PromptUser, Content: protocol.Text("go")},
			{Kind: protocol.PromptCall, WireID: "c", Name: "f", Arguments: "{}", CallKind: protocol.CallFunction},
			{Kind: protocol.PromptOutput, WireID: "c", Text: "no", CallKind: protocol.CallFunction, Failed: failed},
		}}).body)
		if strings.Count(body, `"is_error":true`) != want {
			t.Errorf("failed %t: %s", failed, body)
		}
	}
}

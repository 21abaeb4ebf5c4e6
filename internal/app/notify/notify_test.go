package notify

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/conversation"
	p "github.com/fermata-agent/fermata/protocol"
)

// One argument has a limit that a long message exceeds, all the more if it has to
// be written with escapes.
func TestNoticeFitsIntoAnArgument(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x1b", 20_000)
	s := conversation.TurnSummary{
		Cwd: "/", Reason: p.Failed, Inputs: []string{"first"}, Last: "begin" + long + "end", Error: &p.Error{Message: long},
	}
	for range 200 {
		s.Inputs = append(s.Inputs, long)
	}
	s.Inputs = append(s.Inputs, "last")
	text := noticeText(s)
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil || len(text) > maxNotice {
		t.Fatalf("%d bytes: %v", len(text), err)
	}
	inputs := m["input-messages"].([]any)
	if last := m["last-assistant-message"].(string); !strings.HasPrefix(last, "begin") || !strings.HasSuffix(last, "end") || inputs[len(inputs)-1] != "last" {
		t.Errorf("%.200s", text)
	}
}

package turn

import (
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

// The end of a turn has the number of repairs that its calls needed.
func TestRepairsAreCounted(t *testing.T) {
	s := fold(started()...)
	s, _ = steps(t, s,
		ModelItem{Response: 1, Index: 0, Body: &p.ToolCall{Name: "a"}}, ModelItem{Response: 1, Index: 1, Body: &p.ToolCall{Name: "b"}}, ModelDone{Response: 1},
		ToolDone{Output: p.ToolOutput{Call: id(1, 1, 0), Repairs: []string{"x", "y"}}}, ToolDone{Output: p.ToolOutput{Call: id(1, 1, 1), Repairs: []string{"z"}}})
	_, events := steps(t, s, ModelDone{Response: 2})
	if end, ok := events[len(events)-1].(*p.TurnEnded); !ok || end.Repairs != 3 {
		t.Errorf("events %+v", events)
	}
}

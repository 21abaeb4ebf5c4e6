package turn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

// words writes an event in a few words, enough to tell what was decided.
func words(b p.Body) string {
	switch b := b.(type) {
	case *p.TurnStarted:
		if b.Compact {
			return "TurnStarted to compact"
		}
		if b.Shell {
			return "TurnStarted for a command"
		}
	case *p.UserMessage:
		return fmt.Sprintf("UserMessage #%d", b.Input)
	case *p.InputAccepted:
		if b.After {
			return fmt.Sprintf("InputAccepted #%d %s after the stop", b.Input, b.Mode)
		}
		return fmt.Sprintf("InputAccepted #%d %s", b.Input, b.Mode)
	case *p.InputReturned:
		return fmt.Sprintf("InputReturned ×%d", len(b.Inputs))
	case *p.ModelRequested:
		if b.Compact {
			return fmt.Sprintf("ModelRequested %d to sum up", b.Response)
		}
		return fmt.Sprintf("ModelRequested %d", b.Response)
	case *p.ModelEnded:
		if b.Error != nil {
			return "ModelEnded with an error"
		}
	case *p.AssistantMessage:
		if b.Partial {
			return "AssistantMessage cut"
		}
	case *p.ToolOutput:
		if b.Aborted {
			return "ToolOutput aborted"
		}
	case *p.ApprovalResolved:
		return "ApprovalResolved " + string(b.Decision)
	case *p.CallStarted:
		return strings.TrimSpace("CallStarted " + string(b.Grant))
	case *p.BackgroundStarted:
		return fmt.Sprintf("BackgroundStarted %d", b.ID)
	case *p.BackgroundEnded:
		return fmt.Sprintf("BackgroundEnded %d %s", b.ID, b.Reason)
	case *p.StopRequested:
		return "StopRequested " + string(b.Reason)
	case *p.TurnEnded:
		return "TurnEnded " + string(b.Reason)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", b), "*protocol.")
}

// answer writes what Decide says: events, an error, or ∅ for nothing at all.
func answer(events []p.Body, err error) string {
	if err != nil {
		if len(events) > 0 {
			return fmt.Sprintf("%d events AND an error: %v", len(events), err)
		}
		return "∅ " + err.Error()
	}
	if len(events) == 0 {
		return "∅"
	}
	var out []string
	for _, b := range events {
		out = append(out, words(b))
	}
	return strings.Join(out, ", ")
}

// The rows and the columns of the table.
var (
	theStates = map[string]State{
		"idle":            {},
		"streaming":       fold(started()...),
		"tool running":    fold(toolRuns()...),
		"approval open":   fold(asked()...),
		"back-off":        fold(backingOff()...),
		"stopping model":  fold(stopped(started())...),
		"stopping tool":   fold(stopped(toolRuns())...),
		"compacting":      fold(compacting()...),
		"summing up":      fold(summing()...),
		"message waiting": fold(with(started(), accepted(2, p.Queue), &p.ModelEnded{Response: 1}, ended(p.Completed))...),
	}

	theInputs = []struct {
		name string
		in   Input
	}{
		{"message", User{Content: p.Text("m")}},
		{"message steer", User{Content: p.Text("m"), WhenBusy: p.Steer}},
		{"message queue", User{Content: p.Text("m"), WhenBusy: p.Queue}},
		{"message replace", User{Content: p.Text("m"), WhenBusy: p.Replace}},
		{"message empty", User{}},
		{"next", Next{}},
		{"summarise", Compact{}},
		{"model said", ModelItem{Response: 1, Body: &p.AssistantMessage{Text: "x"}}},
		{"model call", ModelItem{Response: 1, Body: &p.ToolCall{Name: "work"}}},
		{"model done", ModelDone{Response: 1, Summary: "gist", Open: []Partial{{Item: id(1, 1, 3), Kind: p.DeltaMessage, Text: "half"}}}},
		{"model failed", ModelDone{Response: 1, Error: &p.Error{Kind: p.ErrorAuth, Message: "no key"}}},
		{"model too full", ModelDone{Response: 1, Error: tooLong()}},
		{"model broke", ModelDone{Response: 1, Error: broken()}},
		{"retry due", RetryDue{}},
		{"tool asked", ToolAsked{Request: p.ApprovalRequested{Call: id(1, 1, 0)}}},
		{"tool done", ToolDone{Output: p.ToolOutput{Call: id(1, 1, 0), Output: "x"}}},
		{"tool cut", ToolDone{Output: p.ToolOutput{Call: id(1, 1, 0), Aborted: true}}},
		{"approve", Approval{Call: id(1, 1, 0), Decision: p.Approved}},
		{"deny", Approval{Call: id(1, 1, 0), Decision: p.Denied}},
		{"abort", Approval{Call: id(1, 1, 0), Decision: p.Abort}},
		{"stop", Stop{}},
		{"stop another", Stop{Turn: 7}},
		{"edit unknown", Edit{Input: 7, Content: p.Text("m")}},
		{"delete unknown", Delete{Input: 7}},
		{"lost", Lost{}},
		{"crash", Lost{Crash: true}},
	}
)

// theTable is what follows from each input in each state. ∅ is an input that is
// answered and leaves no trace.
var theTable = map[string]string{
	"idle": `
message          → TurnStarted, UserMessage #1, ModelRequested 1
message steer    → TurnStarted, UserMessage #1, ModelRequested 1
message queue    → TurnStarted, UserMessage #1, ModelRequested 1
message replace  → TurnStarted, UserMessage #1, ModelRequested 1
message empty    → ∅ the message is empty
next             → ∅
summarise        → TurnStarted to compact, ModelRequested 1 to sum up
model said       → ∅
model call       → ∅
model done       → ∅
model failed     → ∅
model too full   → ∅
model broke      → ∅
retry due        → ∅
tool asked       → ∅
tool done        → ∅
tool cut         → ∅
approve          → ∅ that approval is no longer open
deny             → ∅ that approval is no longer open
abort            → ∅ that approval is no longer open
stop             → ∅ nothing to stop
stop another     → ∅ nothing to stop
edit unknown     → ∅ that message is no longer waiting
delete unknown   → ∅ that message is no longer waiting
lost             → ∅
crash            → ∅
`,
	"message waiting": `
message          → TurnStarted, UserMessage #3, ModelRequested 1
message steer    → TurnStarted, UserMessage #3, ModelRequested 1
message queue    → TurnStarted, UserMessage #3, ModelRequested 1
message replace  → TurnStarted, UserMessage #3, ModelRequested 1
message empty    → ∅ the message is empty
next             → TurnStarted, UserMessage #2, ModelRequested 1
summarise        → TurnStarted to compact, ModelRequested 1 to sum up
model said       → ∅
model call       → ∅
model done       → ∅
model failed     → ∅
model too full   → ∅
model broke      → ∅
retry due        → ∅
tool asked       → ∅
tool done        → ∅
tool cut         → ∅
approve          → ∅ that approval is no longer open
deny             → ∅ that approval is no longer open
abort            → ∅ that approval is no longer open
stop             → ∅ nothing to stop
stop another     → ∅ nothing to stop
edit unknown     → ∅ that message is no longer waiting
delete unknown   → ∅ that message is no longer waiting
lost             → ∅
crash            → InputReturned ×1
`,
	"streaming": `
message          → InputAccepted #2 steer
message steer    → InputAccepted #2 steer
message queue    → InputAccepted #2 queue
message replace  → InputAccepted #2 replace after the stop, StopRequested replaced
message empty    → ∅ the message is empty
next             → ∅
summarise        → ∅ a turn is running
model said       → AssistantMessage
model call       → ToolCall
model done       → AssistantMessage cut, ModelEnded, TurnEnded completed
model failed     → ModelEnded with an error, StopRequested failed, TurnEnded failed
model too full   → ModelEnded with an error, Notice, ModelRequested 2 to sum up
model broke      → ModelEnded with an error, ModelRetry
retry due        → ∅
tool asked       → ∅
tool done        → ∅
tool cut         → ∅
approve          → ∅ that approval is no longer open
deny             → ∅ that approval is no longer open
abort            → ∅ that approval is no longer open
stop             → StopRequested interrupted
stop another     → ∅ nothing to stop
edit unknown     → ∅ that message is no longer waiting
delete unknown   → ∅ that message is no longer waiting
lost             → StopRequested crashed, ModelEnded, TurnEnded crashed
crash            → StopRequested crashed, ModelEnded, TurnEnded crashed
`,
	"tool running": `
message          → InputAccepted #2 steer
message steer    → InputAccepted #2 steer
message queue    → InputAccepted #2 queue
message replace  → InputAccepted #2 replace after the stop, StopRequested replaced
message empty    → ∅ the message is empty
next             → ∅
summarise        → ∅ a turn is running
model said       → ∅
model call       → ∅
model done       → ∅
model failed     → ∅
model too full   → ∅
model broke      → ∅
retry due        → ∅
tool asked       → ApprovalRequested
tool done        → ToolOutput, ModelRequested 2
tool cut         → ToolOutput aborted, ModelRequested 2
approve          → ∅ that approval is no longer open
deny             → ∅ that approval is no longer open
abort            → ∅ that approval is no longer open
stop             → StopRequested interrupted
stop another     → ∅ nothing to stop
edit unknown     → ∅ that message is no longer waiting
delete unknown   → ∅ that message is no longer waiting
lost             → StopRequested crashed, ToolOutput aborted, TurnEnded crashed
crash            → StopRequested crashed, ToolOutput aborted, TurnEnded crashed
`,
	"approval open": `
message          → InputAccepted #2 steer
message steer    → InputAccepted #2 steer
message queue    → InputAccepted #2 queue
message replace  → InputAccepted #2 replace after the stop, StopRequested replaced, ApprovalResolved cancelled, ToolOutput aborted, TurnEnded replaced
message empty    → ∅ the message is empty
next             → ∅
summarise        → ∅ a turn is running
model said       → ∅
model call       → ∅
model done       → ∅
model failed     → ∅
model too full   → ∅
model broke      → ∅
retry due        → ∅
tool asked       → ∅
tool done        → ∅
tool cut         → ∅
approve          → ApprovalResolved approved, CallStarted approved
deny             → ApprovalResolved denied, ToolOutput, ModelRequested 2
abort            → ApprovalResolved abort, StopRequested interrupted, ToolOutput aborted, TurnEnded interrupted
stop             → StopRequested interrupted, ApprovalResolved cancelled, ToolOutput aborted, TurnEnded interrupted
stop another     → ∅ nothing to stop
edit unknown     → ∅ that message is no longer waiting
delete unknown   → ∅ that message is no longer waiting
lost             → ∅
crash            → ∅
`,
	"back-off": `
message          → InputAccepted #2 steer
message steer    → InputAccepted #2 steer
message queue    → InputAccepted #2 queue
message replace  → InputAccepted #2 replace after the stop, StopRequested replaced, TurnEnded replaced
message empty    → ∅ the message is empty
next             → ∅
summarise        → ∅ a turn is running
model said       → ∅
model call       → ∅
model done       → ∅
model failed     → ∅
model too full   → ∅
model broke      → ∅
retry due        → ModelRequested 2
tool asked       → ∅
tool done        → ∅
tool cut         → ∅
approve          → ∅ that approval is no longer open
deny             → ∅ that approval is no longer open
abort            → ∅ that approval is no longer open
stop             → StopRequested interrupted, TurnEnded interrupted
stop another     → ∅ nothing to stop
edit unknown     → ∅ that message is no longer waiting
delete unknown   → ∅ that message is no longer waiting
lost             → StopRequested crashed, TurnEnded crashed
crash            → StopRequested crashed, TurnEnded crashed
`,
	"stopping model": `
message          → InputAccepted #2 queue after the stop
message steer    → InputAccepted #2 steer after the stop
message queue    → InputAccepted #2 queue after the stop
message replace  → InputAccepted #2 queue after the stop
message empty    → ∅ the message is empty
next             → ∅
summarise        → ∅ a turn is running
model said       → ∅
model call       → ∅
model done       → AssistantMessage cut, ModelEnded, TurnEnded interrupted
model failed     → ModelEnded, TurnEnded interrupted
model too full   → ModelEnded, TurnEnded interrupted
model broke      → ModelEnded, TurnEnded interrupted
retry due        → ∅
tool asked       → ∅
tool done        → ∅
tool cut         → ∅
approve          → ∅ that approval is no longer open
deny             → ∅ that approval is no longer open
abort            → ∅ that approval is no longer open
stop             → ∅ already stopping
stop another     → ∅ nothing to stop
edit unknown     → ∅ that message is no longer waiting
delete unknown   → ∅ that message is no longer waiting
lost             → ModelEnded, TurnEnded interrupted
crash            → ModelEnded, TurnEnded interrupted
`,
	"stopping tool": `
message          → InputAccepted #2 queue after the stop
message steer    → InputAccepted #2 steer after the stop
message queue    → InputAccepted #2 queue after the stop
message replace  → InputAccepted #2 queue after the stop
message empty    → ∅ the message is empty
next             → ∅
summarise        → ∅ a turn is running
model said       → ∅
model call       → ∅
model done       → ∅
model failed     → ∅
model too full   → ∅
model broke      → ∅
retry due        → ∅
tool asked       → ToolOutput aborted, TurnEnded interrupted
tool done        → ToolOutput, TurnEnded interrupted
tool cut         → ToolOutput aborted, TurnEnded interrupted
approve          → ∅ that approval is no longer open
deny             → ∅ that approval is no longer open
abort            → ∅ that approval is no longer open
stop             → ∅ already stopping
stop another     → ∅ nothing to stop
edit unknown     → ∅ that message is no longer waiting
delete unknown   → ∅ that message is no longer waiting
lost             → ToolOutput aborted, TurnEnded interrupted
crash            → ToolOutput aborted, TurnEnded interrupted
`,
	"compacting": `
message          → InputAccepted #1 queue
message steer    → InputAccepted #1 queue
message queue    → InputAccepted #1 queue
message replace  → InputAccepted #1 replace after the stop, StopRequested replaced
message empty    → ∅ the message is empty
next             → ∅
summarise        → ∅ a turn is running
model said       → ∅
model call       → ∅
model done       → ModelEnded, Compacted, TurnEnded completed
model failed     → ModelEnded with an error, StopRequested failed, TurnEnded failed
model too full   → ModelEnded with an error, StopRequested failed, TurnEnded failed
model broke      → ModelEnded with an error, ModelRetry
retry due        → ∅
tool asked       → ∅
tool done        → ∅
tool cut         → ∅
approve          → ∅ that approval is no longer open
deny             → ∅ that approval is no longer open
abort            → ∅ that approval is no longer open
stop             → StopRequested interrupted
stop another     → ∅ nothing to stop
edit unknown     → ∅ that message is no longer waiting
delete unknown   → ∅ that message is no longer waiting
lost             → StopRequested crashed, ModelEnded, TurnEnded crashed
crash            → StopRequested crashed, ModelEnded, TurnEnded crashed
`,
	"summing up": `
message          → InputAccepted #2 steer
message steer    → InputAccepted #2 steer
message queue    → InputAccepted #2 queue
message replace  → InputAccepted #2 replace after the stop, StopRequested replaced
message empty    → ∅ the message is empty
next             → ∅
summarise        → ∅ a turn is running
model said       → ∅
model call       → ∅
model done       → ModelEnded, Compacted, ModelRequested 2
model failed     → ModelEnded with an error, StopRequested failed, TurnEnded failed
model too full   → ModelEnded with an error, StopRequested failed, TurnEnded failed
model broke      → ModelEnded with an error, ModelRetry
retry due        → ∅
tool asked       → ∅
tool done        → ∅
tool cut         → ∅
approve          → ∅ that approval is no longer open
deny             → ∅ that approval is no longer open
abort            → ∅ that approval is no longer open
stop             → StopRequested interrupted
stop another     → ∅ nothing to stop
edit unknown     → ∅ that message is no longer waiting
delete unknown   → ∅ that message is no longer waiting
lost             → StopRequested crashed, ModelEnded, TurnEnded crashed
crash            → StopRequested crashed, ModelEnded, TurnEnded crashed
`,
}

func TestTable(t *testing.T) {
	for name, state := range theStates {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, col := range theInputs {
				events, err := state.decide(env(), col.in)
				fmt.Fprintf(&got, "%-16s → %s\n", col.name, answer(events, err))
			}
			want := strings.TrimPrefix(theTable[name], "\n")
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got.String(), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if len(theTable) != len(theStates) {
		t.Errorf("%d rows are expected, %d are known", len(theTable), len(theStates))
	}
}

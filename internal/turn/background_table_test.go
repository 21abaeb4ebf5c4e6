package turn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

// kept says that a call became background command n.
func kept(n int, call p.CallID) *p.BackgroundStarted {
	return &p.BackgroundStarted{ID: p.BackgroundID(n), Call: call, Command: []string{"serve"}, Cwd: "/w"}
}

// userRuns is a turn that runs a command of the user's own.
func userRuns() []p.Body {
	return []p.Body{
		&p.TurnStarted{Shell: true},
		&p.UserMessage{Item: id(1, 0, 0), Input: 1, Content: p.Text("!ls")},
		&p.ToolCall{Call: id(1, 0, 1), WireID: "user", Kind: p.CallFunction, Name: UserShell, Arguments: `{"command":"ls"}`},
		&p.CallStarted{Call: id(1, 0, 1), Grant: p.Approved},
	}
}

// besides is what can happen to background commands, and what depends on them.
// In its states command 1 is of another turn, command 2 of the turn that runs.
var besides = []struct {
	name string
	in   Input
}{
	{"shell", Shell{Command: "ls"}},
	{"shell empty", Shell{}},
	{"keep", Keep{*kept(0, id(1, 1, 0))}},
	{"keep the user's", Keep{*kept(0, id(1, 0, 1))}},
	{"keep unknown", Keep{*kept(0, id(1, 1, 7))}},
	{"other done", BackgroundDone{ID: 1}},
	{"own done", BackgroundDone{ID: 2}},
	{"own stopped", BackgroundDone{ID: 2, Stopped: true}},
	{"unknown done", BackgroundDone{ID: 7}},
	{"model done", ModelDone{Response: 1}},
	{"model failed", ModelDone{Response: 1, Error: &p.Error{Kind: p.ErrorAuth, Message: "no key"}}},
	{"tool done", ToolDone{Output: p.ToolOutput{Call: id(1, 1, 0), Output: "x"}}},
	{"user's done", ToolDone{Output: p.ToolOutput{Call: id(1, 0, 1), Output: "x"}}},
	{"replace", User{Content: p.Text("m"), WhenBusy: p.Replace}},
	{"abort", Approval{Call: id(1, 1, 0), Decision: p.Abort}},
	{"stop", Stop{}},
	{"hand back", ReturnAll{}},
	{"lost", Lost{}},
	{"lost all", Lost{All: true}},
	{"crash", Lost{Crash: true}},
}

// besideTable is what follows from them in each state.
var besideTable = map[string]string{
	"idle": `
shell            → TurnStarted for a command, UserMessage #1, ToolCall, CallStarted approved
shell empty      → ∅ the message is empty
keep             → ∅ no such background command is running
keep the user's  → ∅ no such background command is running
keep unknown     → ∅ no such background command is running
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed
own stopped      → BackgroundEnded 2 interrupted
unknown done     → ∅
model done       → ∅
model failed     → ∅
tool done        → ∅
user's done      → ∅
replace          → TurnStarted, UserMessage #1, ModelRequested 1
abort            → ∅ that approval is no longer open
stop             → ∅ nothing to stop
hand back        → ∅
lost             → ∅
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed
`,
	"message waiting": `
shell            → TurnStarted for a command, UserMessage #3, ToolCall, CallStarted approved
shell empty      → ∅ the message is empty
keep             → ∅ no such background command is running
keep the user's  → ∅ no such background command is running
keep unknown     → ∅ no such background command is running
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed
own stopped      → BackgroundEnded 2 interrupted
unknown done     → ∅
model done       → ∅
model failed     → ∅
tool done        → ∅
user's done      → ∅
replace          → TurnStarted, UserMessage #3, ModelRequested 1
abort            → ∅ that approval is no longer open
stop             → ∅ nothing to stop
hand back        → InputReturned ×1
lost             → ∅
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed, InputReturned ×1
`,
	"streaming": `
shell            → ∅ a turn is running
shell empty      → ∅ a turn is running
keep             → ∅ no such background command is running
keep the user's  → ∅ no such background command is running
keep unknown     → ∅ no such background command is running
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed
own stopped      → BackgroundEnded 2 interrupted
unknown done     → ∅
model done       → ModelEnded, TurnEnded completed
model failed     → ModelEnded with an error, StopRequested failed, TurnEnded failed
tool done        → ∅
user's done      → ∅
replace          → InputAccepted #2 replace after the stop, StopRequested replaced
abort            → ∅ that approval is no longer open
stop             → StopRequested interrupted
hand back        → ∅
lost             → BackgroundEnded 2 interrupted, StopRequested crashed, ModelEnded, TurnEnded crashed
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted, StopRequested crashed, ModelEnded, TurnEnded crashed
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed, StopRequested crashed, ModelEnded, TurnEnded crashed
`,
	"tool running": `
shell            → ∅ a turn is running
shell empty      → ∅ a turn is running
keep             → BackgroundStarted 3
keep the user's  → ∅ no such background command is running
keep unknown     → ∅ no such background command is running
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed
own stopped      → BackgroundEnded 2 interrupted
unknown done     → ∅
model done       → ∅
model failed     → ∅
tool done        → ToolOutput, ModelRequested 2
user's done      → ∅
replace          → InputAccepted #2 replace after the stop, StopRequested replaced
abort            → ∅ that approval is no longer open
stop             → StopRequested interrupted
hand back        → ∅
lost             → BackgroundEnded 2 interrupted, StopRequested crashed, ToolOutput aborted, TurnEnded crashed
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted, StopRequested crashed, ToolOutput aborted, TurnEnded crashed
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed, StopRequested crashed, ToolOutput aborted, TurnEnded crashed
`,
	"approval open": `
shell            → ∅ a turn is running
shell empty      → ∅ a turn is running
keep             → ∅ no such background command is running
keep the user's  → ∅ no such background command is running
keep unknown     → ∅ no such background command is running
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed
own stopped      → BackgroundEnded 2 interrupted
unknown done     → ∅
model done       → ∅
model failed     → ∅
tool done        → ∅
user's done      → ∅
replace          → InputAccepted #2 replace after the stop, StopRequested replaced
abort            → ApprovalResolved abort, StopRequested interrupted
stop             → StopRequested interrupted
hand back        → ∅
lost             → BackgroundEnded 2 interrupted
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed
`,
	"back-off": `
shell            → ∅ a turn is running
shell empty      → ∅ a turn is running
keep             → ∅ no such background command is running
keep the user's  → ∅ no such background command is running
keep unknown     → ∅ no such background command is running
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed
own stopped      → BackgroundEnded 2 interrupted
unknown done     → ∅
model done       → ∅
model failed     → ∅
tool done        → ∅
user's done      → ∅
replace          → InputAccepted #2 replace after the stop, StopRequested replaced
abort            → ∅ that approval is no longer open
stop             → StopRequested interrupted
hand back        → ∅
lost             → BackgroundEnded 2 interrupted, StopRequested crashed, TurnEnded crashed
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted, StopRequested crashed, TurnEnded crashed
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed, StopRequested crashed, TurnEnded crashed
`,
	"stopping model": `
shell            → ∅ a turn is running
shell empty      → ∅ a turn is running
keep             → ∅ already stopping
keep the user's  → ∅ already stopping
keep unknown     → ∅ already stopping
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed
own stopped      → BackgroundEnded 2 interrupted
unknown done     → ∅
model done       → ModelEnded
model failed     → ModelEnded
tool done        → ∅
user's done      → ∅
replace          → InputAccepted #2 queue after the stop
abort            → ∅ that approval is no longer open
stop             → ∅ already stopping
hand back        → ∅
lost             → BackgroundEnded 2 interrupted, ModelEnded, TurnEnded interrupted
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted, ModelEnded, TurnEnded interrupted
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed, ModelEnded, TurnEnded interrupted
`,
	"stopping tool": `
shell            → ∅ a turn is running
shell empty      → ∅ a turn is running
keep             → ∅ already stopping
keep the user's  → ∅ already stopping
keep unknown     → ∅ already stopping
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed
own stopped      → BackgroundEnded 2 interrupted
unknown done     → ∅
model done       → ∅
model failed     → ∅
tool done        → ToolOutput
user's done      → ∅
replace          → InputAccepted #2 queue after the stop
abort            → ∅ that approval is no longer open
stop             → ∅ already stopping
hand back        → ∅
lost             → BackgroundEnded 2 interrupted, ToolOutput aborted, TurnEnded interrupted
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted, ToolOutput aborted, TurnEnded interrupted
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed, ToolOutput aborted, TurnEnded interrupted
`,
	"compacting": `
shell            → ∅ a turn is running
shell empty      → ∅ a turn is running
keep             → ∅ no such background command is running
keep the user's  → ∅ no such background command is running
keep unknown     → ∅ no such background command is running
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed
own stopped      → BackgroundEnded 2 interrupted
unknown done     → ∅
model done       → ModelEnded, StopRequested failed, TurnEnded failed
model failed     → ModelEnded with an error, StopRequested failed, TurnEnded failed
tool done        → ∅
user's done      → ∅
replace          → InputAccepted #1 replace after the stop, StopRequested replaced
abort            → ∅ that approval is no longer open
stop             → StopRequested interrupted
hand back        → ∅
lost             → BackgroundEnded 2 interrupted, StopRequested crashed, ModelEnded, TurnEnded crashed
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted, StopRequested crashed, ModelEnded, TurnEnded crashed
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed, StopRequested crashed, ModelEnded, TurnEnded crashed
`,
	"summing up": `
shell            → ∅ a turn is running
shell empty      → ∅ a turn is running
keep             → ∅ no such background command is running
keep the user's  → ∅ no such background command is running
keep unknown     → ∅ no such background command is running
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed
own stopped      → BackgroundEnded 2 interrupted
unknown done     → ∅
model done       → ModelEnded, StopRequested failed, TurnEnded failed
model failed     → ModelEnded with an error, StopRequested failed, TurnEnded failed
tool done        → ∅
user's done      → ∅
replace          → InputAccepted #2 replace after the stop, StopRequested replaced
abort            → ∅ that approval is no longer open
stop             → StopRequested interrupted
hand back        → ∅
lost             → BackgroundEnded 2 interrupted, StopRequested crashed, ModelEnded, TurnEnded crashed
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted, StopRequested crashed, ModelEnded, TurnEnded crashed
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed, StopRequested crashed, ModelEnded, TurnEnded crashed
`,
	"user's command": `
shell            → ∅ a turn is running
shell empty      → ∅ a turn is running
keep             → ∅ no such background command is running
keep the user's  → BackgroundStarted 3
keep unknown     → ∅ no such background command is running
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed
own stopped      → BackgroundEnded 2 interrupted
unknown done     → ∅
model done       → ∅
model failed     → ∅
tool done        → ∅
user's done      → ToolOutput, TurnEnded completed
replace          → InputAccepted #2 replace after the stop, StopRequested replaced
abort            → ∅ that approval is no longer open
stop             → StopRequested interrupted
hand back        → ∅
lost             → BackgroundEnded 2 interrupted, StopRequested crashed, ToolOutput aborted, TurnEnded crashed
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted, StopRequested crashed, ToolOutput aborted, TurnEnded crashed
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed, StopRequested crashed, ToolOutput aborted, TurnEnded crashed
`,
	"only own is left": `
shell            → ∅ a turn is running
shell empty      → ∅ a turn is running
keep             → ∅ already stopping
keep the user's  → ∅ already stopping
keep unknown     → ∅ already stopping
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed, ApprovalResolved cancelled, ToolOutput aborted, TurnEnded interrupted
own stopped      → BackgroundEnded 2 interrupted, ApprovalResolved cancelled, ToolOutput aborted, TurnEnded interrupted
unknown done     → ∅
model done       → ∅
model failed     → ∅
tool done        → ∅
user's done      → ∅
replace          → InputAccepted #2 queue after the stop
abort            → ∅ that approval is no longer open
stop             → ∅ already stopping
hand back        → ∅
lost             → BackgroundEnded 2 interrupted, ApprovalResolved cancelled, ToolOutput aborted, TurnEnded interrupted
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted, ApprovalResolved cancelled, ToolOutput aborted, TurnEnded interrupted
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed, ApprovalResolved cancelled, ToolOutput aborted, TurnEnded interrupted
`,
	"stopping user's": `
shell            → ∅ a turn is running
shell empty      → ∅ a turn is running
keep             → ∅ already stopping
keep the user's  → ∅ already stopping
keep unknown     → ∅ already stopping
other done       → BackgroundEnded 1 completed
own done         → BackgroundEnded 2 completed
own stopped      → BackgroundEnded 2 interrupted
unknown done     → ∅
model done       → ∅
model failed     → ∅
tool done        → ∅
user's done      → ToolOutput
replace          → InputAccepted #2 queue after the stop
abort            → ∅ that approval is no longer open
stop             → ∅ already stopping
hand back        → ∅
lost             → BackgroundEnded 2 interrupted, ToolOutput aborted, TurnEnded interrupted
lost all         → BackgroundEnded 1 interrupted, BackgroundEnded 2 interrupted, ToolOutput aborted, TurnEnded interrupted
crash            → BackgroundEnded 1 crashed, BackgroundEnded 2 crashed, ToolOutput aborted, TurnEnded interrupted
`,
}

// beside adds the two background commands to a state.
func beside(s State) State {
	other, own := kept(1, id(7, 1, 0)), kept(2, id(1, 1, 9))
	s = s.Evolve(p.Event{Time: t0, Body: other})
	return s.Evolve(p.Event{Time: t0, Body: own})
}

func TestTableBeside(t *testing.T) {
	states := map[string]State{
		"user's command": fold(userRuns()...), "stopping user's": fold(stopped(userRuns())...),
		"only own is left": fold(stopped(asked())...),
	}
	for name, s := range theStates {
		states[name] = s
	}
	for name, s := range states {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, col := range besides {
				events, err := beside(s).decide(env(), col.in)
				fmt.Fprintf(&got, "%-16s → %s\n", col.name, answer(events, err))
			}
			want := strings.TrimPrefix(besideTable[name], "\n")
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got.String(), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if len(besideTable) != len(states) {
		t.Errorf("%d rows are expected, %d are known", len(besideTable), len(states))
	}
}

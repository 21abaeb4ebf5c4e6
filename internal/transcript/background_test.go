package transcript

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

// A command that goes to the background is an item of its own: it grows by its
// own deltas and ends when it ends, whatever its turn does.
func TestBackground(t *testing.T) {
	var tr Transcript
	call := p.CallID{Turn: 1, Response: 1}
	apply := func(turn p.TurnID, b p.Body) []*Item { return tr.Apply(p.Event{Turn: turn, Body: b}) }
	apply(1, &p.TurnStarted{})
	apply(1, &p.ToolCall{Call: call, Name: "exec_command"})
	apply(1, &p.CommandStarted{Call: call, Command: []string{"serve"}})
	apply(0, &p.BackgroundStarted{ID: 1, Call: call, Command: []string{"serve"}, Cwd: "/w"})
	apply(1, &p.ToolOutput{Call: call, Command: &p.CommandResult{Output: "up\n", Background: 1}})
	apply(1, &p.TurnEnded{Reason: p.Completed})
	if len(tr.Running) != 1 || tr.Running[0].ID != 1 {
		t.Fatalf("running: %+v", tr.Running)
	}
	started, behind := tr.Items[0], tr.Items[1]
	if started.Kind != Call || started.Status != Done || started.Background != 1 || started.Output != "up\n" {
		t.Errorf("the call: %+v", started)
	}
	apply(0, &p.Delta{Item: p.BackgroundID(1).Item(), Kind: p.DeltaStdout, Text: "GET /\n"})
	if got := apply(0, &p.Delta{Item: p.BackgroundID(1).Item(), Kind: p.DeltaStdout, Offset: 6, Text: "GET /a\n"}); len(got) != 1 || got[0] != behind {
		t.Fatalf("its output changes %v", got)
	}
	if behind.Kind != Background || behind.Status != Open || behind.Output != "GET /\nGET /a\n" || behind.Cwd != "/w" {
		t.Errorf("while it runs: %+v", behind)
	}

	tests := []struct {
		name string
		end  p.BackgroundEnded
		want Status
	}{
		{"by itself", p.BackgroundEnded{ID: 1, Reason: p.Completed}, Done},
		{"by itself, badly", p.BackgroundEnded{ID: 1, Reason: p.Completed, Result: p.CommandResult{ExitCode: 3}}, Failed},
		{"stopped", p.BackgroundEnded{ID: 1, Reason: p.Interrupted, Result: p.CommandResult{ExitCode: -1, Killed: 2}}, Interrupted},
		{"crashed", p.BackgroundEnded{ID: 1, Reason: p.Crashed, Result: p.CommandResult{ExitCode: -1}}, Interrupted},
	}
	for _, tt := range tests {
		tt.end.Result.Output = "all"
		apply(0, &tt.end)
		got := []any{behind.Status, behind.Output, behind.ExitCode, behind.Killed, len(tr.Running), len(tr.Items)}
		if d := cmp.Diff([]any{tt.want, "all", tt.end.Result.ExitCode, tt.end.Result.Killed, 0, 2}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// Those that a stop ends are in the line that says what it did; those of other
// turns are not.
func TestBackgroundInTheEndLine(t *testing.T) {
	end := func(stop bool) string {
		var tr Transcript
		call := p.CallID{Turn: 1, Response: 1}
		for _, e := range []p.Event{
			{Turn: 1, Body: &p.TurnStarted{}},
			{Body: &p.BackgroundStarted{ID: 1, Call: call, Command: []string{"serve"}}},
		} {
			tr.Apply(e)
		}
		killed := p.BackgroundEnded{ID: 1, Reason: p.Interrupted, Result: p.CommandResult{Killed: 3}}
		if !stop {
			killed = p.BackgroundEnded{ID: 1, Reason: p.Completed}
		}
		tr.Apply(p.Event{Turn: 1, Body: &p.StopRequested{Reason: p.Interrupted}})
		tr.Apply(p.Event{Body: &killed})
		items := tr.Apply(p.Event{Turn: 1, Body: &p.TurnEnded{Reason: p.Interrupted}})
		return items[0].Text
	}
	if got, want := end(true), "interrupted after 0 ms · 1 command, 3 processes killed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := end(false), "interrupted after 0 ms"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What was taken back is no longer what the turn has changed.
func TestUndoneTurnHasNoDiff(t *testing.T) {
	var tr Transcript
	for _, e := range []p.Event{
		{Turn: 1, Body: &p.TurnStarted{}},
		{Turn: 1, Body: &p.TurnDiff{Diff: "diff"}},
		{Turn: 1, Body: &p.TurnEnded{Reason: p.Completed}},
		{Body: &p.Undone{Of: 3}},
	} {
		tr.Apply(e)
	}
	if tr.Diff != "diff" {
		t.Errorf("after the undo of another turn: %q", tr.Diff)
	}
	if tr.Apply(p.Event{Body: &p.Undone{Of: 1}}); tr.Diff != "" {
		t.Errorf("after its undo: %q", tr.Diff)
	}
}

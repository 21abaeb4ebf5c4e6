package turn

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

func TestUsersOwnCommand(t *testing.T) {
	s, events := steps(t, State{}, Shell{Command: `echo "hi" <&2`})
	call := id(1, 0, 1)
	same(t, "start", []p.Body{
		&p.TurnStarted{Shell: true},
		&p.UserMessage{Item: id(1, 0, 0), Input: 1, Content: p.Text(`!echo "hi" <&2`)},
		&p.ToolCall{
			Call: call, WireID: "user", Kind: p.CallFunction, Name: "user_shell",
			Arguments: `{"command":"echo \"hi\" \u003c\u00262"}`,
		},
		&p.CallStarted{Call: call, Grant: p.Approved},
	}, events)
	if s.Waiting() || !s.Active || s.Turn != 1 || s.LastInput != 1 {
		t.Errorf("state %+v", s)
	}
	_, events = steps(t, s, ToolDone{Output: p.ToolOutput{Call: call, Output: "hi", Elapsed: time.Second}})
	same(t, "its end asks no model", []p.Body{
		&p.ToolOutput{Call: call, Output: "hi", Elapsed: time.Second}, ended(p.Completed),
	}, events)
}

func TestUsersOwnCommandIsStopped(t *testing.T) {
	s := fold(userRuns()...)
	s, events := steps(t, s, Stop{})
	same(t, "stop", []p.Body{&p.StopRequested{Reason: p.Interrupted}}, events)
	_, events = steps(t, s, ToolDone{Output: p.ToolOutput{Call: id(1, 0, 1), Aborted: true, Elapsed: 2 * time.Second}})
	same(t, "end", []p.Body{cut(id(1, 0, 1), "the user stopped the turn"), ended(p.Interrupted)}, events)
}

// What was typed while the command ran is said to the model, after it, with a
// number of its own.
func TestMessageSteeredIntoAUsersOwnCommand(t *testing.T) {
	s, _ := steps(t, fold(userRuns()...), User{Content: p.Text("why?"), WhenBusy: p.Steer})
	_, events := steps(t, s, ToolDone{Output: p.ToolOutput{Call: id(1, 0, 1), Output: "x", Elapsed: time.Second}})
	same(t, "end", []p.Body{
		&p.ToolOutput{Call: id(1, 0, 1), Output: "x", Elapsed: time.Second},
		&p.UserMessage{Item: id(1, 0, 2), Input: 2, Content: p.Text("why?")},
		&p.ModelRequested{Response: 1},
	}, events)
}

// A message that waits is not said to the model by the command, unless it joins.
func TestMessageQueuedBehindAUsersOwnCommand(t *testing.T) {
	s, _ := steps(t, fold(userRuns()...), User{Content: p.Text("then this"), WhenBusy: p.Queue})
	s, events := steps(t, s, ToolDone{Output: p.ToolOutput{Call: id(1, 0, 1), Output: "x", Elapsed: time.Second}})
	same(t, "end", []p.Body{&p.ToolOutput{Call: id(1, 0, 1), Output: "x", Elapsed: time.Second}, ended(p.Completed)}, events)
	if len(s.Pending) != 1 {
		t.Errorf("waiting: %+v", s.Pending)
	}
}

func TestBackgroundNumbers(t *testing.T) {
	s := fold(with(answered("look", "look"), &p.CallStarted{Call: id(1, 1, 0)}, &p.CallStarted{Call: id(1, 1, 1)})...)
	started := *kept(41, id(1, 1, 0)) // whatever number it says
	s, events := steps(t, s, Keep{started})
	same(t, "first", []p.Body{kept(1, id(1, 1, 0))}, events)
	s, events = steps(t, s, Keep{*kept(0, id(1, 1, 1))})
	same(t, "second", []p.Body{kept(2, id(1, 1, 1))}, events)
	s, events = steps(t, s, BackgroundDone{ID: 2, Result: p.CommandResult{Output: "out", ExitCode: 3}}, BackgroundDone{ID: 2})
	same(t, "ends once", nil, events)
	_, events = steps(t, s, Keep{*kept(0, id(1, 1, 1))})
	same(t, "numbers are not used again", []p.Body{kept(3, id(1, 1, 1))}, events)
}

func TestOwnBackground(t *testing.T) {
	s := beside(fold(toolRuns()...))
	if d := cmp.Diff([]p.BackgroundStarted{*kept(2, id(1, 1, 9))}, s.OwnBackground()); d != "" {
		t.Errorf("own (-want +got):\n%s", d)
	}
	if len(s.Background) != 2 {
		t.Errorf("asking changed what runs: %+v", s.Background)
	}
	if own := beside(State{Turn: 1}).OwnBackground(); len(own) > 0 {
		t.Errorf("without a turn: %+v", own)
	}
}

// What a stop killed is counted with the turn, if it was the turn's own.
func TestKilledBackgroundIsCounted(t *testing.T) {
	s := beside(fold(with(answered("work"), &p.CallStarted{Call: id(1, 1, 0)}, &p.ToolOutput{Call: id(1, 1, 0)}, &p.ModelRequested{Response: 2})...))
	gone := func(id int, killed int) Input {
		return BackgroundDone{ID: p.BackgroundID(id), Stopped: true, Result: p.CommandResult{Killed: killed}}
	}
	s = s.Evolve(p.Event{Time: t0, Body: kept(3, id(1, 1, 8))})
	_, events := steps(t, s, gone(3, 16), Stop{}, gone(1, 4), ModelDone{Response: 2}, gone(2, 3))
	want := ended(p.Interrupted)
	want.Killed = 3
	same(t, "end", []p.Body{&p.BackgroundEnded{ID: 2, Reason: p.Interrupted, Result: p.CommandResult{Killed: 3}}, want}, events)
}

// A command that is given up, or was cut by a crash, keeps what was seen of it.
func TestLostBackgroundKeepsItsOutput(t *testing.T) {
	s := beside(State{Turn: 1})
	open := []Partial{
		{Item: p.BackgroundID(1).Item(), Kind: p.DeltaStdout, Text: "one", Stderr: [][2]int{{0, 1}}},
		{Item: id(1, 1, 2), Kind: p.DeltaStdout, Text: "not this"},
	}
	for name, tt := range map[string]struct {
		in     Lost
		reason p.EndReason
	}{
		"given up": {Lost{All: true, Open: open}, p.Interrupted},
		"crash":    {Lost{Crash: true, Open: open}, p.Crashed},
	} {
		same(t, name, []p.Body{
			&p.BackgroundEnded{ID: 1, Reason: tt.reason, Result: p.CommandResult{ExitCode: -1, Output: "one", Stderr: [][2]int{{0, 1}}}},
			&p.BackgroundEnded{ID: 2, Reason: tt.reason, Result: p.CommandResult{ExitCode: -1}},
		}, decide(t, s, tt.in))
	}
}

// A turn that fails is not waited for by its background commands, nor they by it:
// they go on.
func TestNoSummaryWhileABackgroundCommandRuns(t *testing.T) {
	s := beside(fold(summing()...))
	s, events := steps(t, s, ModelDone{Response: 1})
	none := &p.Error{Kind: p.ErrorModel, Message: "the model gave no summary"}
	end := ended(p.Failed)
	end.Error = none
	same(t, "no summary", []p.Body{&p.ModelEnded{Response: 1}, &p.StopRequested{Reason: p.Failed, Error: none}, end}, events)
	if _, events = steps(t, s, BackgroundDone{ID: 2}); len(events) != 1 {
		t.Errorf("after its end: %v", events)
	}
}

package turn

import (
	"errors"
	"testing"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

func TestStartOfATurn(t *testing.T) {
	s := fold(with(started(), &p.ModelEnded{Response: 1}, ended(p.Completed))...)
	same(t, "second turn", []p.Body{
		&p.TurnStarted{},
		&p.UserMessage{Item: id(2, 0, 0), Input: 2, Content: p.Text("again")},
		&p.ModelRequested{Response: 1},
	}, decide(t, s, User{Content: p.Text("again")}))
}

// What a refused input is answered with is for callers to branch on.
func TestRefusals(t *testing.T) {
	idle, busy, asking := State{}, fold(started()...), fold(asked()...)
	for _, tt := range []struct {
		name  string
		state State
		in    Input
		want  error
	}{
		{"nothing to stop", idle, Stop{}, ErrNothingToStop},
		{"another turn to stop", busy, Stop{Turn: 2}, ErrNothingToStop},
		{"stopped twice", fold(stopped(started())...), Stop{}, ErrStopping},
		{"stopped twice by name", fold(stopped(started())...), Stop{Turn: 1}, ErrStopping},
		{"approval when idle", idle, Approval{Decision: p.Approved}, ErrNoApproval},
		{"approval of a call that does not ask", fold(toolRuns()...), Approval{Call: id(1, 1, 0), Decision: p.Approved}, ErrNoApproval},
		{"approval of an unknown call", asking, Approval{Call: id(1, 1, 1), Decision: p.Approved}, ErrNoApproval},
		{
			"approval too late", fold(stopped(with(answered("look", "look"),
				&p.CallStarted{Call: id(1, 1, 0)}, &p.CallStarted{Call: id(1, 1, 1)}, &p.ApprovalRequested{Call: id(1, 1, 0)}))...),
			Approval{Call: id(1, 1, 0), Decision: p.Approved},
			ErrNoApproval,
		},
		{"unknown decision", asking, Approval{Call: id(1, 1, 0), Decision: "maybe"}, ErrDecision},
		{"decision that is ours to make", asking, Approval{Call: id(1, 1, 0), Decision: p.Cancelled}, ErrDecision},
		{"no decision", asking, Approval{Call: id(1, 1, 0)}, ErrDecision},
		{"compaction while busy", busy, Compact{}, ErrBusy},
		{"empty message when idle", idle, User{}, ErrEmpty},
		{"empty message when busy", busy, User{}, ErrEmpty},
		{"edit when idle", idle, Edit{Input: 1, Content: p.Text("x")}, ErrNoInput},
		{"edit of a consumed message", busy, Edit{Input: 1, Content: p.Text("x")}, ErrNoInput},
		{"edit to nothing", fold(with(started(), accepted(2, p.Queue))...), Edit{Input: 2}, ErrEmpty},
		{"delete when idle", idle, Delete{Input: 1}, ErrNoInput},
		{"delete of a consumed message", busy, Delete{Input: 1}, ErrNoInput},
	} {
		events, err := tt.state.decide(env(), tt.in)
		if !errors.Is(err, tt.want) || events != nil {
			t.Errorf("%s: got %s, want ∅ %v", tt.name, answer(events, err), tt.want)
		}
	}
}

func TestStopReasons(t *testing.T) {
	cause := &p.Error{Kind: p.ErrorJournal, Message: "disk full"}
	for _, tt := range []struct {
		in   Stop
		want p.StopRequested
	}{
		{Stop{}, p.StopRequested{Reason: p.Interrupted}},
		{Stop{Turn: 1}, p.StopRequested{Reason: p.Interrupted}},
		{Stop{Reason: p.Interrupted}, p.StopRequested{Reason: p.Interrupted}},
		{Stop{Reason: p.Replaced}, p.StopRequested{Reason: p.Replaced}},
		{Stop{Reason: p.Failed, Error: cause}, p.StopRequested{Reason: p.Failed, Error: cause}},
		// A stopped turn did not complete, whatever a client calls it.
		{Stop{Reason: p.Completed}, p.StopRequested{Reason: p.Interrupted}},
		{Stop{Reason: "bored"}, p.StopRequested{Reason: p.Interrupted}},
	} {
		same(t, string(tt.in.Reason), []p.Body{&tt.want}, decide(t, fold(started()...), tt.in))
	}
}

// Everything that is open when a turn is stopped is closed in one batch, in
// this order, and the end comes last.
func TestClosingBatch(t *testing.T) {
	s := fold(with(answered("look", "look", "work"),
		&p.CallStarted{Call: id(1, 1, 0)}, &p.CallStarted{Call: id(1, 1, 1)},
		&p.ApprovalRequested{Call: id(1, 1, 0)}, &p.ApprovalRequested{Call: id(1, 1, 1)},
		accepted(2, p.Steer), accepted(3, p.Queue))...)
	same(t, "stop", []p.Body{
		&p.StopRequested{Reason: p.Interrupted},
		&p.ApprovalResolved{Call: id(1, 1, 0), Decision: p.Cancelled},
		notRun(id(1, 1, 0)),
		&p.ApprovalResolved{Call: id(1, 1, 1), Decision: p.Cancelled},
		notRun(id(1, 1, 1)),
		notRun(id(1, 1, 2)),
		&p.InputReturned{Inputs: []p.ReturnedInput{returned(2, p.Steer), returned(3, p.Queue)}, Left: 2},
		endedReturning(p.Interrupted, 2),
	}, decide(t, s, Stop{}))
}

func TestStopWaitsForEveryWorker(t *testing.T) {
	s := fold(with(answered("look", "look", "work"),
		&p.CallStarted{Call: id(1, 1, 0)}, &p.CallStarted{Call: id(1, 1, 1)})...)
	s, events := steps(t, s, Stop{})
	same(t, "stop", []p.Body{&p.StopRequested{Reason: p.Interrupted}}, events)
	s, events = steps(t, s, ToolDone{Output: p.ToolOutput{Call: id(1, 1, 1), Output: "done", Elapsed: time.Second}})
	same(t, "one is done", []p.Body{&p.ToolOutput{Call: id(1, 1, 1), Output: "done", Elapsed: time.Second}}, events)
	_, events = steps(t, s, ToolDone{Output: p.ToolOutput{Call: id(1, 1, 0), Aborted: true}})
	same(t, "the last is cut", []p.Body{
		cut(id(1, 1, 0), "the user stopped the turn"),
		notRun(id(1, 1, 2)),
		ended(p.Interrupted),
	}, events)
}

func TestEndCarriesCauseAndKilled(t *testing.T) {
	cause := &p.Error{Kind: p.ErrorJournal, Message: "disk full"}
	s := fold(with(answered("work", "work"), &p.CallStarted{Call: id(1, 1, 0)},
		&p.ToolOutput{Call: id(1, 1, 0), Command: &p.CommandResult{Killed: 2}}, &p.CallStarted{Call: id(1, 1, 1)},
		&p.StopRequested{Reason: p.Failed, Error: cause})...)
	out := p.ToolOutput{Call: id(1, 1, 1), Output: "x", Elapsed: 1, Command: &p.CommandResult{Killed: 3}}
	same(t, "end", []p.Body{
		&out,
		&p.TurnEnded{Reason: p.Failed, Error: cause, Killed: 5, Elapsed: 2 * time.Second},
	}, decide(t, s, ToolDone{Output: out}))
}

func TestPartialTextIsKept(t *testing.T) {
	open := []Partial{
		{Item: id(1, 1, 0), Kind: p.DeltaReasoning, Text: "hm"},
		{Item: id(1, 1, 1), Kind: p.DeltaMessage, Text: "hel"},
		{Item: id(1, 1, 2), Kind: p.DeltaMessage}, // nothing was seen of it
		{Item: id(1, 1, 3), Kind: p.DeltaStdout, Text: "not said"},
	}
	kept := []p.Body{
		&p.Reasoning{Item: id(1, 1, 0), Text: "hm", Partial: true},
		&p.AssistantMessage{Item: id(1, 1, 1), Text: "hel", Partial: true},
		&p.ModelEnded{Response: 1},
	}
	same(t, "stopped", with(kept, ended(p.Interrupted)),
		decide(t, fold(stopped(started())...), ModelDone{Response: 1, Open: open, Error: broken()}))
	same(t, "crashed", append([]p.Body{&p.StopRequested{Reason: p.Crashed}}, with(kept, ended(p.Crashed))...),
		decide(t, fold(started()...), Lost{Crash: true, Open: open}))
}

// Partials of another turn or response, of one that is over, and of an item
// that was finished after all, are not what was cut.
func TestPartialsThatDoNotBelong(t *testing.T) {
	second := with(answered("work"), &p.CallStarted{Call: id(1, 1, 0)}, &p.ToolOutput{Call: id(1, 1, 0)},
		&p.ModelRequested{Response: 2}, &p.AssistantMessage{Item: id(1, 2, 0), Text: "whole"})
	strange := []Partial{
		{Item: id(2, 2, 0), Kind: p.DeltaMessage, Text: "x"},
		{Item: id(1, 1, 5), Kind: p.DeltaMessage, Text: "x"},
		{Item: id(1, 3, 0), Kind: p.DeltaReasoning, Text: "x"},
		{Item: id(1, 2, 0), Kind: p.DeltaMessage, Text: "who"},
		{Item: id(1, 2, 1), Kind: p.DeltaMessage, Text: "ours"},
		{Item: id(1, 2, 1), Kind: p.DeltaMessage, Text: "ours again"},
	}
	ours := &p.AssistantMessage{Item: id(1, 2, 1), Text: "ours", Partial: true}
	same(t, "model done", []p.Body{ours, &p.ModelEnded{Response: 2}, ended(p.Completed)},
		decide(t, fold(second...), ModelDone{Response: 2, Open: strange}))
	same(t, "lost", []p.Body{&p.StopRequested{Reason: p.Crashed}, ours, &p.ModelEnded{Response: 2}, ended(p.Crashed)},
		decide(t, fold(second...), Lost{Open: strange}))
	same(t, "lost while a tool runs",
		[]p.Body{&p.StopRequested{Reason: p.Crashed}, cut(id(1, 1, 0), "the program was killed"), ended(p.Crashed)},
		decide(t, fold(toolRuns()...), Lost{Open: []Partial{{Item: id(1, 1, 7), Kind: p.DeltaMessage, Text: "x"}}}))
}

func TestModelItemsGetTheirNames(t *testing.T) {
	s := fold(started()...)
	for _, tt := range []struct {
		body, want p.Body
	}{
		{&p.AssistantMessage{Text: "x"}, &p.AssistantMessage{Item: id(1, 1, 4), Text: "x"}},
		{&p.Reasoning{Text: "x", Raw: p.Raw{Wire: "w"}}, &p.Reasoning{Item: id(1, 1, 4), Text: "x", Raw: p.Raw{Wire: "w"}}},
		{&p.ToolCall{WireID: "a", Name: "n", Arguments: "{}"}, &p.ToolCall{Call: id(1, 1, 4), WireID: "a", Name: "n", Arguments: "{}"}},
		{&p.ToolCall{Name: "n"}, &p.ToolCall{Call: id(1, 1, 4), WireID: "call_1_1_4", Name: "n"}},
	} {
		same(t, "item", []p.Body{tt.want}, decide(t, s, ModelItem{Response: 1, Index: 4, Body: tt.body}))
	}
}

func TestModelItemsThatDoNotBelong(t *testing.T) {
	message := func() p.Body { return &p.AssistantMessage{Text: "x"} }
	for _, tt := range []struct {
		name  string
		given []p.Body
		in    ModelItem
	}{
		{"earlier response", with(toolRuns(), &p.ToolOutput{Call: id(1, 1, 0)}, &p.ModelRequested{Response: 2}), ModelItem{Response: 1, Index: 5, Body: message()}},
		{"response to come", started(), ModelItem{Response: 2, Body: message()}},
		{"response that is over", toolRuns(), ModelItem{Response: 1, Index: 5, Body: message()}},
		{"after the stop", stopped(started()), ModelItem{Response: 1, Body: message()}},
		{"not an item", started(), ModelItem{Response: 1, Body: &p.TurnEnded{}}},
		{"no item", started(), ModelItem{Response: 1}},
		{"message twice", with(started(), &p.AssistantMessage{Item: id(1, 1, 0)}), ModelItem{Response: 1, Body: message()}},
		{"reasoning twice", with(started(), &p.Reasoning{Item: id(1, 1, 0)}), ModelItem{Response: 1, Body: &p.Reasoning{}}},
		{"call twice", with(started(), called(0, "work")), ModelItem{Response: 1, Body: &p.ToolCall{Name: "work"}}},
		{"call as a message", with(started(), called(0, "work")), ModelItem{Response: 1, Body: message()}},
	} {
		if events := decide(t, fold(tt.given...), tt.in); len(events) != 0 {
			t.Errorf("%s: got %s", tt.name, answer(events, nil))
		}
	}
}

// The numbers of items start again with each response.
func TestSameIndexInTheNextResponse(t *testing.T) {
	s := fold(with(toolRuns(), &p.ToolOutput{Call: id(1, 1, 0)}, &p.ModelRequested{Response: 2})...)
	want := &p.ToolCall{Call: id(1, 2, 0), WireID: "w0", Name: "work"}
	same(t, "call", []p.Body{want}, decide(t, s, ModelItem{Response: 2, Body: &p.ToolCall{WireID: "w0", Name: "work"}}))
}

func TestEndOfAResponse(t *testing.T) {
	usage := &p.Usage{Input: 3, Total: 3}
	for _, tt := range []struct {
		name  string
		given []p.Body
		in    ModelDone
		want  []p.Body
	}{
		{
			"nothing asked for", started(),
			ModelDone{Response: 1, Usage: usage},
			[]p.Body{&p.ModelEnded{Response: 1, Usage: usage}, ended(p.Completed)},
		},
		{
			"a call", with(started(), called(0, "work")),
			ModelDone{Response: 1},
			[]p.Body{&p.ModelEnded{Response: 1}, &p.CallStarted{Call: id(1, 1, 0)}},
		},
		{
			"steered in meanwhile", with(started(), accepted(2, p.Steer), accepted(3, p.Queue), accepted(4, p.Steer)),
			ModelDone{Response: 1},
			[]p.Body{
				&p.ModelEnded{Response: 1},
				&p.UserMessage{Item: id(1, 0, 1), Input: 2, Content: p.Text("m2")},
				&p.UserMessage{Item: id(1, 0, 2), Input: 4, Content: p.Text("m4")},
				&p.ModelRequested{Response: 2},
			},
		},
		{
			"a queued message does not join", with(started(), accepted(2, p.Queue)),
			ModelDone{Response: 1},
			[]p.Body{&p.ModelEnded{Response: 1}, ended(p.Completed)},
		},
		{"another response", started(), ModelDone{Response: 2}, nil},
		{"twice", toolRuns(), ModelDone{Response: 1}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			same(t, "events", tt.want, decide(t, fold(tt.given...), tt.in))
		})
	}
}

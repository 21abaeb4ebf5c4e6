package turn

import (
	"testing"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

func TestRetriesAreCounted(t *testing.T) {
	s := fold(started()...)
	for attempt := 1; attempt <= 4; attempt++ {
		var events []p.Body
		s, events = steps(t, s, ModelDone{Response: attempt, Error: broken()})
		same(t, "broken", []p.Body{
			&p.ModelEnded{Response: attempt, Error: broken()},
			&p.ModelRetry{Attempt: attempt, Max: 4, Wait: time.Duration(attempt) * time.Second, Reason: "broken", Stream: attempt > 2},
		}, events)
		s, events = steps(t, s, RetryDue{})
		same(t, "due", []p.Body{&p.ModelRequested{Response: attempt + 1}}, events)
	}
	_, events := steps(t, s, ModelDone{Response: 5, Error: broken()})
	same(t, "once too often", []p.Body{
		&p.ModelEnded{Response: 5, Error: broken()},
		&p.StopRequested{Reason: p.Failed, Error: broken()},
		&p.TurnEnded{Reason: p.Failed, Error: broken(), Elapsed: 2 * time.Second},
	}, events)
}

func TestAResponseThatWorksRefillsTheBudget(t *testing.T) {
	s := fold(started()...)
	s, _ = steps(t, s, ModelDone{Response: 1, Error: broken()}, RetryDue{},
		ModelItem{Response: 2, Body: &p.ToolCall{Name: "work"}}, ModelDone{Response: 2},
		ToolDone{Output: p.ToolOutput{Call: id(1, 2, 0)}})
	_, events := steps(t, s, ModelDone{Response: 3, Error: broken()})
	same(t, "broken again", []p.Body{
		&p.ModelEnded{Response: 3, Error: broken()},
		&p.ModelRetry{Attempt: 1, Max: 4, Wait: time.Second, Reason: "broken"},
	}, events)
}

// What fails before its response begins uses the budget for requests, then that for streams; a response
// that breaks off uses that for streams; a history that is repaired uses neither.
func TestRetryBudgets(t *testing.T) {
	request := func() ModelDone { return ModelDone{Error: broken()} }
	stream := func() ModelDone {
		return ModelDone{Error: &p.Error{Kind: p.ErrorConnection, Message: "broken", Retry: true, Streaming: true}}
	}
	text := func() ModelDone { // one that does not say so, but has given text
		return ModelDone{Error: broken(), Open: []Partial{{Kind: p.DeltaMessage, Text: "so f"}}}
	}
	repaired := func() ModelDone {
		return ModelDone{Error: &p.Error{Kind: p.ErrorHistory, Call: &p.CallFault{WireID: "x", Fault: p.OutputWithoutCall}}}
	}
	for _, test := range []struct {
		name    string
		budget  Retries
		fails   []func() ModelDone
		retried int // how many of them are followed by another try; the next one fails the turn
	}{
		{"no budget, request", Retries{}, []func() ModelDone{request}, 0},
		{"no budget, stream", Retries{}, []func() ModelDone{stream}, 0},
		{"request only", Retries{1, 0}, []func() ModelDone{request, request}, 1},
		{"a stream does not use the request's", Retries{1, 0}, []func() ModelDone{stream}, 0},
		{"nor does text", Retries{1, 0}, []func() ModelDone{text}, 0},
		{"a request uses the stream's", Retries{0, 2}, []func() ModelDone{request, request, request}, 2},
		{"after its own", Retries{1, 1}, []func() ModelDone{request, request, request}, 2},
		{"a stream first", Retries{1, 1}, []func() ModelDone{stream, request, request}, 2},
		{"both streams", Retries{1, 2}, []func() ModelDone{stream, text, stream}, 2},
		{"in turns", Retries{2, 1}, []func() ModelDone{request, stream, request, stream}, 3},
		{"a repair is free", Retries{0, 1}, []func() ModelDone{repaired, request, request}, 2},
	} {
		e := env()
		e.Retries = func() Retries { return test.budget }
		s := fold(started()...)
		for i, fail := range test.fails {
			in := fail()
			in.Response = s.Response
			for j := range in.Open {
				in.Open[j].Item = id(1, s.Response, 0)
			}
			events, err := s.Decide(e, in)
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			for _, ev := range events {
				s = s.Evolve(ev)
			}
			if failed := s.StopReason != "" || !s.Active; failed != (i >= test.retried) {
				t.Errorf("%s: try %d: the turn has failed: %t", test.name, i+1, failed)
				break
			}
			if s.Backoff {
				events, _ = s.Decide(e, RetryDue{})
				for _, ev := range events {
					s = s.Evolve(ev)
				}
			}
		}
	}
}

func TestWithoutRetries(t *testing.T) {
	e := env()
	e.Retries = func() Retries { return Retries{} }
	events, err := fold(started()...).decide(e, ModelDone{Response: 1, Error: broken()})
	if got, want := answer(events, err), "ModelEnded with an error, StopRequested failed, TurnEnded failed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestErrorsThatDoNotPassFailAtOnce(t *testing.T) {
	refusal := &p.Error{Kind: p.ErrorAuth, Message: "no key"}
	same(t, "refused", []p.Body{
		&p.ModelEnded{Response: 1, Error: refusal},
		&p.StopRequested{Reason: p.Failed, Error: refusal},
		&p.TurnEnded{Reason: p.Failed, Error: refusal, Elapsed: 2 * time.Second},
	}, decide(t, fold(started()...), ModelDone{Response: 1, Error: refusal}))
}

func TestRetryDueAtTheWrongTime(t *testing.T) {
	for name, given := range map[string][]p.Body{
		"streaming": started(), "tool running": toolRuns(), "approval open": asked(), "stopping": stopped(started()),
		"retried already": with(backingOff(), &p.ModelRequested{Response: 2}),
	} {
		if events := decide(t, fold(given...), RetryDue{}); len(events) != 0 {
			t.Errorf("%s: got %s", name, answer(events, nil))
		}
	}
}

// Calls of a response that broke off never run: the model is asked again, and
// they must not run twice.
func TestBrokenResponseRunsNothing(t *testing.T) {
	broke := func(index int) *p.ToolOutput {
		return &p.ToolOutput{
			Call: id(1, 1, index), Failed: true, Aborted: true,
			Output: "aborted: the model's response broke off before this call ran, so it was not run",
		}
	}
	s := fold(with(started(), called(0, "work"), called(1, "look"))...)
	s, events := steps(t, s, ModelDone{
		Response: 1, Error: broken(), Open: []Partial{{Item: id(1, 1, 2), Kind: p.DeltaMessage, Text: "hal"}},
	})
	same(t, "broken", []p.Body{
		&p.AssistantMessage{Item: id(1, 1, 2), Text: "hal", Partial: true},
		&p.ModelEnded{Response: 1, Error: broken()},
		broke(0), broke(1),
		&p.ModelRetry{Attempt: 1, Max: 2, Stream: true, Wait: time.Second, Reason: "broken"},
	}, events)
	s, _ = steps(t, s, say(p.Steer, "x"))
	_, events = steps(t, s, RetryDue{})
	same(t, "asked again", []p.Body{
		&p.UserMessage{Item: id(1, 0, 1), Input: 2, Content: p.Text("x")},
		&p.ModelRequested{Response: 2},
	}, events)
}

// refusing is a provider that does not take the history because of call w0.
func refusing(fault p.CallFaultKind) *p.Error {
	return &p.Error{Kind: p.ErrorHistory, Message: "no tool output found", Call: &p.CallFault{WireID: "w0", Fault: fault}}
}

func TestRepair(t *testing.T) {
	notice := &p.Notice{Text: "the model refused the history because of call w0; repaired, trying again", Warn: true}
	output := func(call p.CallID) *p.ToolOutput {
		return &p.ToolOutput{Call: call, Output: "aborted", Failed: true, Aborted: true, Repaired: true}
	}
	again := &p.ModelRequested{Response: 2}
	for _, tt := range []struct {
		name  string
		fault p.CallFaultKind
		known *Refused
		want  []p.Body
	}{
		{
			"a call of an earlier turn", p.CallWithoutOutput, &Refused{Call: id(0, 5, 5)},
			[]p.Body{output(id(0, 5, 5)), &p.HistoryRepaired{WireID: "w0", Fault: p.CallWithoutOutput}, notice, again},
		},
		{
			"a call that has its output", p.CallWithoutOutput, &Refused{Call: id(0, 5, 5), Answered: true},
			[]p.Body{&p.HistoryRepaired{WireID: "w0", Fault: p.CallWithoutOutput}, notice, again},
		},
		{
			"a call that nobody knows", p.CallWithoutOutput, nil,
			[]p.Body{&p.HistoryRepaired{WireID: "w0", Fault: p.CallWithoutOutput, UnknownCall: true}, notice, again},
		},
		{
			"an output without its call", p.OutputWithoutCall, nil,
			[]p.Body{&p.HistoryRepaired{WireID: "w0", Fault: p.OutputWithoutCall}, notice, again},
		},
		{
			"two outputs", p.OutputTwice, &Refused{Call: id(0, 5, 5)},
			[]p.Body{&p.HistoryRepaired{WireID: "w0", Fault: p.OutputTwice}, notice, again},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := refusing(tt.fault)
			events := decide(t, fold(started()...), ModelDone{Response: 1, Error: err, Refused: tt.known})
			same(t, "events", append([]p.Body{&p.ModelEnded{Response: 1, Error: err}}, tt.want...), events)
		})
	}
}

// The call that is complained about may be one of the very response that failed.
func TestRepairOfACallOfTheSameResponse(t *testing.T) {
	s := fold(with(started(), called(0, "work"))...)
	events := decide(t, s, ModelDone{Response: 1, Error: refusing(p.CallWithoutOutput), Refused: &Refused{Call: id(1, 1, 0)}})
	outputs := 0
	for _, b := range events {
		if out, ok := b.(*p.ToolOutput); ok && out.Call == id(1, 1, 0) {
			outputs++
		}
	}
	if outputs != 1 {
		t.Errorf("%d outputs: %s", outputs, answer(events, nil))
	}
}

// Each call is repaired at most once in a turn, without using up a retry.
func TestRepairIsNotRepeated(t *testing.T) {
	s := fold(started()...)
	s, _ = steps(t, s, ModelDone{Response: 1, Error: refusing(p.CallWithoutOutput)})
	other := refusing(p.CallWithoutOutput)
	other.Call.WireID = "w1"
	s, events := steps(t, s, ModelDone{Response: 2, Error: other})
	if got, want := answer(events, nil), "ModelEnded with an error, HistoryRepaired, Notice, ModelRequested 3"; got != want {
		t.Errorf("another call: got %s, want %s", got, want)
	}
	if got := s.UnknownCalls; len(got) != 2 || got[0] != "w0" || got[1] != "w1" {
		t.Errorf("the requests carry outputs for %v", got)
	}
	_, events = steps(t, s, ModelDone{Response: 3, Error: refusing(p.CallWithoutOutput)})
	if got, want := answer(events, nil), "ModelEnded with an error, StopRequested failed, TurnEnded failed"; got != want {
		t.Errorf("the same call: got %s, want %s", got, want)
	}
	passing := refusing(p.CallWithoutOutput)
	passing.Retry = true
	s, events = steps(t, s, ModelDone{Response: 3, Error: passing})
	same(t, "the same call, but it may pass", []p.Body{
		&p.ModelEnded{Response: 3, Error: passing},
		&p.ModelRetry{Attempt: 1, Max: 4, Wait: time.Second, Reason: "no tool output found"},
	}, events)
	s, _ = steps(t, s, RetryDue{}, ModelDone{Response: 4}, say("", "next turn"))
	if got := s.UnknownCalls; len(got) != 0 {
		t.Errorf("the next turn carries outputs for %v", got)
	}
	_, events = steps(t, s, ModelDone{Response: 1, Error: refusing(p.CallWithoutOutput)})
	if got, want := answer(events, nil), "ModelEnded with an error, HistoryRepaired, Notice, ModelRequested 2"; got != want {
		t.Errorf("in the next turn: got %s, want %s", got, want)
	}
}

func TestRefusedHistoryWithoutACall(t *testing.T) {
	err := &p.Error{Kind: p.ErrorHistory, Message: "something"}
	events := decide(t, fold(started()...), ModelDone{Response: 1, Error: err})
	if got, want := answer(events, nil), "ModelEnded with an error, StopRequested failed, TurnEnded failed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestStoppedResponseIsNotRepairedOrRetried(t *testing.T) {
	for _, err := range []*p.Error{broken(), refusing(p.CallWithoutOutput)} {
		events := decide(t, fold(stopped(with(started(), called(0, "work")))...), ModelDone{Response: 1, Error: err})
		same(t, err.Message, []p.Body{&p.ModelEnded{Response: 1}, notRun(id(1, 1, 0)), ended(p.Interrupted)}, events)
	}
}

func TestLost(t *testing.T) {
	killed := "the program was killed"
	printed := []Partial{
		{Item: id(1, 1, 9), Kind: p.DeltaStdout, Text: "of another call"},
		{Item: id(1, 1, 0), Kind: p.DeltaStdout, Text: "abc", Stderr: [][2]int{{1, 2}}},
	}
	withOutput := cut(id(1, 1, 0), killed)
	withOutput.Output = "aborted after 2.0 s: the program was killed while this ran. It may have had effects. Output until then:\nabc"
	withOutput.Command = &p.CommandResult{ExitCode: -1, Output: "abc", Stderr: [][2]int{{1, 2}}, Elapsed: 2 * time.Second}
	never := &p.ToolOutput{
		Call: id(1, 1, 1), Failed: true, Aborted: true,
		Output: "aborted: the program was killed before this ran, so it was not run",
	}
	crashed := &p.StopRequested{Reason: p.Crashed}
	for _, tt := range []struct {
		name  string
		given []p.Body
		in    Lost
		want  []p.Body
	}{
		{
			"command with output", with(answered("work", "work"), &p.CallStarted{Call: id(1, 1, 0)}),
			Lost{Crash: true, Open: printed, Killed: 3},
			[]p.Body{crashed, withOutput, never, &p.TurnEnded{Reason: p.Crashed, Killed: 3, Elapsed: 2 * time.Second}},
		},
		{
			"between the response and its calls", answered("work"),
			Lost{Crash: true},
			[]p.Body{crashed, &p.ToolOutput{
				Call: id(1, 1, 0), Failed: true, Aborted: true,
				Output: "aborted: the program was killed before this ran, so it was not run",
			}, ended(p.Crashed)},
		},
		{
			"between the turn's start and its request",
			[]p.Body{&p.TurnStarted{}},
			Lost{Crash: true},
			[]p.Body{crashed, ended(p.Crashed)},
		},
		{
			"one call asks and another runs",
			with(answered("look", "look"), &p.CallStarted{Call: id(1, 1, 0)}, &p.CallStarted{Call: id(1, 1, 1)}, &p.ApprovalRequested{Call: id(1, 1, 0)}),
			Lost{Crash: true},
			[]p.Body{
				crashed, cut(id(1, 1, 1), killed), &p.ApprovalResolved{Call: id(1, 1, 0), Decision: p.Cancelled},
				&p.ToolOutput{
					Call: id(1, 1, 0), Failed: true, Aborted: true,
					Output: "aborted: the program was killed before this ran, so it was not run",
				}, ended(p.Crashed),
			},
		},
		{"only an approval is open", with(asked(), accepted(2, p.Steer)), Lost{Crash: true, Killed: 1}, nil},
		{
			"an approval was open when it was stopped", stopped(asked()),
			Lost{Crash: true},
			[]p.Body{&p.ApprovalResolved{Call: id(1, 1, 0), Decision: p.Cancelled}, notRun(id(1, 1, 0)), ended(p.Interrupted)},
		},
		{
			"all but the end was recorded", with(stopped(asked()), &p.ApprovalResolved{Call: id(1, 1, 0), Decision: p.Cancelled}, notRun(id(1, 1, 0))),
			Lost{Crash: true},
			[]p.Body{ended(p.Interrupted)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			same(t, "events", tt.want, decide(t, fold(tt.given...), tt.in))
		})
	}
}

// A crash can cut a batch: the answer "no" is recorded, what follows from it
// is not. The call must not run when the other approval is answered.
func TestCrashInTheMiddleOfADenial(t *testing.T) {
	for _, decision := range []p.Decision{p.Denied, p.Abort} {
		s := fold(with(answered("look", "look"), &p.CallStarted{Call: id(1, 1, 0)}, &p.CallStarted{Call: id(1, 1, 1)},
			&p.ApprovalRequested{Call: id(1, 1, 0)}, &p.ApprovalRequested{Call: id(1, 1, 1)},
			&p.ApprovalResolved{Call: id(1, 1, 0), Decision: decision})...)
		s, _ = steps(t, s, Lost{Crash: true})
		events, _ := s.decide(env(), Approval{Call: id(1, 1, 1), Decision: p.Approved})
		for _, b := range events {
			if b, ok := b.(*p.CallStarted); ok && b.Call == id(1, 1, 0) {
				t.Errorf("%s: the call runs all the same: %s", decision, answer(events, nil))
			}
		}
	}
}

func TestLateWorkersAfterTheEnd(t *testing.T) {
	s, _ := steps(t, fold(stopped(toolRuns())...), Lost{})
	for _, in := range []Input{
		ToolDone{Output: p.ToolOutput{Call: id(1, 1, 0)}},
		ToolAsked{Request: p.ApprovalRequested{Call: id(1, 1, 0)}},
		ModelItem{Response: 1, Body: &p.AssistantMessage{}},
		ModelDone{Response: 1},
		RetryDue{},
		Lost{},
	} {
		if events := decide(t, s, in); len(events) != 0 {
			t.Errorf("%T: got %s", in, answer(events, nil))
		}
	}
}

// Clocks may go backwards.
func TestElapsedIsNeverNegative(t *testing.T) {
	e := env()
	e.Now = t0.Add(-time.Hour)
	for name, in := range map[string]Input{"lost": Lost{}, "done": ToolDone{Output: p.ToolOutput{Call: id(1, 1, 0), Aborted: true}}} {
		events, err := fold(stopped(toolRuns())...).decide(e, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range events {
			switch b := b.(type) {
			case *p.ToolOutput:
				if b.Elapsed < 0 {
					t.Errorf("%s: a call took %v", name, b.Elapsed)
				}
			case *p.TurnEnded:
				if b.Elapsed < 0 {
					t.Errorf("%s: the turn took %v", name, b.Elapsed)
				}
			}
		}
	}
}

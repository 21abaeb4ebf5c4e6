package turn

import (
	"strings"
	"testing"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// starts lists which calls of the first response are handed to their tools.
func starts(events []p.Body) string {
	var out []string
	for _, b := range events {
		if b, ok := b.(*p.CallStarted); ok {
			out = append(out, string(rune('0'+b.Call.Index)))
		}
	}
	return strings.Join(out, " ")
}

// Calls run side by side, up to a number, unless one is a barrier, or another one is in the same lane.
func TestWhichCallsRun(t *testing.T) {
	for _, tt := range []struct {
		tools string // what the response asks for
		first string // which start when it has ended
		then  string // which start as the first of those that run ends, and so on
	}{
		{"work", "0", ""},
		{"work work work", "0", "1,2,"},
		{"look", "0", ""},
		{"look look look", "0 1 2", ",,"},
		{"look look work look", "0 1", ",2,3,"},
		{"work look look", "0", "1 2,,"},
		{"look work look work", "0", "1,2,3,"},
		{"work look work look look", "0", "1,2,3 4,,"},
		{"look look look look look look", "0 1 2 3", "4,5,,,,"},
		{"look look look look look work", "0 1 2 3", "4,,,,5,"},
		{"ask look ask look", "0 1 3", "2,,,"},
		{"ask ask work look", "0", "1,2,3,"},
		{"type1 type2 type1 look type2", "0 1 3", "2,4,,,"},
		{"work type1 type1 work", "0", "1,2,3,"},
	} {
		s := fold(with(started())...)
		for i, name := range strings.Fields(tt.tools) {
			s = s.Evolve(p.Event{Turn: 1, Time: t0, Body: called(i, name)})
		}
		s, events := steps(t, s, ModelDone{Response: 1})
		if got := starts(events); got != tt.first {
			t.Errorf("%s: at first %q start, want %q", tt.tools, got, tt.first)
		}
		var then []string
		for s.Response == 1 && len(then) < 9 {
			s, events = steps(t, s, ToolDone{Output: p.ToolOutput{Call: s.OpenCalls()[0]}})
			then = append(then, starts(events))
		}
		if got := strings.Join(then, ","); got != tt.then {
			t.Errorf("%s: then %q start, want %q", tt.tools, got, tt.then)
		}
	}
}

// Side by side also means that they end in any order.
func TestReadersEndInAnyOrder(t *testing.T) {
	s := fold(with(started(), called(0, "look"), called(1, "look"), called(2, "work"))...)
	s, _ = steps(t, s, ModelDone{Response: 1})
	s, events := steps(t, s, ToolDone{Output: p.ToolOutput{Call: id(1, 1, 1), Elapsed: 1}})
	same(t, "the second", []p.Body{&p.ToolOutput{Call: id(1, 1, 1), Elapsed: 1}}, events)
	_, events = steps(t, s, ToolDone{Output: p.ToolOutput{Call: id(1, 1, 0), Elapsed: 1}})
	same(t, "the first", []p.Body{&p.ToolOutput{Call: id(1, 1, 0), Elapsed: 1}, &p.CallStarted{Call: id(1, 1, 2)}}, events)
}

// Without a limit above one, or without anything that says what calls may run beside, they run one at a time and
// in order, and nothing runs while an approval is open.
func TestOneCallAtATime(t *testing.T) {
	for name, change := range map[string]func(*Env){
		"no lanes":   func(e *Env) { e.Lane = nil },
		"one":        func(e *Env) { e.MaxParallel = 1 },
		"no maximum": func(e *Env) { e.MaxParallel = 0 },
	} {
		e := env()
		change(&e)
		s := fold(with(started(), called(0, "ask"), called(1, "look"))...)
		for _, step := range []struct {
			in   Input
			want string
		}{
			{ModelDone{Response: 1}, "0"},
			{ToolAsked{p.ApprovalRequested{Call: id(1, 1, 0)}}, ""},
			{Approval{Call: id(1, 1, 0), Decision: p.Approved}, "0"},
			{ToolDone{Output: p.ToolOutput{Call: id(1, 1, 0)}}, "1"},
		} {
			events, err := s.Decide(e, step.in)
			if got := starts(bodies(events)); err != nil || got != step.want {
				t.Errorf("%s: after %T %q start, want %q; error %v", name, step.in, got, step.want, err)
			}
			for _, ev := range events {
				s = s.Evolve(ev)
			}
		}
	}
}

// Calls run on while an approval is open, and those that need one ask one at a time. A call that was approved
// runs alone: what runs ends first, and nothing begins before it has ended. A barrier that asks is still one.
func TestCallsRunWhileAnApprovalIsOpen(t *testing.T) {
	asked := func(n int) Input { return ToolAsked{p.ApprovalRequested{Call: id(1, 1, n)}} }
	done := func(n int) Input { return ToolDone{Output: p.ToolOutput{Call: id(1, 1, n)}} }
	answer := func(n int, d p.Decision) Input { return Approval{Call: id(1, 1, n), Decision: d} }
	type step struct {
		in   Input
		want string // which calls start
	}
	end := ModelDone{Response: 1}
	for _, tt := range []struct {
		tools string
		steps []step
	}{
		{"ask look look", []step{{end, "0 1 2"}, {asked(0), ""}, {answer(0, p.Approved), ""}, {done(1), ""}, {done(2), "0"}}},
		{"ask look ask look", []step{{end, "0 1 3"}, {asked(0), ""}, {done(1), ""}, {answer(0, p.Denied), "2"}, {asked(2), ""}, {answer(2, p.Approved), ""}, {done(3), "2"}}},
		{"ask ask", []step{{end, "0"}, {asked(0), ""}, {answer(0, p.Approved), "0"}, {done(0), "1"}}},
		{"look look look look look", []step{{end, "0 1 2 3"}, {asked(1), "4"}, {answer(1, p.Approved), ""}, {done(0), ""}, {done(2), ""}, {done(3), ""}, {done(4), "1"}}},
		{"look ask look", []step{{end, "0 1 2"}, {asked(0), ""}, {asked(1), ""}, {answer(1, p.Approved), ""}, {done(2), ""}, {answer(0, p.Approved), "0"}, {done(0), "1"}}},
		{"look ask look", []step{{end, "0 1 2"}, {asked(1), ""}, {answer(1, p.Approved), ""}, {done(2), ""}, {asked(0), ""}, {answer(0, p.Denied), "1"}}},
		{"ask look ask", []step{{end, "0 1"}, {asked(1), ""}, {done(0), ""}, {answer(1, p.Denied), "2"}}},
		{"look work look", []step{{end, "0"}, {done(0), "1"}, {asked(1), ""}, {answer(1, p.Approved), "1"}, {done(1), "2"}}},
		{"ask work look", []step{{end, "0"}, {asked(0), ""}, {answer(0, p.Denied), "1"}, {done(1), "2"}}},
	} {
		s := fold(with(started())...)
		for i, name := range strings.Fields(tt.tools) {
			s = s.Evolve(p.Event{Turn: 1, Time: t0, Body: called(i, name)})
		}
		for i, step := range tt.steps {
			var events []p.Body
			s, events = steps(t, s, step.in)
			if got := starts(events); got != step.want {
				t.Errorf("%s: after step %d %q start, want %q", tt.tools, i, got, step.want)
			}
		}
	}
}

// A crash while calls run and an approval is open ends the turn: in one batch the approval is cancelled, and the
// calls are answered. If only the approval is open, it stays so.
func TestCrashWithCallsAndAnApproval(t *testing.T) {
	given := with(answered("ask", "look", "work"), &p.CallStarted{Call: id(1, 1, 0), Lane: "asks"}, &p.CallStarted{Call: id(1, 1, 1), Lane: "beside"},
		&p.ApprovalRequested{Call: id(1, 1, 0)})
	s := fold(given...)
	events := decide(t, s, Lost{Crash: true})
	var got []string
	for _, b := range events {
		got = append(got, p.Kind(b))
	}
	want := "stop_requested tool_output approval_resolved tool_output tool_output turn_ended"
	if strings.Join(got, " ") != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if end := events[len(events)-1].(*p.TurnEnded); end.Reason != p.Crashed {
		t.Errorf("ended %s", end.Reason)
	}
	s = s.Evolve(p.Event{Turn: 1, Time: t0, Body: &p.ToolOutput{Call: id(1, 1, 1)}})
	if events := decide(t, s, Lost{Crash: true}); len(events) > 0 || !s.Waiting() {
		t.Errorf("a turn that only waits: %v", events)
	}
}

func TestToolDone(t *testing.T) {
	call := id(1, 1, 0)
	next := &p.ModelRequested{Response: 2}
	command := &p.CommandResult{ExitCode: -1, Killed: 2, Output: "abc"}
	for _, tt := range []struct {
		name  string
		given []p.Body
		in    ToolDone
		want  []p.Body
	}{
		{
			"time is measured if the tool does not", toolRuns(),
			ToolDone{Output: p.ToolOutput{Call: call, Output: "x"}},
			[]p.Body{&p.ToolOutput{Call: call, Output: "x", Elapsed: 2 * time.Second}, next},
		},
		{
			"the tool's own time is kept", toolRuns(),
			ToolDone{Output: p.ToolOutput{Call: call, Output: "x", Failed: true, Elapsed: 7}},
			[]p.Body{&p.ToolOutput{Call: call, Output: "x", Failed: true, Elapsed: 7}, next},
		},
		{
			"what was steered in goes along", with(toolRuns(), accepted(2, p.Steer)),
			ToolDone{Output: p.ToolOutput{Call: call, Elapsed: 7}},
			[]p.Body{
				&p.ToolOutput{Call: call, Elapsed: 7},
				&p.UserMessage{Item: id(1, 0, 1), Input: 2, Content: p.Text("m2")}, next,
			},
		},
		{
			"cut", stopped(toolRuns()),
			ToolDone{Output: p.ToolOutput{Call: call, Output: "abc", Aborted: true, Command: command}},
			[]p.Body{
				&p.ToolOutput{
					Call: call, Failed: true, Aborted: true, Elapsed: 2 * time.Second, Command: command,
					Output: "aborted after 2.0 s: the user stopped the turn while this ran. It may have had effects." +
						" Processes killed: 2. Output until then:\nabc",
				},
				&p.TurnEnded{Reason: p.Interrupted, Killed: 2, Elapsed: 2 * time.Second},
			},
		},
		{
			"stopped before it began", stopped(toolRuns()),
			ToolDone{Output: p.ToolOutput{Call: call}, NotRun: true},
			[]p.Body{notRun(call), ended(p.Interrupted)},
		},
		{
			"done although stopped", stopped(toolRuns()),
			ToolDone{Output: p.ToolOutput{Call: call, Output: "x", Elapsed: 7}},
			[]p.Body{&p.ToolOutput{Call: call, Output: "x", Elapsed: 7}, ended(p.Interrupted)},
		},
		{"unknown call", toolRuns(), ToolDone{Output: p.ToolOutput{Call: id(1, 1, 9)}}, nil},
		{"call of another turn", toolRuns(), ToolDone{Output: p.ToolOutput{Call: id(2, 1, 0)}}, nil},
		{"call that has not begun", with(answered("work", "work"), &p.CallStarted{Call: call}), ToolDone{Output: p.ToolOutput{Call: id(1, 1, 1)}}, nil},
		{"call that waits for a person", asked(), ToolDone{Output: p.ToolOutput{Call: call}}, nil},
		{"twice", with(toolRuns(), &p.ToolOutput{Call: call}, next), ToolDone{Output: p.ToolOutput{Call: call}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			same(t, "events", tt.want, decide(t, fold(tt.given...), tt.in))
		})
	}
}

func TestToolAsked(t *testing.T) {
	call := id(1, 1, 0)
	request := p.ApprovalRequested{Call: call, Kind: p.ApproveCommand, Command: []string{"rm"}, Cwd: "/", Reason: "why"}
	for _, tt := range []struct {
		name  string
		given []p.Body
		in    p.ApprovalRequested
		want  []p.Body
	}{
		{"runs", toolRuns(), request, []p.Body{&request}},
		{"stopped meanwhile", stopped(toolRuns()), request, []p.Body{cut(call, "the user stopped the turn"), ended(p.Interrupted)}},
		{"unknown call", toolRuns(), p.ApprovalRequested{Call: id(1, 1, 9)}, nil},
		{"twice", asked(), request, nil},
		{
			"no further call starts meanwhile", with(answered("work", "work"), &p.CallStarted{Call: call}), request,
			[]p.Body{&request},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			same(t, "events", tt.want, decide(t, fold(tt.given...), ToolAsked{Request: tt.in}))
		})
	}
}

func TestApproval(t *testing.T) {
	call := id(1, 1, 0)
	answer := func(d p.Decision, text string) Approval { return Approval{Call: call, Decision: d, Message: text} }
	resolved := func(d p.Decision, text string) p.Body {
		return &p.ApprovalResolved{Call: call, Decision: d, Message: text}
	}
	for _, tt := range []struct {
		name string
		in   Approval
		want []p.Body
	}{
		{"approved", answer(p.Approved, ""), []p.Body{resolved(p.Approved, ""), &p.CallStarted{Call: call, Grant: p.Approved}}},
		{
			"approved for good", answer(p.ApprovedForSession, "fine"),
			[]p.Body{resolved(p.ApprovedForSession, "fine"), &p.CallStarted{Call: call, Grant: p.ApprovedForSession}},
		},
		{
			"denied", answer(p.Denied, ""),
			[]p.Body{
				resolved(p.Denied, ""), &p.ToolOutput{Call: call, Output: "rejected by the user", Failed: true},
				&p.ModelRequested{Response: 2},
			},
		},
		{
			"denied with words", answer(p.Denied, "use git mv"),
			[]p.Body{
				resolved(p.Denied, "use git mv"),
				&p.ToolOutput{Call: call, Output: "rejected by the user: use git mv", Failed: true},
				&p.ModelRequested{Response: 2},
			},
		},
		{
			"abort", answer(p.Abort, ""),
			[]p.Body{resolved(p.Abort, ""), &p.StopRequested{Reason: p.Interrupted}, notRun(call), ended(p.Interrupted)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			same(t, "events", tt.want, decide(t, fold(asked()...), tt.in))
		})
	}
}

// A command that the sandbox kept from its work asks to run without. Whatever the
// answer, what it did before is kept.
func TestApprovalOfWhatWasTried(t *testing.T) {
	call := id(1, 1, 0)
	tried := &p.CommandResult{ExitCode: 1, Output: "made one, cannot make two\n", Elapsed: 3 * time.Second}
	s := fold(with(asked(), &p.ApprovalRequested{Call: call, Tried: tried})...)
	const before = "\nBefore that it ran in the sandbox, with exit code 1, and printed:\nmade one, cannot make two\n"
	rejected := &p.ToolOutput{Call: call, Failed: true, Command: tried, Elapsed: tried.Elapsed, Output: "rejected by the user: no" + before}
	cut := &p.ToolOutput{
		Call: call, Failed: true, Aborted: true, Command: tried, Elapsed: tried.Elapsed,
		Output: "aborted: the user stopped the turn before this ran outside the sandbox, so it was not run there" + before,
	}
	same(t, "denied", []p.Body{
		&p.ApprovalResolved{Call: call, Decision: p.Denied, Message: "no"}, rejected, &p.ModelRequested{Response: 2},
	}, decide(t, s, Approval{Call: call, Decision: p.Denied, Message: "no"}))
	same(t, "stopped", []p.Body{
		&p.StopRequested{Reason: p.Interrupted}, &p.ApprovalResolved{Call: call, Decision: p.Cancelled}, cut, ended(p.Interrupted),
	}, decide(t, s, Stop{}))

	s = fold(with(asked(), &p.ApprovalRequested{Call: call, Tried: &p.CommandResult{ExitCode: 2}})...)
	out := decide(t, s, Approval{Call: call, Decision: p.Denied})[1].(*p.ToolOutput).Output
	if want := "rejected by the user\nBefore that it ran in the sandbox, with exit code 2, and printed nothing."; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// Two calls that read may both ask; nothing runs until both are answered.
func TestTwoApprovals(t *testing.T) {
	s := fold(with(answered("look", "look", "work"), &p.CallStarted{Call: id(1, 1, 0)}, &p.CallStarted{Call: id(1, 1, 1)})...)
	s, _ = steps(t, s, ToolAsked{Request: p.ApprovalRequested{Call: id(1, 1, 0)}})
	if s.Waiting() {
		t.Error("waits although the second call runs")
	}
	s, _ = steps(t, s, ToolAsked{Request: p.ApprovalRequested{Call: id(1, 1, 1)}})
	if got := s.PendingApprovals(); !s.Waiting() || len(got) != 2 {
		t.Errorf("waiting: %t, for %v", s.Waiting(), got)
	}
	s, events := steps(t, s, Approval{Call: id(1, 1, 1), Decision: p.Approved})
	same(t, "first answer", []p.Body{&p.ApprovalResolved{Call: id(1, 1, 1), Decision: p.Approved}}, events)
	_, events = steps(t, s, Approval{Call: id(1, 1, 0), Decision: p.Denied})
	same(t, "second answer", []p.Body{
		&p.ApprovalResolved{Call: id(1, 1, 0), Decision: p.Denied},
		&p.ToolOutput{Call: id(1, 1, 0), Output: "rejected by the user", Failed: true},
		&p.CallStarted{Call: id(1, 1, 1), Grant: p.Approved},
	}, events)
}

// A call may ask again after it was approved, and runs once for each answer.
func TestAskedAgain(t *testing.T) {
	s := fold(asked()...)
	s, _ = steps(t, s, Approval{Call: id(1, 1, 0), Decision: p.Approved})
	s, events := steps(t, s, ToolAsked{Request: p.ApprovalRequested{Call: id(1, 1, 0), Reason: "without sandbox"}})
	same(t, "asked again", []p.Body{&p.ApprovalRequested{Call: id(1, 1, 0), Reason: "without sandbox"}}, events)
	_, events = steps(t, s, Approval{Call: id(1, 1, 0), Decision: p.Denied})
	same(t, "denied", []p.Body{
		&p.ApprovalResolved{Call: id(1, 1, 0), Decision: p.Denied},
		&p.ToolOutput{Call: id(1, 1, 0), Output: "rejected by the user", Failed: true},
		&p.ModelRequested{Response: 2},
	}, events)
}

func TestAbortWaitsForTheOtherCalls(t *testing.T) {
	s := fold(with(answered("look", "look"), &p.CallStarted{Call: id(1, 1, 0)}, &p.CallStarted{Call: id(1, 1, 1)},
		&p.ApprovalRequested{Call: id(1, 1, 0)})...)
	s, events := steps(t, s, Approval{Call: id(1, 1, 0), Decision: p.Abort})
	same(t, "abort", []p.Body{
		&p.ApprovalResolved{Call: id(1, 1, 0), Decision: p.Abort}, &p.StopRequested{Reason: p.Interrupted},
	}, events)
	_, events = steps(t, s, ToolDone{Output: p.ToolOutput{Call: id(1, 1, 1), Elapsed: 1}})
	same(t, "the other call ends", []p.Body{
		&p.ToolOutput{Call: id(1, 1, 1), Elapsed: 1}, notRun(id(1, 1, 0)), ended(p.Interrupted),
	}, events)
}

func TestAbortText(t *testing.T) {
	long := strings.Repeat("x", 20<<10)
	for _, tt := range []struct {
		reason p.EndReason
		cmd    *p.CommandResult
		text   string
		want   string
	}{
		{p.Interrupted, nil, "", "aborted after 1.5 s: the user stopped the turn while this ran. It may have had effects. It had printed nothing."},
		{p.Replaced, nil, "", "aborted after 1.5 s: the user replaced the turn by a new message while this ran. It may have had effects. It had printed nothing."},
		{p.Failed, &p.CommandResult{}, "", "aborted after 1.5 s: the turn failed while this ran. It may have had effects. It had printed nothing."},
		{p.Crashed, &p.CommandResult{Killed: 1}, "a\n", "aborted after 1.5 s: the program was killed while this ran. It may have had effects. Processes killed: 1. Output until then:\na\n"},
		{p.Interrupted, nil, long, "aborted after 1.5 s: the user stopped the turn while this ran. It may have had effects. Output until then:\n" + p.Shorten(long)},
	} {
		if got := abortText(tt.reason, 1500*time.Millisecond, tt.cmd, tt.text); got != tt.want {
			t.Errorf("%s:\ngot  %.300q\nwant %.300q", tt.reason, got, tt.want)
		}
	}
}

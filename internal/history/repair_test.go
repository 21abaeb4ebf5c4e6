package history_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

// threeCalls is a response with three calls, of which only some are answered,
// and the next request.
func threeCalls(outputs ...p.Body) []p.Body {
	log := opened(call(1, 0), thought(1, 1, "t"), call(1, 2), call(1, 3), over(1))
	return append(append(log, outputs...), request(2), said(2, 0, "next"), over(2))
}

// Outputs that come late stand where they would have stood.
func TestLateOutputs(t *testing.T) {
	all := []string{
		env, "user: go", "call 1.1.0 w0: sh", "reasoning: t", "call 1.1.2 w2: sh", "call 1.1.3 w3: sh",
		"output 1.1.0 w0: a", "output 1.1.2 w2: b", "output 1.1.3 w3: c", "assistant: next",
	}
	a, b, c := output(1, 0, "a"), output(1, 2, "b"), output(1, 3, "c")
	for _, tt := range []struct {
		name        string
		early, late []p.Body
		missing     []p.CallID
	}{
		{"the first", []p.Body{b, c}, []p.Body{a}, []p.CallID{id(1, 1, 0)}},
		{"the middle one", []p.Body{c, a}, []p.Body{b}, []p.CallID{id(1, 1, 2)}},
		{"the last", []p.Body{a, b}, []p.Body{c}, []p.CallID{id(1, 1, 3)}},
		{"all", nil, []p.Body{a, b, c}, []p.CallID{id(1, 1, 0), id(1, 1, 2), id(1, 1, 3)}},
		{"all, backwards", nil, []p.Body{c, b, a}, []p.CallID{id(1, 1, 0), id(1, 1, 2), id(1, 1, 3)}},
		{"two", []p.Body{b}, []p.Body{c, a}, []p.CallID{id(1, 1, 0), id(1, 1, 3)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := build(threeCalls(tt.early...)...)
			if diff := cmp.Diff(tt.missing, h.Missing()); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			before := h.Items()
			was := views(before)
			for _, body := range append(tt.late, tt.late...) { // the second time they change nothing
				h.Apply(p.Event{Body: body})
			}
			expect(t, h, all...)
			if got := h.Missing(); len(got) != 0 {
				t.Errorf("still missing: %v", got)
			}
			if diff := cmp.Diff(was, views(before)); diff != "" {
				t.Errorf("a prompt that was handed out changed:\n%s", diff)
			}
		})
	}
}

// Until a missing output is recorded, the prompt has one all the same.
func TestPromptWithMissingOutputs(t *testing.T) {
	h := build(threeCalls(output(1, 2, "b"))...)
	for range 2 {
		expect(t, h, env, "user: go", "call 1.1.0 w0: sh", "reasoning: t", "call 1.1.2 w2: sh", "call 1.1.3 w3: sh",
			"output 1.1.0 w0: aborted", "output 1.1.2 w2: b", "output 1.1.3 w3: aborted", "assistant: next")
	}
	if got := len(h.Missing()); got != 2 {
		t.Errorf("%d outputs are missing, want 2: asking for the prompt repairs nothing", got)
	}
}

// A prompt in the middle of a response is not asked for, but would be valid.
func TestPromptInTheMiddleOfAResponse(t *testing.T) {
	h := build(opened(thought(1, 0, "t"), call(1, 1), call(1, 2))...)
	want := []string{env, "user: go", "reasoning: t", "call 1.1.1 w1: sh", "call 1.1.2 w2: sh"}
	expect(t, h, append(want, "output 1.1.1 w1: aborted", "output 1.1.2 w2: aborted")...)
	early := h.Items()
	was := views(early)
	if got := h.Missing(); len(got) != 0 {
		t.Errorf("missing while the response is under way: %v", got)
	}
	for _, b := range []p.Body{said(1, 3, "m"), over(1), output(1, 2, "b")} {
		h.Apply(p.Event{Turn: 1, Body: b})
	}
	want = []string{env, "user: go", "assistant: m", "reasoning: t", "call 1.1.1 w1: sh", "call 1.1.2 w2: sh"}
	expect(t, h, append(want, "output 1.1.1 w1: aborted", "output 1.1.2 w2: b")...)
	h.Apply(p.Event{Turn: 1, Body: output(1, 1, "a")})
	expect(t, h, append(want, "output 1.1.1 w1: a", "output 1.1.2 w2: b")...)
	if diff := cmp.Diff(was, views(early)); diff != "" {
		t.Errorf("a prompt that was handed out changed:\n%s", diff)
	}
}

func TestWhatEndsAResponse(t *testing.T) {
	for name, b := range map[string]p.Body{
		"the next request": request(2), "the next message": says(2, "x"), "the turn's end": end(p.Completed),
		"the next turn": &p.TurnStarted{}, "a revert of nothing": &p.Reverted{Before: 9},
	} {
		h := build(opened(call(1, 0), over(1), b)...)
		if diff := cmp.Diff([]p.CallID{id(1, 1, 0)}, h.Missing()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	h := build(opened(call(1, 0), over(1))...)
	if got := h.Missing(); len(got) != 0 {
		t.Errorf("missing although the call may still run: %v", got)
	}
}

func TestLateOutputOfAnEarlierTurn(t *testing.T) {
	h := build(opened(call(1, 0), over(1), end(p.Failed), &p.TurnStarted{}, says(2, "more"), request(1), callIn(2, 1, 0), over(1), outputIn(2, 1, 0, "b"))...)
	h.Apply(p.Event{Turn: 2, Body: &p.ToolOutput{Call: id(1, 1, 0), Output: "aborted", Repaired: true}})
	expect(t, h, env, "user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: aborted", "user: more", "call 2.1.0 w0: sh", "output 2.1.0 w0: b")
}

// A late output moves what stands behind it, also the place where a response
// that is under way began.
func TestLateOutputDuringAResponse(t *testing.T) {
	h := build(opened(call(1, 0), over(1), request(2), call(2, 0))...)
	for _, b := range []p.Body{output(1, 0, "late"), said(2, 1, "m"), over(2), output(2, 0, "b"), request(3)} {
		h.Apply(p.Event{Turn: 1, Body: b})
	}
	expect(t, h, env, "user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: late", "assistant: m", "call 1.2.0 w0: sh", "output 1.2.0 w0: b")
}

// Records that were lost must not make a prompt that no provider takes.
func TestDamagedLogs(t *testing.T) {
	elsewhere := &p.Configured{Settings: p.Settings{Cwd: "/other"}}
	moved := "user: <environment_context>\n  <cwd>/other</cwd>\n</environment_context>"
	for _, tt := range []struct {
		name   string
		events []p.Body
		want   []string
	}{
		{
			"the end of a turn, and new settings",
			opened(call(1, 0), over(1), output(1, 0, "x"), elsewhere, &p.TurnStarted{}, says(2, "more"), request(1)),
			[]string{env, "user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: x", moved, "user: more"},
		},
		{
			"a request",
			opened(call(1, 0), over(1), output(1, 0, "x"), call(2, 0), over(2), output(2, 0, "y"), request(3)),
			[]string{env, "user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: x", "call 1.2.0 w0: sh", "output 1.2.0 w0: y"},
		},
		{
			"a request and an output before it",
			opened(call(1, 0), over(1), thought(1, 1, "t"), call(2, 0), over(2), output(2, 0, "y"), request(3)),
			[]string{env, "user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: aborted", "call 1.2.0 w0: sh", "output 1.2.0 w0: y"},
		},
		{
			"a request, between a call and what was said",
			opened(call(1, 0), over(1), output(1, 0, "x"), said(2, 0, "m"), over(2), request(3)),
			[]string{env, "user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: x", "assistant: m"},
		},
		{
			"two calls of one response that were torn apart",
			opened(call(1, 0), &p.Reverted{Before: 9}, call(1, 1), over(1), output(1, 1, "y"), request(3)),
			[]string{env, "user: go", "call 1.1.0 w0: sh", "call 1.1.1 w1: sh", "output 1.1.0 w0: aborted", "output 1.1.1 w1: y"},
		},
		{
			"an output, and the response goes on",
			opened(call(1, 0), &p.Reverted{Before: 9}, thought(1, 1, "t"), said(1, 2, "m"), over(1), request(3)),
			[]string{env, "user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: aborted", "reasoning: t", "assistant: m"},
		},
		{
			"a call",
			opened(over(1), output(1, 0, "x"), request(2)),
			[]string{env, "user: go"},
		},
		{
			"the beginning, recorded again when it was opened",
			[]p.Body{&p.TurnStarted{}, says(1, "go"), request(1), said(1, 0, "hi"), over(1), end(p.Completed), begin()},
			[]string{env, "user: go", "assistant: hi"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) { expect(t, build(tt.events...), tt.want...) })
	}
}

// When the beginning was lost and recorded again, a compaction keeps that and
// nothing else.
func TestCompactionAfterALostBeginning(t *testing.T) {
	expect(t, build(&p.TurnStarted{}, says(1, "go"), request(1), over(1), end(p.Completed), begin(), &p.Compacted{Summary: "s"}),
		env, summary+"s")
}

func TestFind(t *testing.T) {
	wire := func(turn, response, index int, wire string) p.Body {
		return &p.ToolCall{Call: id(turn, response, index), WireID: wire}
	}
	log := opened(wire(1, 1, 0, "a"), wire(1, 1, 1, "b"), over(1), output(1, 1, "x"), // a is missing
		request(2), wire(1, 2, 0, "a"), wire(1, 2, 1, "c"), over(2), output(1, 2, "?"), output(2, 0, "x"), output(2, 1, "x"),
		request(3), wire(1, 3, 0, "c"), over(3), output(3, 0, "x"), end(p.Completed),
		&p.TurnStarted{}, says(2, "more"), request(1), wire(2, 1, 0, "d"), wire(2, 1, 1, "b"), outputIn(2, 1, 1, "x"))
	for _, tt := range []struct {
		wire         string
		want         p.CallID
		answered, ok bool
	}{
		{"a", id(1, 1, 0), false, true}, // the one without an output, although there is a later one
		{"c", id(1, 3, 0), true, true},  // the latest
		{"d", id(2, 1, 0), false, true}, // still open
		{"e", p.CallID{}, false, false},
		{"", p.CallID{}, false, false}, // not a message, which has no such id
	} {
		got, answered, ok := build(log...).Find(tt.wire)
		if got != tt.want || answered != tt.answered || ok != tt.ok {
			t.Errorf("%q: got %s, answered: %t, found: %t, want %s, %t, %t", tt.wire, got, answered, ok, tt.want, tt.answered, tt.ok)
		}
	}
}

// An answer that has just been recorded counts.
func TestFindSeesTheLatestOutputs(t *testing.T) {
	h := build(opened(call(1, 0), over(1), output(1, 0, "x"))...)
	if got, answered, ok := h.Find("w0"); got != id(1, 1, 0) || !answered || !ok {
		t.Errorf("got %s, answered: %t, found: %t", got, answered, ok)
	}
}

package history_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/history"
	"github.com/fermata-agent/fermata/internal/prompt"
	p "github.com/fermata-agent/fermata/protocol"
)

// promptRules are the rules of the package comment, one by one.
var promptRules = []struct {
	name   string
	events []p.Body
	want   []string
}{
	{"a message and its answer", opened(said(1, 0, "hi"), over(1), end(p.Completed)), []string{"user: go", "assistant: hi"}},
	{
		"a call and its output", opened(call(1, 0), over(1), output(1, 0, "x"), request(2), said(2, 0, "done"), over(2), end(p.Completed)),
		[]string{"user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: x", "assistant: done"},
	},
	{
		"outputs come in the order of the calls, not in theirs",
		opened(call(1, 0), call(1, 1), call(1, 2), over(1), output(1, 2, "c"), output(1, 0, "a"), output(1, 1, "b"), request(2)),
		[]string{
			"user: go", "call 1.1.0 w0: sh", "call 1.1.1 w1: sh", "call 1.1.2 w2: sh",
			"output 1.1.0 w0: a", "output 1.1.1 w1: b", "output 1.1.2 w2: c",
		},
	},
	{
		"what was said after a call goes before the calls",
		opened(call(1, 0), said(1, 1, "one"), call(1, 2), said(1, 3, "two"), over(1), output(1, 0, "a"), output(1, 2, "c"), request(2)),
		[]string{
			"user: go", "assistant: one", "assistant: two", "call 1.1.0 w0: sh", "call 1.1.2 w2: sh",
			"output 1.1.0 w0: a", "output 1.1.2 w2: c",
		},
	},
	{
		"with the reasoning that led to it",
		opened(thought(1, 0, "t0"), call(1, 1), thought(1, 2, "t2"), said(1, 3, "m"), thought(1, 4, "t4"), call(1, 5), over(1),
			output(1, 1, "a"), output(1, 5, "b"), request(2)),
		[]string{
			"user: go", "reasoning: t2", "assistant: m", "reasoning: t0", "call 1.1.1 w1: sh", "reasoning: t4", "call 1.1.5 w5: sh",
			"output 1.1.1 w1: a", "output 1.1.5 w5: b",
		},
	},
	{
		"reasoning stays with what follows it", opened(thought(1, 0, "a"), thought(1, 1, "b"), said(1, 2, "m"), over(1), end(p.Completed)),
		[]string{"user: go", "reasoning: a", "reasoning: b", "assistant: m"},
	},
	{"reasoning alone is left out", opened(thought(1, 0, "a"), over(1), end(p.Completed)), []string{"user: go"}},
	{
		"reasoning at the end is left out", opened(said(1, 0, "m"), thought(1, 1, "a"), over(1), request(2), said(2, 0, "n"), over(2)),
		[]string{"user: go", "assistant: m", "assistant: n"},
	},
	{
		"reasoning after the last call is left out",
		opened(call(1, 0), thought(1, 1, "a"), over(1), output(1, 0, "x"), request(2), said(2, 0, "m")),
		[]string{"user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: x", "assistant: m"},
	},
	{
		"reasoning that was cut is left out",
		opened(&p.Reasoning{Item: id(1, 1, 0), Text: "a", Partial: true}, said(1, 1, "m"), over(1), end(p.Completed)),
		[]string{"user: go", "assistant: m"},
	},
	{
		"what was steered in follows the outputs",
		opened(call(1, 0), over(1), output(1, 0, "x"), says(2, "also"), request(2)),
		[]string{"user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: x", "user: also"},
	},
	{
		"the same call ids in two responses and two turns",
		opened(call(1, 0), over(1), output(1, 0, "a"), request(2), call(2, 0), over(2), output(2, 0, "b"), request(3), over(3), end(p.Completed),
			&p.TurnStarted{}, says(2, "more"), request(1), callIn(2, 1, 0), over(1), outputIn(2, 1, 0, "c"), request(2)),
		[]string{
			"user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: a", "call 1.2.0 w0: sh", "output 1.2.0 w0: b",
			"user: more", "call 2.1.0 w0: sh", "output 2.1.0 w0: c",
		},
	},
	{"an output without its call is left out", opened(output(1, 0, "x"), over(1), end(p.Completed)), []string{"user: go"}},
	{
		"a second output is left out",
		opened(call(1, 0), call(1, 1), over(1), output(1, 0, "first"), output(1, 0, "second"), output(1, 1, "b"), output(1, 0, "third"),
			request(2), output(1, 0, "fourth"), output(1, 1, "fifth")),
		[]string{"user: go", "call 1.1.0 w0: sh", "call 1.1.1 w1: sh", "output 1.1.0 w0: first", "output 1.1.1 w1: b"},
	},
	{
		"a call that is recorded twice is one call",
		opened(call(1, 0), call(1, 0), over(1), output(1, 0, "x"), request(2), call(1, 0), over(2), request(3)),
		[]string{"user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: x"},
	},
	{
		"files that were put back",
		opened(said(1, 0, "m"), over(1), end(p.Completed), &p.Undone{Of: 1, Files: []string{"/w/a", "/w/b"}}),
		[]string{
			"user: go", "assistant: m",
			"user: <files_restored>\nThe user took back what turn 1 changed in files: they are what they were before it.\n- /w/a\n- /w/b\n</files_restored>",
		},
	},
	{
		"events that are not for the model",
		opened(&p.Notice{Text: "n"}, &p.Renamed{}, &p.Damaged{}, &p.InputAccepted{Content: p.Text("waits")}, &p.InputReturned{}, &p.CallStarted{},
			&p.ApprovalRequested{}, &p.ApprovalResolved{}, &p.CommandStarted{}, &p.PatchStarted{}, &p.PatchCommitted{}, &p.PatchSettled{}, &p.TurnDiff{}, &p.PlanUpdated{}, &p.StopRequested{}, &p.Unknown{Kind: "new"}),
		[]string{"user: go"},
	},
}

func TestPromptRules(t *testing.T) {
	for _, tt := range promptRules {
		t.Run(tt.name, func(t *testing.T) {
			h := build(tt.events...)
			expect(t, h, append([]string{env}, tt.want...)...)
			if got := h.Missing(); len(got) != 0 {
				t.Errorf("missing: %v", got)
			}
			if got, want := h.Len(), len(tt.want)+1; got != want {
				t.Errorf("there are %d items, want %d", got, want)
			}
		})
	}
}

// An item carries what an adapter needs to send it back as it came.
func TestItemsAreWhole(t *testing.T) {
	raw := func(s string) p.Raw { return p.Raw{Wire: "responses", JSON: json.RawMessage(`"` + s + `"`)} }
	image := []p.Content{{Type: p.ContentImage, ImageURL: "data:,"}}
	h := build(begin(), &p.TurnStarted{}, &p.UserMessage{Content: image}, request(1),
		&p.Reasoning{Item: id(1, 1, 0), Text: "t", Raw: raw("t")},
		&p.AssistantMessage{Item: id(1, 1, 1), Text: "m", Raw: raw("m")},
		&p.ToolCall{Call: id(1, 1, 2), WireID: "a", Kind: p.CallCustom, Name: "patch", Arguments: "free text", Raw: raw("c")},
		&p.ToolCall{Call: id(1, 1, 3), WireID: "b", Kind: p.CallLocalShell, Name: "sh", Arguments: "{}"},
		over(1), &p.ToolOutput{Call: id(1, 1, 3), Output: "y", Failed: true},
		&p.ToolOutput{Call: id(1, 1, 2), Output: "x", Content: image}, request(2))
	want := []view{
		{Kind: p.PromptUser, Content: p.Text(workdir)},
		{Kind: p.PromptUser, Content: image},
		{Kind: p.PromptReasoning, Text: "t", Raw: raw("t")},
		{Kind: p.PromptAssistant, Text: "m", Raw: raw("m")},
		{Kind: p.PromptCall, Call: id(1, 1, 2), WireID: "a", CallKind: p.CallCustom, Name: "patch", Arguments: "free text", Raw: raw("c")},
		{Kind: p.PromptCall, Call: id(1, 1, 3), WireID: "b", CallKind: p.CallLocalShell, Name: "sh", Arguments: "{}"},
		{Kind: p.PromptOutput, Call: id(1, 1, 2), WireID: "a", CallKind: p.CallCustom, Text: "x", Content: image},
		{Kind: p.PromptOutput, Call: id(1, 1, 3), WireID: "b", CallKind: p.CallLocalShell, Text: "y"},
	}
	if diff := cmp.Diff(want, views(h.Items())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEmptyHistory(t *testing.T) {
	var h history.History
	if got := h.Items(); len(got) != 0 || h.Len() != 0 || len(h.Missing()) != 0 || h.Compacted() != 0 {
		t.Errorf("got %v", lines(got))
	}
	if _, _, ok := h.Find("w0"); ok {
		t.Error("found a call in nothing")
	}
}

func TestBeginning(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings p.Settings
		want     []string
	}{
		{"directory", settings(nil), []string{env}},
		{"nothing known", p.Settings{}, []string{"user: <environment_context>\n</environment_context>"}},
		{
			"everything", settings(func(s *p.Settings) {
				s.Approval, s.Sandbox.Mode = p.ApprovalNever, p.SandboxWorkspaceWrite
				s.UserInstructions = "Be brief.\n"
			}),
			[]string{
				"user: <user_instructions>\n\nBe brief.\n\n\n</user_instructions>",
				"user: " + prompt.Environment(p.Settings{}, settings(func(s *p.Settings) {
					s.Approval, s.Sandbox.Mode = p.ApprovalNever, p.SandboxWorkspaceWrite
				})),
			},
		},
		{
			"full access has the network",
			settings(func(s *p.Settings) { s.Sandbox.Mode = p.SandboxFullAccess }),
			[]string{"user: <environment_context>\n  <cwd>/w</cwd>\n  <sandbox_mode>danger-full-access</sandbox_mode>\n  <network_access>enabled</network_access>\n</environment_context>"},
		},
		{
			"network by choice",
			settings(func(s *p.Settings) { s.Sandbox = p.SandboxPolicy{Mode: p.SandboxReadOnly, NetworkAccess: true} }),
			[]string{"user: <environment_context>\n  <cwd>/w</cwd>\n  <sandbox_mode>read-only</sandbox_mode>\n  <network_access>enabled</network_access>\n</environment_context>"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, build(&p.ConversationStarted{Settings: tt.settings}), tt.want...)
		})
	}
}

// The model is told of its surroundings when a turn begins, if they changed,
// and only of what did.
func TestChangedSurroundings(t *testing.T) {
	configured := func(change func(*p.Settings)) p.Body { return &p.Configured{Settings: settings(change)} }
	elsewhere := func(s *p.Settings) { s.Cwd = "/other" }
	moved := "user: <environment_context>\n  <cwd>/other</cwd>\n</environment_context>"
	turn := []p.Body{&p.TurnStarted{}, says(1, "go"), request(1), over(1), end(p.Completed)}
	for _, tt := range []struct {
		name   string
		events []p.Body
		want   []string
	}{
		{"not yet", []p.Body{configured(elsewhere)}, nil},
		{"at the next turn", append([]p.Body{configured(elsewhere)}, turn...), []string{moved, "user: go"}},
		{"once", append(append([]p.Body{configured(elsewhere)}, turn...), turn...), []string{moved, "user: go", "user: go"}},
		{"the last of several", append([]p.Body{configured(nil), configured(elsewhere)}, turn...), []string{moved, "user: go"}},
		{"there and back again", append([]p.Body{configured(elsewhere), configured(nil)}, turn...), []string{"user: go"}},
		{
			"nothing that it would notice",
			append([]p.Body{configured(func(s *p.Settings) { s.Model, s.Effort = "other", "high" })}, turn...),
			[]string{"user: go"},
		},
		{
			"in the middle of a turn, for the next one",
			append([]p.Body{&p.TurnStarted{}, says(1, "go"), request(1), configured(elsewhere), over(1), end(p.Completed)}, turn...),
			[]string{"user: go", moved, "user: go"},
		},
		{
			"network only",
			append(append([]p.Body{configured(func(s *p.Settings) { s.Sandbox.Mode = p.SandboxReadOnly })}, turn...),
				append([]p.Body{configured(func(s *p.Settings) { s.Sandbox = p.SandboxPolicy{Mode: p.SandboxReadOnly, NetworkAccess: true} })}, turn...)...),
			[]string{
				"user: <environment_context>\n  <sandbox_mode>read-only</sandbox_mode>\n  <network_access>restricted</network_access>\n</environment_context>",
				"user: go",
				"user: <environment_context>\n  <network_access>enabled</network_access>\n</environment_context>", "user: go",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, build(append([]p.Body{begin()}, tt.events...)...), append([]string{env}, tt.want...)...)
		})
	}
}

func TestCutTurns(t *testing.T) {
	tell := func(text string) string { return "user: <turn_aborted>\n" + text + "\n</turn_aborted>" }
	stopped := "The user stopped your previous turn on purpose after 1.5 s."
	cutCalls := " These calls were interrupted or not run; those that had started may have had effects, so check before you repeat them:"
	for _, tt := range []struct {
		name   string
		events []p.Body
		want   []string
	}{
		{"completed", opened(over(1), end(p.Completed)), []string{"user: go"}},
		{"failed", opened(over(1), end(p.Failed)), []string{"user: go"}},
		{"interrupted", opened(over(1), end(p.Interrupted)), []string{"user: go", tell(stopped)}},
		{
			"replaced", opened(over(1), end(p.Replaced)),
			[]string{"user: go", tell("The user stopped your previous turn on purpose after 1.5 s, to say something else.")},
		},
		{
			"crashed", opened(over(1), end(p.Crashed)),
			[]string{"user: go", tell("Your previous turn was interrupted because the program crashed or was killed, after at least 1.5 s.")},
		},
		{
			"in mid-sentence", opened(thought(1, 0, "t"), half(1, 1, "so far"), over(1), end(p.Interrupted)),
			[]string{"user: go", "assistant: so far", tell(stopped + "\nYour last message was cut off where it ends.")},
		},
		{
			"with calls", opened(call(1, 0), call(1, 1), call(1, 2), over(1), output(1, 0, "x"), aborted(1, 1, "cut"), aborted(1, 2, "not run"), end(p.Interrupted)),
			[]string{
				"user: go", "call 1.1.0 w0: sh", "call 1.1.1 w1: sh", "call 1.1.2 w2: sh",
				"output 1.1.0 w0: x", "output 1.1.1 w1: cut", "output 1.1.2 w2: not run",
				tell(stopped + cutCalls + "\n- sh {\"n\": 1}\n- sh {\"n\": 2}"),
			},
		},
		{
			"with a call and a cut message", opened(call(1, 0), half(1, 1, "and"), over(1), aborted(1, 0, "not run"), end(p.Crashed)),
			[]string{
				"user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: not run", "assistant: and",
				tell("Your previous turn was interrupted because the program crashed or was killed, after at least 1.5 s." + cutCalls +
					"\n- sh {\"n\": 0}\nYour last message was cut off where it ends."),
			},
		},
		{
			"what an earlier turn cut is not told again",
			opened(call(1, 0), half(1, 1, "and"), over(1), aborted(1, 0, "cut"), end(p.Failed), &p.TurnStarted{}, says(2, "more"), request(1), over(1), end(p.Interrupted)),
			[]string{"user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: cut", "assistant: and", "user: more", tell(stopped)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, build(tt.events...), append([]string{env}, tt.want...)...)
		})
	}
}

func TestLongCallsAreToldInShort(t *testing.T) {
	h := build(opened(
		&p.ToolCall{Call: id(1, 1, 0), Name: "sh", Arguments: "a\n\t b  " + strings.Repeat("é", 300)},
		over(1), aborted(1, 0, "cut"), end(p.Interrupted))...)
	got := lines(h.Items())
	want := "\n- sh a b " + strings.Repeat("é", 200-len("sh a b ")) + "…\n</turn_aborted>"
	if last := got[len(got)-1]; !strings.HasSuffix(last, want) {
		t.Errorf("got %s, want it to end with %s", last, want)
	}
}

// A response that broke off is asked for again: the model will say it again,
// and what it had said of it is not sent. If nobody asks again, it is.
func TestPartialTextAndRetries(t *testing.T) {
	broke := opened(half(1, 0, "so f"), over(1), &p.ModelRetry{Attempt: 1})
	for _, tt := range []struct {
		name   string
		events []p.Body
		want   []string
	}{
		{"asked again", []p.Body{request(2), said(2, 0, "so far"), over(2), end(p.Completed)}, []string{"user: go", "assistant: so far"}},
		{
			"asked again with one more message",
			[]p.Body{says(2, "also"), request(2), said(2, 0, "so far"), over(2), end(p.Completed)},
			[]string{"user: go", "user: also", "assistant: so far"},
		},
		{
			"stopped while waiting",
			[]p.Body{end(p.Interrupted)},
			[]string{
				"user: go", "assistant: so f",
				"user: <turn_aborted>\nThe user stopped your previous turn on purpose after 1.5 s.\nYour last message was cut off where it ends.\n</turn_aborted>",
			},
		},
		{"failed in the end", []p.Body{end(p.Failed)}, []string{"user: go", "assistant: so f"}},
		{
			"the end of the turn was lost",
			[]p.Body{&p.TurnStarted{}, says(2, "more"), request(1)},
			[]string{"user: go", "assistant: so f", "user: more"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, build(append(broke[:len(broke):len(broke)], tt.events...)...), append([]string{env}, tt.want...)...)
		})
	}
}

// What the failed response had finished stays, so that the model knows it.
func TestBrokenResponseWithCalls(t *testing.T) {
	expect(t, build(opened(said(1, 0, "first"), call(1, 1), half(1, 2, "so f"), over(1), aborted(1, 1, "broke off"), &p.ModelRetry{}, request(2))...),
		env, "user: go", "assistant: first", "call 1.1.1 w1: sh", "output 1.1.1 w1: broke off")
}

package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/history"
	p "github.com/fermata-agent/fermata/protocol"
)

// threeTurns is a conversation whose second turn was cut.
func threeTurns() []p.Body {
	return opened(call(1, 0), over(1), output(1, 0, "x"), request(2), said(2, 0, "one"), over(2), end(p.Completed),
		&p.Configured{Settings: p.Settings{Cwd: "/other"}},
		&p.TurnStarted{}, says(2, "second"), request(1), callIn(2, 1, 0), over(1),
		&p.ToolOutput{Call: id(2, 1, 0), Output: "cut", Aborted: true}, end(p.Interrupted),
		&p.TurnStarted{}, says(3, "third"), request(1), said(1, 0, "three"), over(1), end(p.Completed))
}

var (
	firstTurn  = []string{env, "user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: x", "assistant: one"}
	moved      = "user: <environment_context>\n  <cwd>/other</cwd>\n</environment_context>"
	secondTurn = []string{
		"user: second", "call 2.1.0 w0: sh", "output 2.1.0 w0: cut",
		"user: <turn_aborted>\nThe user stopped your previous turn on purpose after 1.5 s. These calls were interrupted or not run; " +
			"those that had started may have had effects, so check before you repeat them:\n- sh {\"n\": 0}\n</turn_aborted>",
	}
	thirdTurn = []string{"user: third", "assistant: three"}
)

func join(parts ...[]string) []string {
	var out []string
	for _, part := range parts {
		out = append(out, part...)
	}
	return out
}

// A revert takes turns out. What the model was told of its surroundings stays,
// because they are still so.
func TestRevert(t *testing.T) {
	for _, tt := range []struct {
		before p.TurnID
		want   []string
	}{
		{4, join(firstTurn, []string{moved}, secondTurn, thirdTurn)},
		{3, join(firstTurn, []string{moved}, secondTurn)},
		{2, join(firstTurn, []string{moved})},
		{1, []string{env, moved}},
	} {
		h := build(threeTurns()...)
		before := h.Items()
		was := views(before)
		h.Apply(p.Event{Body: &p.Reverted{Before: tt.before}})
		expect(t, h, tt.want...)
		h.Apply(p.Event{Turn: 4, Body: &p.TurnStarted{}})
		h.Apply(p.Event{Turn: 4, Body: says(4, "fourth")})
		expect(t, h, join(tt.want, []string{"user: fourth"})...)
		if diff := cmp.Diff(was, views(before)); diff != "" {
			t.Errorf("a prompt that was handed out changed:\n%s", diff)
		}
	}
}

func TestRevertForgetsWhatWasMissing(t *testing.T) {
	log := opened(call(1, 0), over(1), end(p.Failed), &p.TurnStarted{}, says(2, "more"), request(1), callIn(2, 1, 0), over(1), end(p.Failed))
	h := build(append(log, &p.Reverted{Before: 2})...)
	if diff := cmp.Diff([]p.CallID{id(1, 1, 0)}, h.Missing()); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	h.Apply(p.Event{Body: outputIn(2, 1, 0, "late")})
	expect(t, h, env, "user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: aborted")
}

// summary marks the message that stands for what was compacted.
const summary = "summary: "

func TestCompact(t *testing.T) {
	begin := &p.ConversationStarted{Settings: p.Settings{Cwd: "/w", UserInstructions: "Be brief."}}
	told := "user: <user_instructions>\n\nBe brief.\n\n</user_instructions>"
	log := append(append([]p.Body{begin}, threeTurns()[1:]...),
		&p.TurnStarted{Compact: true}, request(1), said(1, 0, "gist"), over(1), &p.Compacted{Summary: "gist"}, end(p.Completed))
	h := build(log...)
	expect(t, h, told, moved, summary+"gist") // with the surroundings as they are now
	if got := h.Compacted(); got != 4 {
		t.Errorf("compacted in turn %d, want 4", got)
	}

	// It goes on from there, and can be compacted again.
	for _, b := range []p.Body{&p.TurnStarted{}, says(5, "fifth"), request(1), said(1, 0, "five"), over(1), end(p.Completed)} {
		h.Apply(p.Event{Turn: 5, Body: b})
	}
	expect(t, h, told, moved, summary+"gist", "user: fifth", "assistant: five")
	h.Apply(p.Event{Turn: 6, Body: &p.Compacted{Summary: "gist of the gist"}})
	expect(t, h, told, moved, summary+"gist of the gist")
}

// In the middle of a turn, what the user said in it is still to be answered,
// and stays.
func TestCompactWithinATurn(t *testing.T) {
	h := build(append(threeTurns(), &p.TurnStarted{}, says(4, "fourth"), request(1), callIn(4, 1, 0), over(1), outputIn(4, 1, 0, "x"),
		says(5, "also"), &p.ModelRequested{Response: 2, Compact: true}, over(2), &p.Compacted{Summary: "gist"}, request(3))...)
	want := []string{moved, "user: fourth", summary + "gist", "user: also"} // the last is still to be answered
	expect(t, h, want...)
	for _, b := range []p.Body{callIn(4, 3, 0), over(3), outputIn(4, 3, 0, "y"), request(4), said(4, 0, "done"), over(4), end(p.Completed)} {
		h.Apply(p.Event{Turn: 4, Body: b})
	}
	want = append(want, "call 4.3.0 w0: sh", "output 4.3.0 w0: y", "assistant: done")
	expect(t, h, want...)
	expect(t, restore(t, save(t, h)), want...)
	h.Apply(p.Event{Turn: 5, Body: &p.Compacted{Summary: "more"}})
	expect(t, h, moved, summary+"more")
}

func TestCompactForgetsWhatWasMissing(t *testing.T) {
	h := build(opened(call(1, 0), over(1), request(2), call(2, 0), over(2), &p.Compacted{Summary: "s"})...)
	if got := h.Missing(); len(got) != 0 {
		t.Errorf("missing: %v", got)
	}
	h.Apply(p.Event{Turn: 1, Body: output(1, 0, "late")})
	h.Apply(p.Event{Turn: 1, Body: output(2, 0, "late")})
	expect(t, h, env, "user: go", summary+"s") // what the user said in the turn stays
}

func TestCompactBeforeTheBeginning(t *testing.T) {
	expect(t, build(&p.Compacted{Summary: "s"}), summary+"s")
}

// A prompt that was handed out can be kept and extended by its receiver.
func TestPromptsAreTheReceivers(t *testing.T) {
	h := build(opened()...)
	want := []string{env, "user: go"}
	for i := range 10 { // at every length, with room behind the last item or without
		text := fmt.Sprint("m", i)
		extended := append(h.Items(), &p.PromptItem{Kind: p.PromptUser, Content: p.Text("mine")})
		h.Apply(p.Event{Turn: 1, Body: said(1, i, text)})
		if diff := cmp.Diff(append(want[:len(want):len(want)], "user: mine"), lines(extended)); diff != "" {
			t.Errorf("what was handed out (-want +got):\n%s", diff)
		}
		want = append(want, "assistant: "+text)
		expect(t, h, want...)
	}
}

// Reading is not an event: it must not change what follows.
func TestReadingChangesNothing(t *testing.T) {
	logs := [][]p.Body{
		threeTurns(),
		opened(call(1, 0), thought(1, 1, "t"), half(1, 2, "so f"), over(1), aborted(1, 0, "broke"), &p.ModelRetry{}, request(2), said(2, 0, "m")),
		opened(call(1, 0), output(1, 0, "early"), thought(1, 1, "t"), call(1, 2), said(1, 3, "m"), over(1), output(1, 2, "x"), request(2)),
	}
	for _, rule := range promptRules {
		logs = append(logs, rule.events)
	}
	for _, log := range logs {
		var read history.History
		for _, e := range events(log...) {
			read.Apply(e)
			read.Items()
			read.Find("w0")
			read.Missing()
			read.Len()
		}
		if diff := cmp.Diff(lines(build(log...).Items()), lines(read.Items())); diff != "" {
			t.Errorf("not read, and read after every event (-want +got):\n%s", diff)
		}
	}
}

// A later prompt shares what it has in common with an earlier one, and asking
// for it costs nothing.
func TestItemsAreShared(t *testing.T) {
	h := build(opened()...)
	first := h.Items()
	h.Apply(p.Event{Turn: 1, Body: said(1, 0, "m")})
	second := h.Items()
	for i, it := range first {
		if second[i] != it {
			t.Errorf("item %d was made anew", i)
		}
	}
	if n := testing.AllocsPerRun(100, func() { h.Items() }); n != 0 {
		t.Errorf("asking for the prompt allocates %v times", n)
	}
}

func save(t testing.TB, h *history.History) []byte {
	t.Helper()
	data, err := h.Save()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func restore(t testing.TB, data []byte) *history.History {
	t.Helper()
	h, err := history.Restore(data)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// After Restore everything goes on as with the original, whatever is asked
// first: the items are decoded only then.
func TestSaveAndRestore(t *testing.T) {
	raw := p.Raw{Wire: "responses", JSON: []byte(`{"id":"m1"}`)}
	whole := append(threeTurns(),
		&p.TurnStarted{}, &p.UserMessage{Content: []p.Content{{Type: p.ContentImage, ImageURL: "data:,"}}}, request(1),
		&p.Reasoning{Item: id(4, 1, 0), Text: "t", Raw: raw}, &p.AssistantMessage{Item: id(4, 1, 1), Text: "m", Raw: raw},
		&p.ToolCall{Call: id(4, 1, 2), WireID: "w", Kind: p.CallCustom, Name: "patch", Arguments: "<a> & \u2028", Raw: raw}, over(1),
		&p.ToolOutput{Call: id(4, 1, 2), Output: "x", Content: p.Text("y")}, request(2), over(2), end(p.Completed))
	logs := map[string][]p.Body{
		"whole": whole, "empty": nil, "begun": {begin()},
		"configured": append(threeTurns(), &p.Configured{Settings: p.Settings{Cwd: "/third"}}),
		"compacted":  append(threeTurns(), &p.TurnStarted{Compact: true}, request(1), over(1), &p.Compacted{Summary: "s"}, end(p.Completed)),
		"reverted":   append(threeTurns(), &p.Reverted{Before: 2}),
	}
	next := func(h *history.History, b p.Body) { h.Apply(p.Event{Turn: 9, Body: b}) }
	uses := map[string]func(h *history.History) any{
		"items":   func(*history.History) any { return nil },
		"turns":   func(h *history.History) any { return h.Compacted() },
		"len":     func(h *history.History) any { return h.Len() },
		"missing": func(h *history.History) any { return len(h.Missing()) },
		"compact": func(h *history.History) any { next(h, &p.Compacted{Summary: "z"}); return h.Compacted() },
		"revert":  func(h *history.History) any { next(h, &p.Reverted{Before: 2}); return h.Compacted() },
		"turn":    func(h *history.History) any { next(h, &p.TurnStarted{}); return nil },
		"message": func(h *history.History) any { next(h, says(1, "z")); return nil },
		"output":  func(h *history.History) any { next(h, output(1, 0, "z")); return nil },
		"call":    func(h *history.History) any { next(h, callIn(9, 1, 0)); next(h, outputIn(9, 1, 0, "z")); return nil },
		"said":    func(h *history.History) any { next(h, thought(1, 0, "z")); next(h, said(1, 1, "z")); return nil },
		"cut":     func(h *history.History) any { next(h, end(p.Interrupted)); return nil },
		"find":    func(h *history.History) any { id, answered, ok := h.Find("w0"); return []any{id, answered, ok} },
		"settings": func(h *history.History) any {
			next(h, &p.Configured{Settings: p.Settings{Cwd: "/9"}})
			next(h, &p.TurnStarted{})
			return nil
		},
		"begin": func(h *history.History) any { next(h, begin()); return nil },
	}
	for logName, log := range logs {
		data := save(t, build(log...))
		for useName, use := range uses {
			original, restored := build(log...), restore(t, data)
			if diff := cmp.Diff(use(original), use(restored)); diff != "" {
				t.Errorf("%s, %s: answers differ (-want +got):\n%s", logName, useName, diff)
			}
			if diff := cmp.Diff(views(original.Items()), views(restored.Items())); diff != "" {
				t.Errorf("%s, %s: prompts differ (-want +got):\n%s", logName, useName, diff)
			}
			// And the same again after a second time.
			twice := restore(t, save(t, restore(t, data)))
			use(twice)
			if diff := cmp.Diff(views(original.Items()), views(twice.Items())); diff != "" {
				t.Errorf("%s, %s: restored twice, prompts differ (-want +got):\n%s", logName, useName, diff)
			}
		}
	}
}

func TestRestoreOfNonsense(t *testing.T) {
	for _, bad := range []string{"", "{", `{}`, "{\n[]", `{"lead":"x"}` + "\n[]"} {
		if h, err := history.Restore([]byte(bad)); err == nil {
			t.Errorf("%q: restored %v", bad, h)
		} else if !strings.Contains(err.Error(), "restore history") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, odd := range []string{"{}\n", "{}\nnull", `{"lead":7}` + "\n[]"} {
		h := restore(t, []byte(odd))
		h.Apply(p.Event{Turn: 1, Body: &p.Compacted{Summary: "s"}})
		expect(t, h, summary+"s")
	}
}

// What cannot be written is an error, not half a checkpoint.
func TestSaveOfWhatCannotBeWritten(t *testing.T) {
	h := build(opened(&p.AssistantMessage{Item: id(1, 1, 0), Raw: p.Raw{JSON: []byte("{")}})...)
	if data, err := h.Save(); err == nil {
		t.Errorf("saved as %s", data)
	}
}

// Three things survive a compaction whatever the summary says: which files were changed, with how many lines, the plan, and the latest outputs, as
// far as they fit. A second compaction adds up what was changed.
func TestWhatSurvivesACompaction(t *testing.T) {
	patched := func(n int, diff string) p.Body {
		return &p.ToolOutput{Call: id(1, 1, n), Output: "Success", Patch: &p.PatchResult{Applied: true, Diff: diff}}
	}
	const first = "--- a/dir/one.go\n+++ b/dir/one.go\n@@ -1,3 +1,4 @@\n a\n-b\n+c\n+--- d\n e\n--- /dev/null\n+++ b/two.go\n@@ -0,0 +1,2 @@\n+x\n++++ y\n"
	const second = "--- a/dir/one.go\n+++ b/dir/one.go\n@@ -1 +1 @@\n-a\n+b\n--- a/gone.go\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n"
	long := "begin " + strings.Repeat("0123456789", 1000) + " FAIL: TestParser expected 7"
	h := build(opened(call(1, 0), call(1, 1), call(1, 2), over(1), patched(0, first), patched(1, second), output(1, 2, long),
		&p.PlanUpdated{Plan: []p.PlanStep{{Step: "mend the parser", Status: "in_progress"}}},
		&p.ModelRequested{Response: 2, Compact: true}, over(2), &p.Compacted{Summary: "I forgot", Keep: 5000}, request(3))...)
	text := ""
	for _, it := range h.Items() {
		text += p.PlainText(it.Content) + "\n"
	}
	for _, want := range []string{
		"- dir/one.go (+3 −2)", "- two.go (+2 −0)", "- gone.go (+0 −2)", "[in_progress] mend the parser", "begin 0123", "FAIL: TestParser expected 7", "search_history", "I forgot",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if n := len(text); n > 12_000 {
		t.Errorf("%d bytes are left", n)
	}
	apply(h, &p.Compacted{Summary: "again", Keep: 5000})
	again := ""
	for _, it := range h.Items() {
		again += p.PlainText(it.Content) + "\n"
	}
	if !strings.Contains(again, "- dir/one.go (+3 −2)") || strings.Contains(again, "I forgot") {
		t.Errorf("after the second compaction:\n%s", again)
	}
}

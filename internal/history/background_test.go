package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/history"
	p "github.com/fermata-agent/fermata/protocol"
)

const ranMyself = "user: I ran this command myself:\n$ ls -l\n"

// typed is a turn that runs a command of the user's own, up to its output.
func typed(turn int) []p.Body {
	return []p.Body{
		&p.TurnStarted{Shell: true},
		&p.UserMessage{Item: id(turn, 0, 0), Input: p.InputID(turn), Content: p.Text("!ls -l")},
		&p.ToolCall{Call: id(turn, 0, 1), WireID: "user", Kind: p.CallFunction, Name: "user_shell", Arguments: `{"command":"ls -l"}`},
		&p.CallStarted{Call: id(turn, 0, 1), Grant: p.Approved},
	}
}

func typedOutput(turn int, out p.ToolOutput) p.Body {
	out.Call = id(turn, 0, 1)
	return &out
}

// What the model is told of a command that the user ran, however it ended.
func TestUsersOwnCommand(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, tt := range map[string]struct {
		out  p.ToolOutput
		end  p.EndReason
		want string
	}{
		"done": {
			p.ToolOutput{Output: "{json}", Command: &p.CommandResult{Output: "a b\n", Elapsed: 1500 * time.Millisecond}},
			p.Completed, "Exit code 0 after 1.5 s. Output:\na b\n",
		},
		"failed": {
			p.ToolOutput{Output: "{json}", Failed: true, Command: &p.CommandResult{ExitCode: 7, Output: "no\n"}},
			p.Completed, "Exit code 7 after 0.0 s. Output:\nno\n",
		},
		"signalled": {
			p.ToolOutput{Output: "{json}", Failed: true, Command: &p.CommandResult{ExitCode: -1, Signal: "SIGSEGV", Output: "oh\n", Elapsed: time.Second}},
			p.Completed, "It was ended by SIGSEGV after 1.0 s. Output:\noh\n",
		},
		"aborted": {
			p.ToolOutput{
				Output: "aborted after 2.0 s: the user stopped the turn while this ran. Output until then:\nhalf", Aborted: true, Failed: true,
				Command: &p.CommandResult{ExitCode: -1, Signal: "SIGTERM", Output: "half"},
			},
			p.Interrupted, "aborted after 2.0 s: the user stopped the turn while this ran. Output until then:\nhalf",
		},
		"crashed": {
			p.ToolOutput{Output: "aborted after 2.0 s: the program was killed while this ran.", Aborted: true, Failed: true},
			p.Crashed, "aborted after 2.0 s: the program was killed while this ran.",
		},
		"not started": {p.ToolOutput{Output: "failed to start the command: no bash", Failed: true}, p.Completed, "failed to start the command: no bash"},
		"long":        {p.ToolOutput{Command: &p.CommandResult{Output: long}}, p.Completed, "Exit code 0 after 0.0 s. Output:\n" + p.Shorten(long)},
	} {
		t.Run(name, func(t *testing.T) {
			h := build(append(append([]p.Body{begin()}, typed(1)...), typedOutput(1, tt.out), end(tt.end),
				&p.TurnStarted{}, says(2, "and?"), request(1))...)
			expect(t, h, env, ranMyself+tt.want, "user: and?")
			if got := h.Missing(); len(got) > 0 {
				t.Errorf("missing: %v", got)
			}
			if _, _, ok := h.Find("user"); ok {
				t.Error("its call can be found, as if the model had made it")
			}
		})
	}
}

// A damaged record costs what it held, and nothing else.
func TestUsersOwnCommandDamaged(t *testing.T) {
	done := typedOutput(1, p.ToolOutput{Command: &p.CommandResult{Output: "a\n"}})
	told := ranMyself + "Exit code 0 after 0.0 s. Output:\na\n"
	for name, tt := range map[string]struct {
		lost p.Body
		want []string
	}{
		"the message": {&p.UserMessage{}, []string{env, told, "user: and?"}},
		"the call":    {&p.ToolCall{}, []string{env, told, "user: and?"}},
		"the start":   {&p.TurnStarted{}, []string{env, "user: !ls -l", told, "user: and?"}},
		"the output":  {&p.ToolOutput{}, []string{env, ranMyself + "What came of it is not known.", "user: and?"}},
		"the end":     {&p.TurnEnded{}, []string{env, told, "user: and?"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log []p.Body
			for _, b := range append(append([]p.Body{begin()}, typed(1)...), done, end(p.Completed)) {
				if p.Kind(b) == p.Kind(tt.lost) {
					b = &p.Damaged{}
				}
				log = append(log, b)
			}
			expect(t, build(append(log, &p.TurnStarted{}, says(2, "and?"), request(1))...), tt.want...)
		})
	}
}

// A message that was steered in makes the turn one of the model's.
func TestUsersOwnCommandWithAQuestion(t *testing.T) {
	log := append([]p.Body{begin()}, typed(1)...)
	log = append(log, typedOutput(1, p.ToolOutput{Command: &p.CommandResult{Output: "a\n"}}),
		&p.UserMessage{Item: id(1, 0, 2), Input: 2, Content: p.Text("why a?")}, request(1), half(1, 0, "Becau"), over(1), end(p.Interrupted))
	expect(t, build(log...), env, ranMyself+"Exit code 0 after 0.0 s. Output:\na\n", "user: why a?", "assistant: Becau",
		"user: <turn_aborted>\nThe user stopped your previous turn on purpose after 1.5 s.\nYour last message was cut off where it ends.\n</turn_aborted>")
}

func TestUsersOwnCommandIsRevertedAndCompacted(t *testing.T) {
	log := opened(said(1, 0, "one"), over(1), end(p.Completed))
	log = append(append(log, typed(2)...), typedOutput(2, p.ToolOutput{Output: "x"}), end(p.Completed))
	h := build(log...)
	expect(t, h, env, "user: go", "assistant: one", ranMyself+"x")
	again := restore(t, save(t, h))
	expect(t, again, lines(h.Items())...)
	h.Apply(p.Event{Body: &p.Reverted{Before: 2}})
	expect(t, h, env, "user: go", "assistant: one")

	again.Apply(p.Event{Turn: 3, Body: &p.TurnStarted{Compact: true}})
	again.Apply(p.Event{Turn: 3, Body: &p.Compacted{Summary: "gist"}})
	expect(t, again, env, summary+"gist")
}

func keeps(n int, command ...string) p.Body {
	return &p.BackgroundStarted{ID: p.BackgroundID(n), Call: id(1, 1, 0), Command: command}
}

func stops(n int, reason p.EndReason) p.Body {
	return &p.BackgroundEnded{ID: p.BackgroundID(n), Reason: reason}
}

const lostAll = "user: <environment_context>\n  These background commands have ended:" +
	"\n  - session 1: npm run dev (stopped)\n  - session 2: true (exit code 0)\n  - session 3: tail -f log (ended when the program was killed)\n</environment_context>"

// lostThree is a turn that left three commands behind, which have ended since.
func lostThree() []p.Body {
	return opened(call(1, 0), over(1), keeps(1, "npm", "run", "dev"), keeps(2, "true"), keeps(3, "tail", "-f", "log"),
		output(1, 0, "x"), request(2), said(2, 0, "one"), over(2), end(p.Completed),
		stops(1, p.Interrupted), stops(2, p.Completed), stops(3, p.Crashed))
}

// next is a turn in which the model only speaks.
func next(turn int) []p.Event {
	var out []p.Event
	for _, b := range []p.Body{
		&p.TurnStarted{}, says(turn, "next"), request(1),
		&p.AssistantMessage{Item: id(turn, 1, 0), Text: "yes"}, over(1), end(p.Completed),
	} {
		out = append(out, p.Event{Turn: p.TurnID(turn), Body: b})
	}
	return out
}

func applyAll(h *history.History, events []p.Event) {
	for _, e := range events {
		h.Apply(e)
	}
}

func TestLostBackgroundIsToldOnce(t *testing.T) {
	first := []string{env, "user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: x", "assistant: one"}
	h := build(lostThree()...)
	expect(t, h, first...) // not before the next turn
	want := append(first, lostAll, "user: next", "assistant: yes")
	applyAll(h, next(2))
	expect(t, h, want...)
	applyAll(h, next(3))
	expect(t, h, append(want, "user: next", "assistant: yes")...)
	h.Apply(p.Event{Body: stops(1, p.Crashed)}) // not a second time, and not one that is unknown
	h.Apply(p.Event{Body: stops(9, p.Crashed)})
	applyAll(h, next(4))
	expect(t, h, append(want, "user: next", "assistant: yes", "user: next", "assistant: yes")...)
}

// What is still to be told is in a checkpoint.
func TestLostBackgroundAndCheckpoint(t *testing.T) {
	h := build(lostThree()...)
	again := restore(t, save(t, h))
	again = restore(t, save(t, again)) // also one that was not decoded
	applyAll(h, next(2))
	applyAll(again, next(2))
	if d := cmp.Diff(lines(h.Items()), lines(again.Items())); d != "" {
		t.Errorf("restored (-want +got):\n%s", d)
	}
	expect(t, restore(t, save(t, again)), lines(h.Items())...)
	applyAll(again, next(3))
	if n := strings.Count(strings.Join(lines(again.Items()), "\n"), "session 1"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// It is so whatever becomes of the turns: a revert keeps it.
func TestLostBackgroundAndRevert(t *testing.T) {
	h := build(lostThree()...)
	applyAll(h, next(2))
	h.Apply(p.Event{Body: &p.Reverted{Before: 1}})
	expect(t, h, env, lostAll)

	h = build(append(lostThree(), &p.Reverted{Before: 1})...) // before it was told
	applyAll(h, next(2))
	expect(t, h, env, lostAll, "user: next", "assistant: yes")
}

func TestLostBackgroundAndCompaction(t *testing.T) {
	h := build(lostThree()...)
	h.Apply(p.Event{Turn: 2, Body: &p.TurnStarted{Compact: true}})
	if got := lines(h.Items()); got[len(got)-1] != lostAll {
		t.Errorf("what is summed up ends with %q", got[len(got)-1])
	}
	h.Apply(p.Event{Turn: 2, Body: &p.Compacted{Summary: "gist"}})
	expect(t, h, env, summary+"gist")
}

// The user's own command is a turn as well: what was lost stands before it.
func TestLostBackgroundBeforeAUsersOwnCommand(t *testing.T) {
	log := append(append(lostThree(), typed(2)...), typedOutput(2, p.ToolOutput{Output: "x"}), end(p.Completed))
	expect(t, build(log...), env, "user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: x", "assistant: one", lostAll, ranMyself+"x")
}

// What is known of a turn whose end was lost is not told of the next one.
func TestNothingIsToldOfTheWrongTurn(t *testing.T) {
	log := append([]p.Body{begin()}, typed(1)...)
	log = append(log, &p.Damaged{}, &p.TurnStarted{}, says(2, "and?"), request(1), over(1), end(p.Completed))
	expect(t, build(log...), env, "user: and?")

	log = opened(call(1, 0), over(1), aborted(1, 0, "cut"), &p.Damaged{}, &p.TurnStarted{}, says(2, "and?"), request(1), over(1), end(p.Interrupted))
	expect(t, build(log...), env, "user: go", "call 1.1.0 w0: sh", "output 1.1.0 w0: cut", "user: and?",
		"user: <turn_aborted>\nThe user stopped your previous turn on purpose after 1.5 s.\n</turn_aborted>")
}

// A compaction drops what said that they run.
func TestRunningBackgroundAfterACompaction(t *testing.T) {
	log := opened(call(1, 0), over(1), keeps(1, "npm", "run", "dev"), keeps(2, "true"), output(1, 0, "x"), request(2), said(2, 0, "one"), over(2),
		end(p.Completed), stops(2, p.Completed))
	h := build(log...)
	h.Apply(p.Event{Turn: 2, Body: &p.TurnStarted{Compact: true}})
	h.Apply(p.Event{Turn: 2, Body: &p.Compacted{Summary: "gist"}})
	got := strings.Join(lines(h.Items()), "\n")
	if !strings.Contains(got, "These background commands are running:\n  - session 1: npm run dev") || strings.Contains(got, "session 2") {
		t.Errorf("got %s", got)
	}
}

package exec

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// said is a conversation in which the user asks and the model is stopped in mid-sentence.
func said() []p.Event {
	item := p.ItemID{Turn: 1, Response: 1, Index: 1}
	return events(
		&p.TurnStarted{},
		&p.UserMessage{Item: p.ItemID{Turn: 1}, Content: p.Text("go\non\n")},
		&p.Delta{Item: item, Kind: p.DeltaMessage, Text: "half"},
		&p.AssistantMessage{Item: item, Text: "half", Partial: true},
		&p.TurnEnded{Reason: p.Interrupted},
	)
}

func events(bodies ...p.Body) []p.Event {
	var list []p.Event
	for i, b := range bodies {
		list = append(list, p.Event{Seq: p.Seq(i + 1), Turn: 1, Body: b})
	}
	return list
}

// Whoever looks on sees what the user said and how the turn ended. Words are shown
// as they come on a terminal, else when there are no more.
func TestFollow(t *testing.T) {
	const all = "> go\n> on\nhalf […partial]\n· interrupted after 0 ms · reply kept\n"
	for terminal, soFar := range map[bool]string{true: "> go\n> on\nhalf", false: "> go\n> on\n"} {
		var out bytes.Buffer
		draw := Follow(Output{Out: &out, OutTerminal: terminal})
		for i, e := range said() {
			if err := draw(e); err != nil {
				t.Fatal(err)
			}
			if i == 2 && out.String() != soFar {
				t.Errorf("terminal %t: shown in mid-sentence: %q, want %q", terminal, out.String(), soFar)
			}
			if i == 3 && out.String() != "> go\n> on\nhalf […partial]\n" {
				t.Errorf("terminal %t: shown before the end: %q", terminal, out.String())
			}
		}
		if out.String() != all {
			t.Errorf("terminal %t: %q, want %q", terminal, out.String(), all)
		}
	}
}

type fullDisk struct{}

var errFull = errors.New("no space left")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestFollowTellsOfAWriteThatFailed(t *testing.T) {
	draw := Follow(Output{Out: fullDisk{}})
	events := said()
	if err := draw(events[0]); err != nil {
		t.Errorf("nothing was written: %v", err)
	}
	if err := draw(events[1]); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

// Show draws what the model said by Options.Markdown, in the width of the terminal, and leaves
// what the user said alone.
func TestShowDrawsMarkdown(t *testing.T) {
	var tr transcript.Transcript
	for _, e := range said() {
		tr.Apply(e)
	}
	for _, c := range []struct {
		name, want string
		markdown   func(string, int) []string
	}{
		{"as it was written", "\n> go\n> on\n\nhalf […partial]\n\n· interrupted after 0 ms · reply kept\n", nil},
		{"drawn", "\n> go\n> on\n\nhalf\n33 […partial]\n\n· interrupted after 0 ms · reply kept\n", func(s string, width int) []string { return []string{s, fmt.Sprint(width)} }},
	} {
		var out bytes.Buffer
		if err := Show(Output{Out: &out, Width: func() int { return 33 }, Markdown: c.markdown}, "", &tr); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", c.name, out.String(), c.want)
		}
	}
}

// A call that was refused before it could begin is shown in the form that it would have had.
func TestRefusedCallsLookLikeOthers(t *testing.T) {
	command, patched := p.ItemID{Turn: 1, Response: 1, Index: 1}, p.ItemID{Turn: 1, Response: 1, Index: 2}
	refused := events(
		&p.TurnStarted{},
		&p.ToolCall{Call: command, Name: "exec_command", Arguments: `{"cmd":"rm x","yield_time_ms":1}`},
		&p.ToolOutput{Call: command, Output: "a rule forbids it", Failed: true},
		&p.ToolCall{Call: patched, Name: "apply_patch", Arguments: "*** Begin Patch\n*** Update File: a\n@@\n"},
		&p.ToolOutput{Call: patched, Output: "no such file\nNothing was applied.", Failed: true},
	)
	var out, shown bytes.Buffer
	var tr transcript.Transcript
	draw := Follow(Output{Out: &out})
	for _, e := range refused {
		tr.Apply(e)
		if err := draw(e); err != nil {
			t.Fatal(err)
		}
	}
	if want := "$ rm x\n  (failed: a rule forbids it, 0 ms)\n$ apply_patch update a\n  (failed: no such file, 0 ms)\n"; out.String() != want {
		t.Errorf("followed: %q, want %q", out.String(), want)
	}
	if err := Show(Output{Out: &shown}, "", &tr); err != nil {
		t.Fatal(err)
	}
	const want = "\n$ rm x\n  a rule forbids it\n  (failed, 0 ms)\n" +
		"\n$ apply_patch update a\n  no such file\n  Nothing was applied.\n  (failed, 0 ms)\n\nturn 1 has not ended\n"
	if shown.String() != want {
		t.Errorf("shown: %q, want %q", shown.String(), want)
	}
}

// Why a patch failed is printed once, and whole, where nothing is left out.
func TestShowSaysOnceWhyAPatchFailed(t *testing.T) {
	call := p.ItemID{Turn: 1, Response: 1, Index: 1}
	var tr transcript.Transcript
	for _, e := range events(
		&p.ToolCall{Call: call, Name: "write", Arguments: `{}`}, &p.PatchStarted{Patch: "p", Call: call, Cwd: "/w", Changes: changes},
		&p.ToolOutput{Call: call, Output: "no room\nNothing was applied.", Failed: true, Patch: &p.PatchResult{}},
	) {
		tr.Apply(e)
	}
	var out bytes.Buffer
	if err := Show(Output{Out: &out}, "", &tr); err != nil {
		t.Fatal(err)
	}
	if want := "\n$ apply_patch\n  M a.go (+1 -1)\n  D b\n  no room\n  Nothing was applied.\n  (failed, 0 ms)\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

// show is the transcript as text, one line for each item.
func show(t *Transcript) string {
	var b strings.Builder
	for _, it := range t.Items {
		fmt.Fprintf(&b, "%s %s", it.Kind, it.Status)
		for _, s := range []string{it.Text, it.CommandLine(), it.Output} {
			if s != "" {
				fmt.Fprintf(&b, " | %s", s)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func fold(bodies ...p.Body) *Transcript {
	var t Transcript
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for i, b := range bodies {
		e := p.Event{Seq: p.Seq(i + 1), Time: at.Add(time.Duration(i) * time.Second), Turn: 1, Body: b}
		if _, ok := b.(*p.Delta); ok {
			e.Seq, e.Time = 0, time.Time{}
		}
		t.Apply(e)
	}
	return &t
}

var call = p.CallID{Turn: 1, Response: 1, Index: 1}

func started() []p.Body {
	return []p.Body{
		&p.TurnStarted{}, &p.UserMessage{Item: p.ItemID{Turn: 1}, Input: 1, Content: p.Text("go")}, &p.ModelRequested{Response: 1},
		&p.ToolCall{Call: call, Name: "shell"}, &p.ModelEnded{Response: 1}, &p.CallStarted{Call: call},
		&p.CommandStarted{Call: call, Command: []string{"bash", "-lc", "sleep 9"}},
	}
}

var message = p.ItemID{Turn: 1, Response: 1}

var itemTests = map[string]struct {
	events []p.Body
	want   string
}{
	"stopped while a command asks to run again": {
		append(
			started(), &p.ApprovalRequested{Call: call, Tried: &p.CommandResult{ExitCode: 1}}, &p.StopRequested{Reason: p.Interrupted},
			&p.ApprovalResolved{Call: call, Decision: p.Cancelled}, &p.ToolOutput{Call: call, Aborted: true, Command: &p.CommandResult{ExitCode: 1, Output: "no\n"}},
			&p.TurnEnded{Reason: p.Interrupted},
		),
		"user done | go\ncall interrupted | sleep 9 | no\n\nend done | interrupted after 0 ms\n",
	},
	"message grows, then is whole": {
		[]p.Body{
			&p.Delta{Item: message, Kind: p.DeltaMessage, Text: "he"}, &p.Delta{Item: message, Kind: p.DeltaMessage, Offset: 2, Text: "llo"},
			&p.Delta{Item: message, Kind: p.DeltaMessage, Offset: 0, Text: "he"}, // again: not added
		},
		"message open | hello\n",
	},
	"finished message wins over its deltas": {
		[]p.Body{&p.Delta{Item: message, Kind: p.DeltaMessage, Text: "he"}, &p.AssistantMessage{Item: message, Text: "hello"}},
		"message done | hello\n",
	},
	"cut message": {
		[]p.Body{&p.AssistantMessage{Item: message, Text: "hel", Partial: true}},
		"message interrupted | hel\n",
	},
	"a summary is announced": {
		[]p.Body{
			&p.TurnStarted{Compact: true}, &p.ModelRequested{Response: 1}, &p.AssistantMessage{Item: message, Text: "in short", Partial: true},
			&p.TurnEnded{Reason: p.Interrupted}, &p.TurnStarted{}, &p.ModelRequested{Response: 1, Compact: true},
		},
		"notice done | summarising the conversation so far for the model…\nmessage interrupted | in short\nend done | interrupted after 0 ms · reply kept\n" +
			"notice done | summarising the conversation so far for the model…\n",
	},
	"command runs": {
		append(started(), &p.Delta{Item: call, Kind: p.DeltaStdout, Text: "1\n"}),
		"user done | go\ncall open | sleep 9 | 1\n\n",
	},
	"command cut": {
		append(started(), &p.Delta{Item: call, Kind: p.DeltaStdout, Text: "1\n"}, &p.StopRequested{Reason: p.Interrupted},
			&p.ToolOutput{Call: call, Aborted: true, Failed: true, Output: "aborted", Command: &p.CommandResult{Output: "1\n", Killed: 3}},
			&p.AssistantMessage{Item: p.ItemID{Turn: 1, Response: 2}, Text: "I", Partial: true},
			&p.TurnEnded{Reason: p.Interrupted, Elapsed: 3200 * time.Millisecond}),
		"user done | go\ncall interrupted | sleep 9 | 1\n\nmessage interrupted | I\nend done | interrupted after 3.2 s · 1 command, 3 processes killed · reply kept\n",
	},
	"command fails": {
		append(started(), &p.ToolOutput{Call: call, Output: "{}", Command: &p.CommandResult{ExitCode: 2, Output: "no"}}),
		"user done | go\ncall failed | sleep 9 | no\n",
	},
	"declined": {
		[]p.Body{
			&p.ToolCall{Call: call, Name: "shell"}, &p.ApprovalRequested{Call: call}, &p.ApprovalResolved{Call: call, Decision: p.Denied},
			&p.ToolOutput{Call: call, Output: "rejected", Failed: true},
		},
		"call declined | rejected\n",
	},
	"asking": {
		[]p.Body{&p.ToolCall{Call: call, Name: "shell"}, &p.CallStarted{Call: call}, &p.ApprovalRequested{Call: call}},
		"call asking\n",
	},
	"failed turn tells why and what to do": {
		[]p.Body{&p.TurnStarted{}, &p.TurnEnded{Reason: p.Failed, Error: &p.Error{Message: "no credit left", Hint: "add some"}}},
		"end done | failed after 0 ms: no credit left · add some\n",
	},
	"completed turn needs no line": {[]p.Body{&p.TurnStarted{}, &p.TurnEnded{Reason: p.Completed}}, ""},
	"retry, notice, plan, revert, compaction, damage": {
		[]p.Body{
			&p.ModelRetry{Attempt: 1, Max: 5, Wait: 200 * time.Millisecond, Reason: "broke"}, &p.Notice{Text: "note"},
			&p.PlanUpdated{Call: call, Explanation: "why", Plan: []p.PlanStep{{Step: "a", Status: "pending"}}},
			&p.Reverted{Before: 2}, &p.Compacted{}, &p.Damaged{File: "x.damaged"},
		},
		"retry open | retry 1 of 5 in 0.2 s: broke\nnotice done | note\nplan done | why\n" +
			"notice done | turn 2 and later turns were reverted\nnotice done | the conversation so far was summarised for the model\n" +
			"notice done | a record could not be read; its bytes are in x.damaged\n",
	},
	"a new turn never writes into a cut item": {
		[]p.Body{
			&p.AssistantMessage{Item: message, Text: "hel", Partial: true},
			&p.Delta{Item: message, Kind: p.DeltaMessage, Offset: 3, Text: "lo"},
		},
		"message interrupted | hel\n",
	},
}

func TestItems(t *testing.T) {
	for name, tt := range itemTests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, show(fold(tt.events...))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestWaitingAndReturnedMessages(t *testing.T) {
	tr := fold(&p.TurnStarted{},
		&p.InputAccepted{Input: 2, Mode: p.Queue, Content: p.Text("two")}, &p.InputAccepted{Input: 3, Mode: p.Queue, Content: p.Text("three")},
		&p.InputEdited{Input: 2, Content: p.Text("two!")})
	if len(tr.Inputs) != 2 || p.PlainText(tr.Inputs[0].Content) != "two!" || !tr.Active {
		t.Errorf("waiting: %+v", tr.Inputs)
	}
	tr.Apply(p.Event{Turn: 1, Body: &p.UserMessage{Input: 2, Content: p.Text("two!")}})
	tr.Apply(p.Event{Turn: 1, Body: &p.StopRequested{Reason: p.Interrupted}})
	if !tr.Stopping {
		t.Error("not stopping")
	}
	tr.Apply(p.Event{Turn: 1, Body: &p.InputReturned{Inputs: []p.ReturnedInput{{Input: 3, Content: p.Text("three")}}}})
	tr.Apply(p.Event{Turn: 1, Body: &p.TurnEnded{Reason: p.Interrupted}})
	if len(tr.Inputs) != 0 || len(tr.Returned) != 1 || tr.Active || tr.Stopping {
		t.Errorf("after the stop: waiting %+v, returned %+v", tr.Inputs, tr.Returned)
	}
}

func TestCommandLine(t *testing.T) {
	for want, argv := range map[string][]string{
		"echo hi; ls":         {"bash", "-lc", "echo hi; ls"},
		"echo hi":             {"/usr/bin/zsh", "-c", "echo hi"},
		"/tmp/bash -c ls":     {"/tmp/bash", "-c", "ls"},
		"./sh -c ls":          {"./sh", "-c", "ls"},
		"evil -c ls":          {"evil", "-c", "ls"},
		"git commit -m 'a b'": {"git", "commit", "-m", "a b"},
		`echo 'it'\''s' ''`:   {"echo", "it's", ""},
	} {
		if got := (&Item{Command: argv}).CommandLine(); got != want {
			t.Errorf("%q: got %q, want %q", argv, got, want)
		}
	}
}

// A command line is one that a shell would take apart in the same way.
func TestQuote(t *testing.T) {
	for want, argv := range map[string][]string{
		`/bin/bash -lc 'go test ./...'`:   {"/bin/bash", "-lc", "go test ./..."},
		`bash -lc ls`:                     {"bash", "-lc", "ls"},
		`echo '' 'it'\''s' a=b,c:d@e%f+g`: {"echo", "", "it's", "a=b,c:d@e%f+g"},
		`printf 'a^b' 'ä' '!'`:            {"printf", "a^b", "ä", "!"},
	} {
		if got := Quote(argv); got != want {
			t.Errorf("%q: %s, want %s", argv, got, want)
		}
	}
}

func TestGapInOutput(t *testing.T) {
	tr := fold(append(started(),
		&p.Delta{Item: call, Kind: p.DeltaStdout, Text: "head"}, &p.Delta{Item: call, Kind: p.DeltaStderr, Offset: 1000, Text: "tail"})...)
	it := tr.Items[len(tr.Items)-1]
	if it.Output != "headtail" || it.Omitted != 996 {
		t.Errorf("output %q, omitted %d", it.Output, it.Omitted)
	}
}

func BenchmarkDelta(b *testing.B) {
	for _, n := range []int{10, 10000} {
		b.Run(fmt.Sprint(n, " items"), func(b *testing.B) {
			tr := &Transcript{}
			for i := range n {
				tr.Apply(p.Event{Seq: p.Seq(i), Body: &p.Notice{Text: "x"}})
			}
			i := 0
			for b.Loop() {
				item := p.ItemID{Turn: 1, Response: 1 + i/100, Index: 0} // a message of a hundred pieces
				tr.Apply(p.Event{Turn: 1, Body: &p.Delta{Item: item, Kind: p.DeltaMessage, Offset: int64(i%100) * 5, Text: "word "}})
				i++
			}
		})
	}
}

// A copy of a conversation is written at once: how long a call took is what was
// recorded, not what the times of the events say.
func TestElapsedOfACopy(t *testing.T) {
	var tr Transcript
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for i, b := range append(started(), &p.ToolOutput{Call: call, Elapsed: 9 * time.Second, Command: &p.CommandResult{}}) {
		tr.Apply(p.Event{Seq: p.Seq(i + 1), Time: now, Turn: 1, Body: b})
	}
	if got := tr.Items[1].Elapsed(now); got != "9.0 s" {
		t.Errorf("%q took %s", tr.Items[1].CommandLine(), got)
	}
}

func TestImages(t *testing.T) {
	picture := []p.Content{{Type: p.ContentText, Text: "see"}, {Type: p.ContentImage, ImageURL: "data:image/png;base64,AA=="}}
	tr := fold(&p.TurnStarted{}, &p.UserMessage{Item: p.ItemID{Turn: 1}, Input: 1, Content: picture},
		&p.ToolCall{Call: call, Name: "view_image"}, &p.ToolOutput{Call: call, Output: "ok", Content: picture[1:]})
	for _, it := range tr.Items {
		if d := cmp.Diff([]string{"data:image/png;base64,AA=="}, it.Images); d != "" {
			t.Errorf("images of %s (-want +got):\n%s", it.Kind, d)
		}
	}
}

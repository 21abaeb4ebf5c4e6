package updates

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

func newFold(o Options) *Fold {
	o.Own = func(string) bool { return false }
	o.Changed = func(p.Settings) []any { return nil }
	o.Window = func(p.Settings) int64 { return 0 }
	o.Cost = func(p.Settings, p.Usage) (float64, bool) { return 0, false }
	f := New(o)
	f.Apply(p.Event{Seq: 1, Body: &p.ConversationStarted{Settings: p.Settings{Cwd: "/w"}}})
	return f
}

// play applies events of turn 1 and returns the updates as JSON, one line each.
func play(f *Fold, bodies ...p.Body) (lines []string) {
	for _, b := range bodies {
		seq := f.Seq + 1
		if _, ok := b.(*p.Delta); ok {
			seq = 0
		}
		for _, u := range f.Apply(p.Event{Seq: seq, Turn: 1, Time: time.Unix(0, 0), Body: b}) {
			switch u.(type) {
			case Delivered, Ended, Resolved, wire.InfoChanged:
				continue
			}
			text, _ := json.Marshal(u)
			lines = append(lines, string(text))
		}
	}
	return lines
}

var call = p.CallID{Turn: 1, Response: 1}

// A character that comes in two pieces is sent when it is whole.
func TestWholeCharacters(t *testing.T) {
	f := newFold(Options{})
	f.Live()
	item := p.ItemID{Turn: 1, Response: 1}
	got := play(f, &p.TurnStarted{}, &p.Delta{Item: item, Kind: p.DeltaMessage, Text: "a\xe2\x82"}, &p.Delta{Item: item, Kind: p.DeltaMessage, Offset: 3, Text: "\xac b"}, &p.AssistantMessage{Item: item, Text: "a€ b"})
	want := []string{
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"},"messageId":"1.1.0"}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"€ b"},"messageId":"1.1.0"}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A client that shows terminals gets the output of a command once, in pieces, and its end.
func TestTerminal(t *testing.T) {
	events := []p.Body{
		&p.TurnStarted{}, &p.ToolCall{Call: call, Name: "exec_command", Arguments: `{"cmd":"make"}`}, &p.CallStarted{Call: call},
		&p.CommandStarted{Call: call, Command: []string{"bash", "-lc", "make"}, Cwd: "/w"},
		&p.Delta{Item: call, Kind: p.DeltaStdout, Text: "one\n"},
	}
	end := []p.Body{&p.ToolOutput{Call: call, Command: &p.CommandResult{Output: "one\ntwo\n", ExitCode: 2}}, &p.TurnEnded{Reason: p.Completed}}
	f := newFold(Options{Terminals: true})
	f.Live()
	got := play(f, events...)
	flush := func() {
		for _, u := range f.Flush() {
			text, _ := json.Marshal(u)
			got = append(got, string(text))
		}
	}
	flush()
	got = append(got, play(f, &p.Delta{Item: call, Kind: p.DeltaStdout, Offset: 4, Text: "two\n"})...)
	got = append(got, play(f, end...)...)
	all := strings.Join(got, "\n")
	for part, times := range map[string]int{
		`"terminal_info":{"cwd":"/w","terminal_id":"1.1.0"}`: 1, `"data":"one\n"`: 1, `"data":"two\n"`: 1, `"terminal_exit":{"exit_code":2,"terminal_id":"1.1.0"}`: 1, `"status":"failed"`: 1, `"sessionUpdate":"tool_call"`: 1,
	} {
		if n := strings.Count(all, part); n != times {
			t.Errorf("%s is sent %d times:\n%s", part, n, all)
		}
	}

	f = newFold(Options{Terminals: true})
	replayed := strings.Join(append(play(f, append(events, end...)...), fmt.Sprint(f.Live())), "\n")
	for _, part := range []string{`"terminal_info"`, `"data":"one\ntwo\n"`, `"terminal_exit"`, `"status":"failed"`} {
		if strings.Count(replayed, part) != 1 {
			t.Errorf("a replay has not one %s:\n%s", part, replayed)
		}
	}
}

// An edit is shown as a diff of each place, with the lines around it.
func TestDiffs(t *testing.T) {
	changes := `{"/w/a.go":{"update":{"unified_diff":"@@ -3,3 +3,3 @@\n one\n-two\n+2\n three\n@@ -9 +9 @@\n-x\n\\ No newline at end of file\n+y\n"}},"/w/new":{"add":{"content":"hello\n"}},"/w/old":"delete"}`
	f := newFold(Options{})
	f.Live()
	play(f, &p.TurnStarted{}, &p.ToolCall{Call: call, Name: "apply_patch", Arguments: "x"})
	got := play(f, &p.PatchStarted{Call: call, Cwd: "/w", Changes: json.RawMessage(changes)})
	want := []string{`{"sessionUpdate":"tool_call_update","toolCallId":"1.1.0","title":"update a.go, add new, delete old","content":[` +
		`{"type":"diff","path":"/w/a.go","oldText":"one\ntwo\nthree\n","newText":"one\n2\nthree\n"},{"type":"diff","path":"/w/a.go","oldText":"x","newText":"y\n"},` +
		`{"type":"diff","path":"/w/new","newText":"hello\n"}],"locations":[{"path":"/w/a.go","line":3},{"path":"/w/new"},{"path":"/w/old"}]}`}
	if len(got) > 0 { // the status changes as well
		got[0] = strings.Replace(got[0], `"status":"in_progress",`, "", 1)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// What a call is and does is said from its beginning on.
func TestKindsAndTitles(t *testing.T) {
	for _, tt := range []struct{ tool, arguments, kind, title string }{
		{"exec_command", `{"cmd":"go test ./..."}`, "execute", "go test ./..."},
		{"shell", `{"command":["bash","-lc","ls -l"]}`, "execute", "ls -l"},
		{"read_file", `{"path":"a.go"}`, "read", "Read a.go"},
		{"grep", `{"pattern":"TODO","path":"src"}`, "search", "Search TODO"},
		{"list_files", `{}`, "search", "List"},
		{"web_fetch", `{"url":"https://x.test/"}`, "fetch", "Fetch https://x.test/"},
		{"write", `{"path":"a.go","content":"x"}`, "edit", "write a.go"},
		{"strange", `{}`, "other", "strange"},
	} {
		f := newFold(Options{})
		f.Live()
		got := strings.Join(play(f, &p.TurnStarted{}, &p.ToolCall{Call: call, Name: tt.tool, Arguments: tt.arguments}), "\n")
		if !strings.Contains(got, fmt.Sprintf(`"title":%q`, tt.title)) || !strings.Contains(got, fmt.Sprintf(`"kind":%q`, tt.kind)) {
			t.Errorf("%s %s is shown as %s", tt.tool, tt.arguments, got)
		}
	}
}

package foreign_test

import (
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/foreign"
	p "github.com/fermata-agent/fermata/protocol"
)

func TestGemini(t *testing.T) {
	dir := t.TempDir()
	head := `{"sessionId":"g1","projectHash":"x","startTime":"2026-11-01T10:00:00.000Z","kind":"main"}`
	write(t, dir, "tmp/project/.project_root", "/work/project")
	write(t, dir, "tmp/project/chats/session-2026-11-01T10-05-g1.jsonl", head) // what resuming leaves
	write(t, dir, "tmp/project/chats/session-2026-11-01T10-00-g1.jsonl", head,
		`{"id":"m0","timestamp":"2026-11-01T10:00:00.000Z","type":"user","content":[{"text":"<session_context>x</session_context>"}]}`,
		`{"id":"m1","timestamp":"2026-11-01T10:00:01.000Z","type":"user","content":[{"text":"fix the test"}]}`,
		`{"id":"m2","timestamp":"2026-11-01T10:00:02.000Z","type":"gemini","content":"Looking.","model":"gemini-x"}`,
		`{"id":"m2","timestamp":"2026-11-01T10:00:02.000Z","type":"gemini","content":"Looking.","model":"gemini-x","thoughts":[{"subject":"Plan","description":"look"}],`+
			`"toolCalls":[{"id":"t1","name":"run_shell_command","args":{"command":"go test"},"status":"success","result":[{"functionResponse":{"response":{"output":"ok"}}}]}],"tokens":{"input":10,"output":5,"total":15}}`,
		`{"id":"m3","timestamp":"2026-11-01T10:00:03.000Z","type":"user","content":[{"functionResponse":{"response":{"output":"ok"}}}]}`,
		`{"id":"m4","timestamp":"2026-11-01T10:00:04.000Z","type":"gemini","content":"Done."}`,
		`{"id":"m5","timestamp":"2026-11-01T10:00:05.000Z","type":"user","content":"rewound"}`,
		`{"$rewindTo":"m5"}`,
	)
	c, events := read(t, &foreign.Home{Agent: foreign.Gemini, Dir: dir})
	if c.Cwd != "/work/project" || c.Title != "fix the test" || c.Model != "gemini-x" || c.ID != "g1" {
		t.Errorf("head %+v", c.Session)
	}
	want := "conversation_started turn_started user_message model_requested reasoning assistant_message tool_call model_ended call_started tool_output" +
		" model_requested assistant_message model_ended turn_ended imported"
	if got := kinds(events); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
	if len(c.Losses) != 0 {
		t.Errorf("losses %q", c.Losses)
	}
	if call := events[6].Body.(*p.ToolCall); call.Name != "exec_command" || call.Arguments != `{"cmd":"go test"}` {
		t.Errorf("call %+v", call)
	}
}

// Gemini CLI does not record a call that runs when it is killed. That one may be missing is said.
func TestGeminiCallsThatAreNotRecorded(t *testing.T) {
	user := `{"id":"m1","type":"user","content":"run it"}`
	call := `{"id":"m2","type":"gemini","content":"Looking.","toolCalls":[{"id":"t1","name":"run_shell_command","args":{},"status":"success","result":[{"functionResponse":{"response":{"output":"ok"}}}]}],"tokens":{"input":10,"output":5}}`
	for name, c := range map[string]struct {
		lines []string
		told  bool
	}{
		"killed before the answer": {[]string{user}, true},
		"killed after a call":      {[]string{user, call}, true},
		"answered":                 {[]string{user, call, `{"id":"m4","type":"gemini","content":"Done."}`}, false},
		"ended with an error":      {[]string{user, `{"id":"m4","type":"error","content":"quota"}`}, false},
	} {
		dir := t.TempDir()
		write(t, dir, "tmp/project/chats/session-2026-11-01T10-00-g1.jsonl", append([]string{`{"sessionId":"g1"}`}, c.lines...)...)
		conv, _ := read(t, &foreign.Home{Agent: foreign.Gemini, Dir: dir})
		if told := strings.Contains(strings.Join(conv.Losses, "\n"), "one may have run that is not here"); told != c.told {
			t.Errorf("%s: losses %q", name, conv.Losses)
		}
	}
}

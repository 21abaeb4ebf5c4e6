package foreign_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/foreign"
	"github.com/fermata-agent/fermata/internal/foreign/convert"
	"github.com/fermata-agent/fermata/internal/fsck"
	"github.com/fermata-agent/fermata/internal/history"
	p "github.com/fermata-agent/fermata/protocol"
)

// write makes a file of a foreign home.
func write(t *testing.T, dir, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// read reads the only session of a home, makes events of it, and judges them.
func read(t *testing.T, h *foreign.Home) (foreign.Conversation, []p.Event) {
	t.Helper()
	list, err := h.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%d sessions, %v", len(list), err)
	}
	c, err := h.Read(t.Context(), list[0])
	if err != nil {
		t.Fatal(err)
	}
	return c, judged(t, c)
}

func judged(t *testing.T, c foreign.Conversation) []p.Event {
	t.Helper()
	events := convert.Events(c, p.ConversationStarted{ID: convert.ConversationID(c.Session, "")}, nil)
	var check fsck.Checker
	var h history.History
	for _, e := range events {
		if _, err := e.MarshalJSON(); err != nil {
			t.Errorf("it cannot be recorded: %v", err)
		}
		check.Apply(e)
		h.Apply(e)
	}
	for _, problem := range check.End() {
		t.Errorf("fsck: %s", problem)
	}
	if missing := h.Missing(); len(missing) > 0 {
		t.Errorf("calls without an output: %v", missing)
	}
	return events
}

// kinds are the kinds of events, for a look at the whole.
func kinds(events []p.Event) string {
	var list []string
	for _, e := range events {
		list = append(list, p.Kind(e.Body))
	}
	return strings.Join(list, " ")
}

const meta = `{"timestamp":"2026-11-01T10:00:00.000Z","ordinal":0,"type":"session_meta","payload":{"id":"0199a0c2-aaaa-7bbb-8ccc-111122223333","timestamp":"2026-11-01T10:00:00.000Z","cwd":"/work/project","originator":"codex_exec","cli_version":"0.166.0","source":"exec","git":{"commit_hash":"abc","branch":"main"}}}`

func codexHome(t *testing.T, lines ...string) *foreign.Home {
	dir := t.TempDir()
	write(t, dir, "sessions/2026/11/01/rollout-2026-11-01T10-00-00-0199a0c2-aaaa-7bbb-8ccc-111122223333.jsonl", lines...)
	return &foreign.Home{Agent: foreign.Codex, Dir: dir, Scratch: t.TempDir()}
}

func TestCodex(t *testing.T) {
	c, events := read(t, codexHome(t, meta,
		`{"timestamp":"2026-11-01T10:00:00.100Z","ordinal":1,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}`,
		`{"timestamp":"2026-11-01T10:00:00.100Z","ordinal":2,"type":"turn_context","payload":{"model":"gpt-5","cwd":"/work/project"}}`,
		`{"timestamp":"2026-11-01T10:00:01.000Z","ordinal":3,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"fix the test"}]}}`,
		`{"timestamp":"2026-11-01T10:00:02.000Z","ordinal":4,"type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"thinking"}],"encrypted_content":"xyz"}}`,
		`{"timestamp":"2026-11-01T10:00:02.500Z","ordinal":5,"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"go test\"}","call_id":"call_1"}}`,
		`{"timestamp":"2026-11-01T10:00:02.600Z","ordinal":6,"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}}`,
		`{"timestamp":"2026-11-01T10:00:03.000Z","ordinal":7,"type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"ok"}}`,
		`{"timestamp":"2026-11-01T10:00:03.100Z","ordinal":8,"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"call_1","exit_code":0}}}`,
		`{"timestamp":"2026-11-01T10:00:04.000Z","ordinal":9,"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}`,
		`{"timestamp":"2026-11-01T10:00:05.000Z","ordinal":10,"type":"event_msg","payload":{"type":"task_complete"}}`,
	))
	if c.Title != "fix the test" || c.Cwd != "/work/project" || c.Model != "gpt-5" || c.Branch != "main" || !c.Started.Equal(time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("head %+v", c.Session)
	}
	want := "conversation_started turn_started user_message model_requested reasoning tool_call model_ended call_started tool_output model_requested assistant_message model_ended turn_ended imported"
	if got := kinds(events); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
	out := events[8].Body.(*p.ToolOutput)
	if out.Output != "ok" || out.Command == nil || out.Command.ExitCode != 0 {
		t.Errorf("output %+v", out)
	}
}

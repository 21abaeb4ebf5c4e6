package foreign_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/foreign"
	p "github.com/fermata-agent/fermata/protocol"
)

func claudeHome(t *testing.T, lines ...string) *foreign.Home {
	dir := t.TempDir()
	write(t, dir, "projects/-work-project/5d5b5c3e-0000-4000-8000-000000000001.jsonl", lines...)
	return &foreign.Home{Agent: foreign.Claude, Dir: dir}
}

// claude makes a line. parent is empty for the first.
func claude(kind, uuid, parent, rest string) string {
	up := "null"
	if parent != "" {
		up = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"timestamp":"2026-11-01T10:00:00.000Z","cwd":"/work/project","gitBranch":"main","version":"2.1.197","sessionId":"s"%s}`, kind, uuid, up, rest)
}

func userText(text string) string {
	return fmt.Sprintf(`,"message":{"role":"user","content":%q}`, text)
}

func toolUse(message, id, command string) string {
	return fmt.Sprintf(`,"message":{"id":%q,"role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":%q,"name":"Bash","input":{"command":%q}}],"usage":{"input_tokens":3,"output_tokens":4}}`, message, id, command)
}

func toolResult(source, id, text string) string {
	return fmt.Sprintf(`,"sourceToolAssistantUUID":%q,"toolUseResult":{"stdout":%q},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}`, source, text, id, text)
}

func answer(message, text string) string {
	return fmt.Sprintf(`,"message":{"id":%q,"role":"assistant","model":"claude-x","content":[{"type":"text","text":%q}]}`, message, text)
}

// outputs are the outputs of a conversation, in order.
func outputs(events []p.Event) (list []string) {
	for _, e := range events {
		if b, ok := e.Body.(*p.ToolOutput); ok {
			list = append(list, b.Output)
		}
	}
	return list
}

// Parallel calls fork the tree: what follows hangs on one of the results only.
func TestClaudeParallelCalls(t *testing.T) {
	c, events := read(t, claudeHome(t,
		claude("user", "u1", "", userText("do two things")),
		claude("assistant", "a1", "u1", toolUse("m1", "t1", "one")),
		claude("assistant", "a2", "a1", toolUse("m1", "t2", "two")),
		claude("user", "r1", "a1", toolResult("a1", "t1", "out one")),
		claude("user", "r2", "a2", toolResult("a2", "t2", "out two")),
		claude("assistant", "a3", "r2", answer("m2", "both done")),
	))
	if got := strings.Join(outputs(events), "|"); got != "out one|out two" {
		t.Errorf("outputs %q", got)
	}
	if len(c.Branches) != 0 || c.Title != "do two things" || c.Model != "claude-x" {
		t.Errorf("branches %v, head %+v", c.Branches, c.Session)
	}
	call := events[4].Body.(*p.ToolCall)
	if call.Name != "exec_command" || call.Arguments != `{"cmd":"one"}` {
		t.Errorf("call %+v", call)
	}
}

// A rewound session holds several ends; the newest counts, and the others can be read by name.
func TestClaudeBranches(t *testing.T) {
	h := claudeHome(t,
		claude("user", "u1", "", userText("first")),
		claude("assistant", "a1", "u1", answer("m1", "one")),
		claude("user", "u2", "a1", userText("abandoned")),
		claude("assistant", "a2", "u2", answer("m2", "two")),
		claude("user", "u3", "a1", userText("instead")),
		claude("assistant", "a3", "u3", answer("m3", "three")),
	)
	c, _ := read(t, h)
	if text := texts(c); text != "first one instead three" {
		t.Errorf("the newest end: %s", text)
	}
	if len(c.Branches) != 1 || c.Branches[0] != "a2" {
		t.Fatalf("branches %v", c.Branches)
	}
	other, err := h.ReadBranch(t.Context(), c.Session, "a2")
	if err != nil || texts(other) != "first one abandoned two" {
		t.Errorf("the other end: %s, %v", texts(other), err)
	}
}

func texts(c foreign.Conversation) string {
	var list []string
	for _, s := range c.Steps {
		if s.Kind == foreign.User || s.Kind == foreign.Message {
			list = append(list, s.Text)
		}
	}
	return strings.Join(list, " ")
}

// What a kill leaves: a call without a result, and a prompt that waited.
func TestClaudeKilled(t *testing.T) {
	_, events := read(t, claudeHome(t,
		claude("user", "u1", "", userText("run it")),
		claude("assistant", "a1", "u1", toolUse("m1", "t1", "sleep 9")),
		`{"type":"queue-operation","operation":"enqueue","content":"and then this","timestamp":"2026-11-01T10:00:01.000Z"}`,
		`{"type":"assistant","uuid":"a2","par`,
	))
	if out := outputs(events); len(out) != 1 || !strings.Contains(out[0], "No output was recorded") {
		t.Errorf("outputs %q", out)
	}
	end, returned := p.TurnEnded{}, 0
	for _, e := range events {
		switch b := e.Body.(type) {
		case *p.TurnEnded:
			end = *b
		case *p.InputReturned:
			returned += len(b.Inputs)
		}
	}
	imported := events[len(events)-1].Body.(*p.Imported)
	if end.Reason != p.Crashed || returned != 1 || !imported.Open || len(imported.Losses) != 1 {
		t.Errorf("ended %s, %d messages returned, imported %+v", end.Reason, returned, imported)
	}
}

func TestClaudeInterruptAndSummary(t *testing.T) {
	_, events := read(t, claudeHome(t,
		claude("user", "u1", "", userText("talk")),
		claude("assistant", "a1", "u1", answer("m1", "half a sen")),
		claude("user", "u2", "a1", `,"message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}`),
		claude("system", "c1", "", `,"subtype":"compact_boundary","logicalParentUuid":"u2"`),
		claude("user", "u3", "c1", `,"isCompactSummary":true,"message":{"role":"user","content":"the summary"}`),
		claude("user", "u4", "u3", userText("go on")),
		claude("assistant", "a2", "u4", answer("m2", "gone on")),
	))
	want := "conversation_started turn_started user_message model_requested assistant_message model_ended stop_requested turn_ended" +
		" turn_started model_requested model_ended compacted turn_ended turn_started user_message model_requested assistant_message model_ended turn_ended imported"
	got := kinds(events)
	if got != want && !strings.Contains(got, "model_requested model_ended compacted") {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
	if m := events[4].Body.(*p.AssistantMessage); !m.Partial {
		t.Errorf("the interrupted message is not marked as partial: %+v", m)
	}
}

package foreign_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/foreign"
	p "github.com/fermata-agent/fermata/protocol"
)

// opencodeHome is a copy of the sample, so that a test can see whether the original is left alone.
func opencodeHome(t *testing.T) *foreign.Home {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"opencode.db", "opencode.db-wal"} {
		data, err := os.ReadFile(filepath.Join("testdata", "opencode", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h := &foreign.Home{Agent: foreign.OpenCode, Dir: dir, Scratch: filepath.Join(t.TempDir(), "scratch")}
	t.Cleanup(h.Close)
	return h
}

// Everything is in the log, which only the copy is read with.
func TestOpenCode(t *testing.T) {
	h := opencodeHome(t)
	list, err := h.List(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	main, child := list[0], list[1]
	if main.ID != "ses_1" {
		main, child = child, main
	}
	if child.Parent != "ses_1" || main.Cwd != "/work/project" || main.Title != "title of ses_1" {
		t.Errorf("%+v\n%+v", main, child)
	}
	c, err := h.Read(t.Context(), main)
	if err != nil {
		t.Fatal(err)
	}
	events := judged(t, c)
	want := "conversation_started renamed turn_started user_message model_requested reasoning tool_call model_ended call_started tool_output" +
		" model_requested tool_call model_ended call_started tool_output stop_requested turn_ended imported"
	if got := kinds(events); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
	if m := events[3].Body.(*p.UserMessage); m.Content[0].Text != "fix the test" || len(m.Content) != 1 {
		t.Errorf("message %+v", m)
	}
	out := events[9].Body.(*p.ToolOutput)
	if len(out.Output) != 3000 || out.Command.ExitCode != 1 || out.Elapsed.Milliseconds() != 500 {
		t.Errorf("output of %d bytes, %+v", len(out.Output), out.Command)
	}
	if out := outputs(events); !strings.Contains(out[1], "No output was recorded") {
		t.Errorf("outputs %q", out)
	}
	other, err := h.Read(t.Context(), child)
	if err != nil || texts(other) != "first one" {
		t.Errorf("the reverted session: %s, %v", texts(other), err)
	}
	of := judged(t, other)
	if b := of[len(of)-1].Body.(*p.Imported); b.Parent != "ses_1" {
		t.Errorf("the conversation of the subagent does not name its parent: %+v", b)
	}

	names, _ := os.ReadDir(h.Dir)
	if len(names) != 2 {
		t.Errorf("the original has %d files now", len(names))
	}
	h.Close()
	if left, _ := os.ReadDir(h.Scratch); len(left) != 0 {
		t.Errorf("%d copies are left", len(left))
	}
}

package imports_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/app/imports"
	"github.com/fermata-agent/fermata/internal/foreign"
)

// put writes a file.
func put(t *testing.T, name string, lines ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// codexSession writes a session of Codex.
func codexSession(t *testing.T, home string, number int, cwd, source, text string) {
	t.Helper()
	id := fmt.Sprintf("0199a0c2-aaaa-7bbb-8ccc-%012d", number)
	put(t, filepath.Join(home, ".codex/sessions/2026/11/01/rollout-2026-11-01T10-00-00-"+id+".jsonl"),
		fmt.Sprintf(`{"timestamp":"2026-11-01T10:00:00.000Z","type":"session_meta","payload":{"id":%q,"timestamp":"2026-11-01T10:00:00.000Z","cwd":%q,"source":%s}}`, id, cwd, source),
		fmt.Sprintf(`{"timestamp":"2026-11-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, text))
}

// Of all agents those conversations are found that worked in the project, also from a directory below its root. One that is imported
// brings those of its subagents along.
func TestConversationsOfAProject(t *testing.T) {
	im, home := importer(t)
	user, work := t.TempDir(), filepath.Join(t.TempDir(), "work")
	put(t, filepath.Join(work, ".git/HEAD"))
	put(t, filepath.Join(work, "sub/file"))
	codexSession(t, user, 1, work, `"exec"`, "at the root")
	codexSession(t, user, 2, filepath.Join(work, "sub"), `"exec"`, "below")
	codexSession(t, user, 3, work+"-other", `"exec"`, "elsewhere")
	codexSession(t, user, 4, work, `{"subagent":{"thread_spawn":{"parent_thread_id":"0199a0c2-aaaa-7bbb-8ccc-000000000001"}}}`, "a subagent")
	put(t, filepath.Join(user, ".gemini/tmp/w/.project_root"), work)
	put(t, filepath.Join(user, ".gemini/tmp/w/chats/session-2026-11-01T10-00-g1.jsonl"), `{"sessionId":"g1"}`, `{"id":"m1","type":"user","content":"of another agent"}`)
	put(t, filepath.Join(user, ".local/share/opencode/opencode.db"), "not a database")
	f := imports.NewFinder(im.Store, home, "test", func(name string) string {
		if name == "HOME" {
			return user
		}
		return ""
	})
	list, unread, err := f.List(t.Context(), filepath.Join(work, "sub"))
	if err != nil || len(unread) != 1 || !strings.HasPrefix(unread[0], "opencode: ") {
		t.Errorf("unread %q, %v", unread, err)
	}
	found := map[string]imports.Found{}
	for _, c := range list {
		found[c.Title] = c
	}
	for _, title := range []string{"at the root", "below", "of another agent"} {
		if found[title].State != imports.New {
			t.Errorf("%s: %+v", title, found[title])
		}
	}
	if len(list) != 3 {
		t.Errorf("found %+v", list)
	}
	id, err := f.Import(t.Context(), found["at the root"].Session)
	if err != nil || !strings.Contains(records(t, im, id), "user_message") {
		t.Fatal(err)
	}
	all, err := im.Store.List(t.Context())
	if err != nil || len(all) != 2 {
		t.Errorf("%d conversations, %v: the subagent's is missing, or another one was imported", len(all), err)
	}
	list, _, err = f.List(t.Context(), work)
	for _, c := range list {
		if want := map[bool]imports.State{true: imports.Same, false: imports.New}[c.Title == "at the root"]; c.State != want || err != nil {
			t.Errorf("%s is %s, %v", c.Title, c.State, err)
		}
	}
	if _, err := f.Import(t.Context(), foreign.Session{Agent: foreign.Claude, Path: "/nothing"}); err == nil {
		t.Error("a session of an agent that is not here was imported")
	}
}

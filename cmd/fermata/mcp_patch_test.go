package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// A patch in a shell call is asked for as what it is.
func TestMCPPatchApproval(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "untrusted",
		modeltest.Respond(shellCall("call_p", "bash", "-lc", "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\nEOF\n")),
		modeltest.Respond(modeltest.Say("patched")))
	s.file("a.txt", "one\n")
	c := s.connect()
	c.send(`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"patch it"}}}`)
	ask := c.await("an elicitation", func(m map[string]any) bool { return m["method"] == "elicitation/create" })
	params := ask["params"].(map[string]any)
	delete(params, "message")
	got, _ := json.Marshal(params)
	work, err := filepath.EvalSymlinks(s.work)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"codex_call_id":"call_p","codex_changes":{%q:{"update":{"move_path":null,"unified_diff":"@@ -1 +1 @@\n-one\n+two\n"}}},`+
		`"codex_elicitation":"patch-approval","codex_event_id":"1","codex_mcp_tool_call_id":"1","requestedSchema":{"properties":{},"type":"object"}}`, filepath.Join(work, "a.txt"))
	if string(got) != want {
		t.Errorf("asked %s\nwant  %s", got, want)
	}
	c.send(`{"id":0,"result":{"decision":"approved"}}`)
	if begin := msgOf(c.notice("patch_apply_begin")); begin["auto_approved"] != false || begin["call_id"] != "call_p" {
		t.Errorf("patch_apply_begin %v", begin)
	}
	if end := msgOf(c.notice("patch_apply_end")); end["success"] != true {
		t.Errorf("patch_apply_end %v", end)
	}
	contains(t, "turn_diff", msgOf(c.notice("turn_diff"))["unified_diff"].(string), "-one\n+two\n")
	contains(t, "answer", c.answer(1), "patched")
	if b, err := os.ReadFile(filepath.Join(s.work, "a.txt")); string(b) != "two\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

// What a call asks for is what its conversation is run with.
func TestMCPWishes(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(shellCall("c", "pwd")), modeltest.Respond(modeltest.Say("ok")))
	if err := os.Mkdir(filepath.Join(s.work, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := s.connect()
	c.send(`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"x","model":"other-model","cwd":"sub","base-instructions":"You are a mock.","config":{"model_reasoning_effort":"low"}}}}`)
	if got := msgOf(c.notice("session_configured"))["model"]; got != "other-model" {
		t.Errorf("model %v", got)
	}
	end := msgOf(c.notice("exec_command_end"))
	if !strings.HasSuffix(end["stdout"].(string), "/work/sub\n") {
		t.Errorf("run in %v", end["stdout"])
	}
	c.answer(1)
	messages := s.srv.Wait(1).List("messages")
	if got := fmt.Sprint(messages[0]["content"]); messages[0]["role"] != "system" || !strings.HasPrefix(got, "You are a mock.") {
		t.Errorf("the model was told first %v", messages[0])
	}

	for name, arguments := range map[string]string{
		"profile": `{"prompt":"x","profile":"none"}`, "sandbox": `{"prompt":"x","sandbox":"cardboard"}`, "config": `{"prompt":"x","config":{"approval_policy":"perhaps"}}`,
	} {
		c.send(`{"id":9,"method":"tools/call","params":{"name":"codex","arguments":%s}}`, arguments)
		if got := c.answer(9); !strings.Contains(got, `"isError":true`) {
			t.Errorf("a bad %s: %s", name, got)
		}
	}
}

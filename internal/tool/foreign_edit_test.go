package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Calls of tools that other agents have are carried out by ours.
func TestToolsOfOtherAgents(t *testing.T) {
	patches := &Patch{Changes: &Changes{}}
	files := &Files{}
	edit, write, read := &Edit{Patch: patches}, &Write{Patch: patches}, &Read{Files: files}
	list := []Tool{
		edit, write, read, &List{Files: files}, &Grep{Files: files},
		Plan{},
		Hidden(&TextEditor{Read: read, Edit: edit, Write: write}), Hidden(&MultiEdit{Patch: patches}),
	}
	const before = "one\ntwo\nthree\n"
	for _, tt := range []struct {
		name, arguments string
		after           string // what the file is then
		output          string // a part of what the model is told
		failed          bool
	}{
		{"str_replace_based_edit_tool", `{"command":"str_replace","path":"f","old_str":"two","new_str":"2"}`, "one\n2\nthree\n", "f", false},
		{"str_replace_editor", `{"command":"create","path":"g","file_text":"x"}`, before, "g", false},
		{"str_replace_based_edit_tool", `{"command":"view","path":"f"}`, before, "2\ttwo", false},
		{"str_replace_based_edit_tool", `{"command":"view","path":"f","view_range":[3,-1]}`, before, "3\tthree", false},
		{"str_replace_based_edit_tool", `{"command":"undo_edit","path":"f"}`, before, "use edit or write", true},
		{"MultiEdit", `{"file_path":"f","edits":[{"old_string":"one","new_string":"1"},{"old_string":"1\ntwo","new_string":"1\n2"}]}`, "1\n2\nthree\n", "f", false},
		{"MultiEdit", `{"file_path":"f","edits":[{"old_string":"one","new_string":"1"},{"old_string":"four","new_string":"4"}]}`, before, "not in the file", true},
		{"MultiEdit", `{"file_path":"f","edits":[]}`, before, "empty", true},
		{"Edit", `{"file_path":"f","old_string":"two","new_string":"2","replace_all":false}`, "one\n2\nthree\n", "f", false},
		{"Write", `{"file_path":"f","content":"x"}`, "x", "f", false},
		{"Read", `{"file_path":"f","offset":2,"limit":1}`, before, "2\ttwo", false},
		{"Grep", `{"pattern":"thr","path":"."}`, before, "three", false},
		{"Glob", `{"pattern":"*"}`, before, "f", false},
		{"LS", `{"path":"."}`, before, "f", false},
		{"TodoWrite", `{"todos":[{"content":"a","status":"pending"}]}`, before, "Plan updated", false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
		found := Find(list, tt.name)
		if found == nil {
			t.Errorf("%s is not found", tt.name)
			continue
		}
		call := patchCall(&fakeHost{}, dir, "")
		call.Name, call.Arguments = tt.name, tt.arguments
		out := Run(t.Context(), found, call).Output
		text, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil || string(text) != tt.after || out.Failed != tt.failed || !strings.Contains(out.Output, tt.output) {
			t.Errorf("%s %s: the file is %q, %v; failed: %t, output %s", tt.name, tt.arguments, text, err, out.Failed, out.Output)
		}
	}
	for _, spec := range Offered(list) {
		if strings.Contains(spec.Name, "str_replace") || spec.Name == "multi_edit" {
			t.Errorf("%s is offered", spec.Name)
		}
	}
}

// A wish for more rights is granted a question or answered, in whatever form it comes, and never ignored.
func TestWishesForRights(t *testing.T) {
	for _, tt := range []struct {
		arguments string
		wanted    bool
		answer    string // of a call that is not run
	}{
		{`{"cmd":"x"}`, false, ""},
		{`{"cmd":"x","with_escalated_permissions":true}`, true, ""},
		{`{"cmd":"x","sandbox_permissions":"require_escalated","justification":"why"}`, true, ""},
		{`{"cmd":"x","sandbox_permissions":"use_default"}`, false, ""},
		{`{"cmd":"x","sandbox_permissions":"with_additional_permissions"}`, false, "with_escalated_permissions set to true"},
		{`{"cmd":"x","additional_permissions":{"network":true}}`, false, "with_escalated_permissions set to true"},
		{`{"cmd":"x","dangerouslyDisableSandbox":true}`, false, "with_escalated_permissions set to true"},
		{`{"cmd":"x","dangerouslyDisableSandbox":false}`, false, ""},
		{`{"cmd":"x","network_access":"full"}`, false, "with_escalated_permissions set to true"},
		{`{"cmd":"x","description":"lists"}`, false, ""},
	} {
		v, err := execSchema.Parse(tt.arguments)
		answer := ""
		var wants escalation
		if err != nil {
			answer = err.Error()
		} else {
			var wrong *Result
			if wants, wrong = escalated(v, execSchema); wrong != nil {
				answer = wrong.Output.Output
			}
		}
		if wants.wanted != tt.wanted || (answer == "") != (tt.answer == "") || !strings.Contains(answer, tt.answer) {
			t.Errorf("%s: wanted %t, answer %q", tt.arguments, wants.wanted, answer)
		}
	}
	if _, err := execUnasked().Parse(`{"cmd":"x","additional_permissions":{"network":true}}`); err == nil || !strings.Contains(err.Error(), "no client can be asked") {
		t.Errorf("where no client can be asked: %v", err)
	}
}

// A command line in a list of one is run as a command line.
func TestCommandLineInAList(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"command":["echo a b"]}`:   `["bash","-lc","echo a b"]`,
		`{"command":["echo"]}`:       `["echo"]`,
		`{"command":["echo","a b"]}`: `["echo","a b"]`,
		`{"command":["a|b"]}`:        `["bash","-lc","a|b"]`,
	} {
		v, err := shellSchema.Parse(arguments)
		got, _ := json.Marshal(shellArgv(v))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", arguments, got, err, want)
		}
	}
}

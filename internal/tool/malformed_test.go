package tool

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/protocol"
)

// Calls as models write them. What is meant is done if that is clear, and each
// repair is counted; else nothing is done, and the error says how to do it right.
func TestMalformedCalls(t *testing.T) {
	const patch = "*** Begin Patch\\n*** Update File: f\\n@@\\n-old\\n+new\\n*** End Patch"
	const did, not = "new\n", "old\n" // what is in the file afterwards
	for _, tt := range []struct {
		name, tool, args string
		want             string // in the file; or of a command: its output
		repairs          int
	}{
		{"right", "edit", `{"path":"f","old_text":"old","new_text":"new"}`, did, 0},
		{"names from elsewhere", "Edit", `{"file_path":"f","old_string":"old","new_string":"new"}`, did, 4},
		{"trailing comma", "edit", `{"path":"f","old_text":"old","new_text":"new",}`, did, 1},
		{"single quotes", "edit", `{'path':'f','old_text':'old','new_text':'new'}`, did, 1},
		{"written as a string", "edit", `"{\"path\":\"f\",\"old_text\":\"old\",\"new_text\":\"new\"}"`, did, 1},
		{"boolean as a string", "edit", `{"path":"f","old_text":"old","new_text":"new","replace_all":"true"}`, did, 1},
		{"in a fence", "write", "```json\n{\"path\":\"f\",\"content\":\"new\\n\"}\n```", did, 1},
		{"line feed in a string", "write", "{\"path\":\"f\",\"content\":\"new\n\"}", did, 1},
		{"write_file", "write_file", `{"path":"f","content":"new\n"}`, did, 1},
		{"patch as input", "apply_patch", `{"input":"` + patch + `"}`, did, 0},
		{"patch as patch", "apply_patch", `{"patch":"` + patch + `"}`, did, 1},
		{"patch as itself", "apply_patch", strings.ReplaceAll(patch, `\n`, "\n"), did, 0},
		{"patch as a JSON string", "apply_patch", `"` + patch + `"`, did, 1},
		{"patch as argv", "apply_patch", `{"command":["apply_patch","` + patch + `"]}`, did, 2},
		{"patch with padded markers", "apply_patch", `{"input":"` + strings.Replace(patch, "Patch", "Patch  ", 1) + `"}`, did, 1},
		{"patch without markers", "apply_patch", `{"input":"*** Update File: f\n@@\n-old\n+new\n"}`, did, 1},
		{"patch without an end", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: f\n@@\n-old\n+new\n"}`, did, 1},
		{"patch with prose", "apply_patch", `{"input":"Here is the patch:\n` + patch + `\nDone."}`, did, 1},
		{"patch as a diff", "apply_patch", `{"input":"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n"}`, did, 1},
		{"patch in the shell", "shell", `{"command":["bash","-lc","apply_patch <<'EOF'\n` + patch + `\nEOF"]}`, did, 0},
		{"patch in exec_command", "exec_command", `{"cmd":"cd . && apply_patch <<'EOF'\n` + patch + `\nEOF\n"}`, did, 0},
		{"shell with a string", "shell", `{"command":"echo new > f"}`, did, 1},
		{"functions.shell", "functions.shell", `{"command":["sh","-c","echo new > f"]}`, did, 1},
		{"shell of gpt-oss", "shell<|channel|>commentary", `{"command":["sh","-c","echo new > f"]}`, did, 1},
		{"container.exec", "container.exec", `{"cmd":["sh","-c","echo new > f"]}`, did, 2},
		{"bash", "bash", `{"command":"echo new > f","description":"writes"}`, did, 3},
		{"exec_command with argv", "exec_command", `{"cmd":["sh","-c","echo new > f"]}`, did, 1},
		{"a number as a string", "exec_command", `{"cmd":"echo new > f","yield_time_ms":"20000"}`, did, 1},
		{"a bare command", "exec_command", `echo new > f`, did, 1},

		{"cut", "exec_command", `{"cmd":"echo new > f`, not, 0},
		{"cut patch", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: f\n@@\n-old\n+ne`, not, 0},
		{"two objects", "exec_command", `{"cmd":"echo new > f"}{"cmd":"true"}`, not, 0},
		{"wrong type", "write", `{"path":"f","content":{"a":1}}`, not, 0},
		{"missing", "edit", `{"path":"f","old_text":"old"}`, not, 0},
		{"not in the file", "edit", `{"path":"f","old_text":"Old","new_text":"new"}`, not, 0},
		{"not a patch", "apply_patch", `{"input":"change old to new"}`, not, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "f"), []byte("old\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			pt := &Patch{}
			sh := shell(t)
			sh.Patch = pt
			list := []Tool{&Exec{Shell: sh}, WriteStdin{}, Hidden(sh), Hidden(pt), &Edit{pt}, &Write{pt}, &Read{}}
			c := call(&termHost{}, dir, nil)
			c.Name, c.Arguments = tt.tool, tt.args
			found := Find(list, tt.tool)
			if found == nil {
				t.Fatal("no tool is found")
			}
			out := Run(t.Context(), found, c).Output
			text, err := os.ReadFile(filepath.Join(dir, "f"))
			if err != nil || string(text) != tt.want || out.Failed != (tt.want == not) {
				t.Errorf("the file is %q, the output %+v", text, out)
			}
			if tt.want == did && len(out.Repairs) != tt.repairs {
				t.Errorf("%d repairs %q, want %d", len(out.Repairs), out.Repairs, tt.repairs)
			}
			for _, not := range []string{"unmarshal", "struct", "Go value", "*tool."} {
				if strings.Contains(out.Output, not) {
					t.Errorf("the model is told %q", out.Output)
				}
			}
		})
	}
}

// Tools that only look are as tolerant, and none shows a model the names of our types.
func TestMalformedLooks(t *testing.T) {
	dir := t.TempDir()
	past := func(context.Context) iter.Seq2[protocol.Event, error] {
		return func(yield func(protocol.Event, error) bool) {
			yield(protocol.Event{Seq: 1, Turn: 1, Body: &protocol.UserMessage{Item: protocol.ItemID{Turn: 1}, Content: protocol.Text("find the needle")}}, nil)
		}
	}
	list := []Tool{ViewImage{}, &SearchHistory{past}, &ReadHistory{past}}
	for _, tt := range []struct{ tool, args, want string }{
		{"view_image", `{"file_path":"none.png",}`, "no such file"},
		{"view_image", `{"path":{"a":1}}`, "view_image takes these parameters:\n- path (string, required): "},
		{"search_history", `"needle"`, "1 places in all"},
		{"search_history", `{"query":["x"]}`, `Example: {"query":"error login.go"}`},
		{"read_history", `{"id":"1.0.0","offset":"4"}`, " the needle"},
		{"read_history", `{}`, "read_history takes these parameters:\n- item (string, required): "},
	} {
		c := call(&fakeHost{}, dir, nil)
		c.Name, c.Arguments = tt.tool, tt.args
		out := Run(t.Context(), Find(list, tt.tool), c).Output
		if !strings.Contains(out.Output, tt.want) || strings.Contains(out.Output, "Go value") || strings.Contains(out.Output, "struct") {
			t.Errorf("%s %s: %q", tt.tool, tt.args, out.Output)
		}
	}
}

// A model that is not offered to leave the sandbox does not learn of it from an error.
func TestMalformedUnasked(t *testing.T) {
	for _, asked := range []bool{false, true} {
		sh := shell(t)
		sh.CanAsk = asked
		for _, tool := range []Tool{sh, &Exec{Shell: sh}} {
			for _, arguments := range []string{`{}`, `{"cmd":"","command":[]}`} {
				c := call(&termHost{}, t.TempDir(), nil)
				c.Name, c.Arguments = tool.Spec().Name, arguments
				out := Run(t.Context(), tool, c).Output.Output
				if !strings.Contains(out, "takes these parameters") || strings.Contains(out, "with_escalated_permissions") != asked {
					t.Errorf("%s %s, asked %v: %s", c.Name, arguments, asked, out)
				}
			}
		}
	}
}

func TestUnknownTool(t *testing.T) {
	list := []Tool{&Read{}, Hidden(&List{}), Plan{}}
	if Find(list, "teleport") != nil || Find(list, "") != nil {
		t.Error("a tool is found that there is not")
	}
	if got, want := Unknown(list, "teleport"), "unsupported call: teleport. The tools are: read_file, update_plan."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, want := range map[string]string{"ReadFile": "read_file", "read-file": "read_file", "functions.LS": "list_files", "TodoWrite": "update_plan", "default_api:read_file": "read_file"} {
		if tool := Find(list, name); tool == nil || tool.Spec().Name != want {
			t.Errorf("%s is not %s", name, want)
		}
	}
}

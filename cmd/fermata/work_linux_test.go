package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	p "github.com/fermata-agent/fermata/protocol"
)

func toolCall(id, name string, arguments map[string]any) modeltest.Step {
	b, _ := json.Marshal(arguments)
	return modeltest.Call(id, name, string(b))
}

// outputs are the outputs of a conversation's calls, in order.
func (pl *place) outputs(id string) []*p.ToolOutput {
	var list []*p.ToolOutput
	for _, e := range pl.events(id) {
		if o, ok := e.Body.(*p.ToolOutput); ok {
			list = append(list, o)
		}
	}
	return list
}

// Each way to change files does, is undone, and is stopped before it does.
func TestEveryEditToolAndItsUndo(t *testing.T) {
	t.Parallel()
	const before, after = "one\ntwo\nthree\n", "one\n2\nthree\n"
	const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n three\n*** End Patch\n"
	for name, call := range map[string]modeltest.Step{
		"edit":                toolCall("c", "edit", map[string]any{"path": "a.txt", "old_text": "two", "new_text": "2"}),
		"edit of elsewhere":   toolCall("c", "str_replace", map[string]any{"file_path": "a.txt", "old_string": "two", "new_string": "2"}),
		"write":               toolCall("c", "write", map[string]any{"path": "a.txt", "content": after}),
		"patch":               toolCall("c", "apply_patch", map[string]any{"input": patch}),
		"patch in a fence":    toolCall("c", "apply_patch", map[string]any{"patch": "```\n" + patch + "```"}),
		"patch by a command":  toolCall("c", "exec_command", map[string]any{"cmd": "apply_patch <<'EOF'\n" + patch + "EOF"}),
		"patch by container":  toolCall("c", "container.exec", map[string]any{"command": []string{"apply_patch", patch}}),
		"patch, unified diff": toolCall("c", "apply_patch", map[string]any{"input": "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, wirecheck.Chat, "", modeltest.Respond(call), modeltest.Respond(modeltest.Say("done")))
			s.file("a.txt", before)
			_, errs, code := s.run("exec", "-s", "workspace-write", "go")
			if code != 0 || s.read("a.txt") != after {
				t.Fatalf("exit code %d, a.txt is %q\n%s", code, s.read("a.txt"), errs)
			}
			contains(t, "people see a patch", errs, "$ apply_patch\n  M a.txt (+1 -1)\n")
			id := s.conversation()
			s.must("undo", id, "--yes")
			if got := s.read("a.txt"); got != before {
				t.Errorf("after undo a.txt is %q", got)
			}
			s.fsck(id)
		})
	}
}

// What is read and searched is found, and people see commands.
func TestReadSearchAndList(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Anthropic, "", modeltest.Respond(
		toolCall("r", "read_file", map[string]any{"path": "a.go", "offset": 2, "limit": 1}),
		toolCall("g", "grep", map[string]any{"pattern": "nee.le"}),
		toolCall("l", "list_files", map[string]any{"pattern": "*.go"}),
		toolCall("u", "teleport", map[string]any{}),
	), modeltest.Respond(modeltest.Say("done")))
	s.file("a.go", "package a\n// needle\n")
	_, errs, code := s.run("exec", "go")
	if code != 0 {
		t.Fatal(errs)
	}
	contains(t, "progress", errs, "$ sed -n 2,2p a.go\n", "$ rg -n -e nee.le -- .\n", "$ rg --files -g '*.go' .\n")
	outputs := map[int]*p.ToolOutput{} // they run side by side
	for _, out := range s.outputs(s.conversation()) {
		outputs[out.Call.Index] = out
	}
	for i, want := range []string{"     2\t// needle\n", "a.go:2:// needle\n", "a.go\n", "unsupported call: teleport. The tools are: exec_command, "} {
		if out := outputs[i]; !strings.HasPrefix(out.Output, want) || out.Failed != (i == 3) {
			t.Errorf("output %d: %+v", i, out)
		}
	}
}

// A server that one turn starts is there in the next, and not when the process is
// gone.
func TestServerOutlivesItsTurn(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never",
		modeltest.Respond(toolCall("a", "exec_command", map[string]any{
			"cmd": "mkfifo in out; echo up; while read line < in; do echo \"served $line\" > out; done", "yield_time_ms": 300,
		})),
		modeltest.Respond(modeltest.Say("started")),
		modeltest.Respond(toolCall("b", "exec_command", map[string]any{"cmd": "echo hello > in; cat out"})),
		modeltest.Respond(modeltest.Say("used")))
	c := s.connect()
	id := c.converse(s.work)
	c.message(3, id, "start the dev server")
	c.event("task_complete")
	c.message(4, id, "use it")
	var printed string
	for printed == "" {
		if end := msgOf(c.event("exec_command_end")); end["call_id"] == "b" {
			printed = fmt.Sprint(end["stdout"])
		}
	}
	if printed != "served hello\n" {
		t.Errorf("the server answers %q", printed)
	}
	c.event("task_complete")
	c.in.Close()
	c.code()
	eventually(t, "nothing runs any more", func() bool { return len(traces(s.dir)) == 0 })
	s.fsck()
}

// An edit or a write that a kill interrupts has happened whole or not at all, the
// record says which, and what has happened can be undone.
func TestKillInEditAndWrite(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("some line of text\n", 20_000)
	before, after := big+"old\n", big+"new\n"
	calls := map[string]modeltest.Step{
		"edit":        toolCall("c", "edit", map[string]any{"path": "f", "old_text": "old\n", "new_text": "new\n"}),
		"write":       toolCall("c", "write", map[string]any{"path": "f", "content": after}),
		"write a new": toolCall("c", "write", map[string]any{"path": "d/e/new", "content": after}),
	}
	first := map[string]int{"write": 1, "write a new": 2} // a plain run has each call, and each instant, once
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, was := "f", before
			if name == "write a new" {
				file, was = "d/e/new", "(none)"
			}
			for i := range longtest.Default(3, 1) {
				s := newSite(t, wirecheck.Chat, "", modeltest.Respond(call))
				s.srv.Otherwise(modeltest.Respond(modeltest.Say("so")))
				s.file("f", before)
				proc := s.start("exec", "-s", "workspace-write", "go")
				id := s.conversation()
				mark := []string{"patch_started", "patch_committed", "tool_call"}[(first[name]+i)%3]
				s.awaitKind(mark)
				select { // any instant is as good
				case <-time.After(time.Duration(rand.Int64N(int64(30 * time.Millisecond)))):
				case <-proc.done:
				}
				_ = proc.cmd.Process.Signal(syscall.SIGKILL)
				<-proc.done
				s.must("exec", "resume", id, "and?")
				s.fsck(id)
				now := s.read(file)
				out := s.outputs(id)[0]
				applied := out.Patch != nil && out.Patch.Applied
				switch {
				case now != was && now != after:
					t.Fatalf("neither the old nor the new content: %d bytes", len(now))
				case applied != (now == after):
					t.Errorf("changed %t, recorded as applied %t", now == after, applied)
				}
				if left, _ := filepath.Glob(filepath.Join(s.work, "*", "*", ".fermata-*")); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				if !applied {
					continue
				}
				s.must("undo", id, "--yes", "--turn", "1")
				if s.read(file) != was {
					t.Error("undo did not restore it")
				}
			}
		})
	}
}

// What is left out of a long output can be read in pieces, also by a later turn.
func TestLongOutputIsReadInPieces(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Chat, "",
		modeltest.Respond(toolCall("a", "exec_command", map[string]any{"cmd": "seq 1 30000"})), modeltest.Respond(modeltest.Say("long")),
		modeltest.Respond(
			toolCall("b", "read_file", map[string]any{"path": "output:1.1.0", "offset": 15000, "limit": 1}),
			toolCall("c", "read_file", map[string]any{"path": "output:1.9.9"}),
		), modeltest.Respond(modeltest.Say("read")))
	s.must("exec", "go")
	id := s.conversation()
	first := s.outputs(id)[0].Output
	contains(t, "the first output", first, "\n[... omitted ", ` bytes ...]`, `call read_file with path "output:1.1.0" and an offset`, "\n30000\n")
	if strings.Contains(first, "\n15000\n") {
		t.Error("nothing was left out")
	}
	s.must("exec", "resume", id, "read it")
	for _, out := range s.outputs(id)[1:] {
		want := " 15000\t15000\n"
		if out.Call.Index == 1 {
			want = "there is no such output in this conversation"
		}
		contains(t, "a piece", out.Output, want)
	}
}

// A script may apply patches: they are recorded, shown and undone like those of the
// tool, in every sandbox, also where a profile sets PATH.
func TestPatchInAScript(t *testing.T) {
	t.Parallel()
	const before, after = "one\ntwo\nthree\n", "one\n2\nthree\n"
	const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n three\n*** End Patch\n"
	script := "echo begin\napply_patch <<'EOF' && echo applied\n" + patch + "EOF\ncat a.txt"
	for _, mode := range []string{"workspace-write", "danger-full-access"} {
		for name, call := range map[string]modeltest.Step{
			"exec_command": toolCall("c", "exec_command", map[string]any{"cmd": script}),
			"shell":        toolCall("c", "shell", map[string]any{"command": []string{"bash", "-lc", script}}),
		} {
			t.Run(mode+" "+name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, wirecheck.Responses, "", modeltest.Respond(call), modeltest.Respond(modeltest.Say("done")))
				s.file("a.txt", before)
				out, errs, code := s.run("exec", "--json", "-s", mode, "go")
				if code != 0 || s.read("a.txt") != after {
					t.Fatalf("exit code %d, a.txt is %q\n%s%s", code, s.read("a.txt"), out, errs)
				}
				contains(t, "clients see a command and a patch", out, `"type":"file_change","changes":[{"path":"`+filepath.Join(s.work, "a.txt")+`","kind":"update"}],"status":"completed"`, "applied")
				id := s.conversation()
				contains(t, "the model sees the patch's result", s.outputs(id)[0].Output, "begin", "Patch applied. Files changed:", "M a.txt", "applied")
				s.must("undo", id, "--yes")
				if got := s.read("a.txt"); got != before {
					t.Errorf("after undo a.txt is %q", got)
				}
				s.fsck(id)
			})
		}
	}
}

// A patch in a script that a kill interrupts has happened whole or not at all, the record
// says which, and what has happened can be undone.
func TestKillInPatchOfAScript(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("some line of text\n", 20_000)
	script := "echo begin\napply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f\n@@\n-old\n+new\n*** Add File: d/e\n+e\n*** End Patch\nEOF\nsleep 1000"
	for i := range 3 {
		s := newSite(t, wirecheck.Chat, "", modeltest.Respond(toolCall("c", "exec_command", map[string]any{"cmd": script, "yield_time_ms": 100_000})))
		s.srv.Otherwise(modeltest.Respond(modeltest.Say("so")))
		s.file("f", big+"old\n")
		proc := s.start("exec", "-s", "workspace-write", "go")
		id := s.conversation()
		mark := []string{"patch_started", "patch_committed", "patch_settled"}[i]
		s.awaitKind(mark)
		_ = proc.cmd.Process.Signal(syscall.SIGKILL)
		<-proc.done
		s.must("exec", "resume", id, "and?")
		s.fsck(id)
		applied := strings.Contains(s.journal(), `"applied":true`)
		now := s.read("f")
		if want := map[bool]string{false: big + "old\n", true: big + "new\n"}[applied]; now != want || (s.read("d/e") == "e\n") != applied {
			t.Fatalf("recorded as applied %t, f ends in %q, d/e is %q", applied, now[len(now)-4:], s.read("d/e"))
		}
		if !applied {
			continue
		}
		s.must("undo", id, "--yes", "--turn", "1")
		if s.read("f") != big+"old\n" || s.read("d/e") != "(none)" {
			t.Error("undo did not restore it")
		}
	}
}

// A patch that does not fit shows nothing of the files in which fermata keeps keys.
func TestPatchesShowNoKeys(t *testing.T) {
	t.Parallel()
	patch := func(home string) string {
		return "*** Begin Patch\n*** Update File: " + home + "/auth.json\n@@\n-{\"OPENAI_API_KEY\": \"sk-other\"}\n+x\n*** End Patch\n"
	}
	s := newSite(t, wirecheck.Chat, "")
	s.srv.Add(
		modeltest.Respond(toolCall("a", "apply_patch", map[string]any{"input": patch(s.home)})),
		modeltest.Respond(toolCall("b", "exec_command", map[string]any{"cmd": "echo; apply_patch <<'EOF'\n" + patch(s.home) + "EOF"})),
		modeltest.Respond(modeltest.Say("done")))
	if err := os.WriteFile(filepath.Join(s.home, "auth.json"), []byte(`{"OPENAI_API_KEY": "sk-hidden"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("exec", "-s", "workspace-write", "go")
	for _, out := range s.outputs(s.conversation()) {
		if strings.Contains(out.Output, "sk-hidden") || !out.Failed {
			t.Errorf("got %+v", out)
		}
	}
}

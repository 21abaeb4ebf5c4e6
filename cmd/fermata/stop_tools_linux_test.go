package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	p "github.com/fermata-agent/fermata/protocol"
)

// silentServer accepts connections and answers nothing. The channel gets a value for each.
func silentServer(t *testing.T) (address string, reached <-chan struct{}) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	calls := make(chan struct{}, 100)
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			calls <- struct{}{}
		}
	}()
	return "http://" + l.Addr().String() + "/", calls
}

// A stop in the middle of any tool ends it: each call has one output, nothing runs any more, and the next turn, which
// the service judges by its history, works.
func TestStopInEveryTool(t *testing.T) {
	t.Parallel()
	address, reached := silentServer(t)
	started := func(what string) func(*site, string) {
		return func(s *site, _ string) {
			eventually(s.t, what, func() bool { _, err := os.Stat(filepath.Join(s.work, "began")); return err == nil })
		}
	}
	const hang = "touch began; sleep 631"
	for name, tt := range map[string]struct {
		replies []modeltest.Reply
		middle  func(s *site, id string) // waits until the call is under way
	}{
		"exec_command": {[]modeltest.Reply{modeltest.Respond(toolCall("c", "exec_command", map[string]any{"cmd": hang, "yield_time_ms": 100_000}))}, started("the command runs")},
		"exec_command on a terminal": {
			[]modeltest.Reply{modeltest.Respond(toolCall("c", "exec_command", map[string]any{"cmd": hang, "tty": true, "yield_time_ms": 100_000}))}, started("the command runs"),
		},
		"write_stdin": {
			[]modeltest.Reply{
				modeltest.Respond(toolCall("a", "exec_command", map[string]any{"cmd": "read line; " + hang, "tty": true, "yield_time_ms": 100})),
				modeltest.Respond(toolCall("b", "write_stdin", map[string]any{"session_id": 1, "chars": "go\n", "yield_time_ms": 100_000})),
			}, started("the command has read"),
		},
		"shell": {[]modeltest.Reply{modeltest.Respond(toolCall("c", "shell", map[string]any{"command": []string{"sh", "-c", hang}}))}, started("the command runs")},
		"grep beside read_file, list_files, view_image and update_plan": {
			[]modeltest.Reply{modeltest.Respond(
				toolCall("r", "read_file", map[string]any{"path": "a.txt"}), toolCall("l", "list_files", map[string]any{}), toolCall("g", "grep", map[string]any{"pattern": "x"}),
				toolCall("v", "view_image", map[string]any{"path": "a.txt"}), toolCall("p", "update_plan", map[string]any{"plan": []any{map[string]any{"step": "s", "status": "pending"}}}),
			)}, started("the search runs"),
		},
		"web_fetch": {[]modeltest.Reply{modeltest.Respond(toolCall("c", "web_fetch", map[string]any{"url": address}))}, func(*site, string) { <-reached }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, wirecheck.Chat, "", tt.replies...)
			s.srv.Otherwise(modeltest.Respond(modeltest.Say("so")))
			s.file("a.txt", "a\n")
			bin := filepath.Join(s.dir, "bin")
			if err := os.Mkdir(bin, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(bin, "rg"), []byte("#!/bin/sh\n"+hang+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			s.env = append(s.env, "PATH="+bin+":"+os.Getenv("PATH"))
			proc := s.start("exec", "go")
			id := s.conversation()
			tt.middle(s, id)
			proc.signal(syscall.SIGINT)
			if code := proc.code(); code != 130 {
				t.Errorf("exit code %d\n%s", code, proc.err.String())
			}
			eventually(t, "nothing runs any more", func() bool { return len(traces(s.work)) == 0 })
			aborted, calls, outputs := 0, 0, map[p.CallID]int{}
			for _, e := range s.events(id) {
				switch b := e.Body.(type) {
				case *p.ToolCall:
					calls++
				case *p.ToolOutput:
					if outputs[b.Call]++; b.Aborted {
						aborted++
					}
				}
			}
			if len(outputs) != calls || aborted == 0 {
				t.Errorf("%d calls have %v outputs, %d of them aborted", calls, outputs, aborted)
			}
			s.must("exec", "resume", id, "and?")
			s.fsck(id)
		})
	}
}

// A stop in the middle of a change of many files leaves all of them changed or none, the record says which, and what was
// changed can be undone.
func TestStopInEveryEdit(t *testing.T) {
	t.Parallel()
	files := longtest.Default(100, 10)
	body := strings.Repeat("some line of text\n", 2000)
	var patch strings.Builder
	for i := range files {
		fmt.Fprintf(&patch, "*** Update File: f%d\n@@\n-old\n+new\n", i)
	}
	whole := "*** Begin Patch\n" + patch.String() + "*** End Patch\n"
	for name, tt := range map[string]struct {
		call  modeltest.Step
		files int
		plain int // which of the instants a plain run takes; -1 is all
	}{
		"apply_patch":           {toolCall("c", "apply_patch", map[string]any{"input": whole}), files, -1},
		"apply_patch, a script": {toolCall("c", "exec_command", map[string]any{"cmd": "echo begin\napply_patch <<'EOF'\n" + whole + "EOF\nsleep 631", "yield_time_ms": 100_000}), files, 2},
		"edit":                  {toolCall("c", "edit", map[string]any{"path": "f0", "old_text": "old\n", "new_text": "new\n"}), 1, 0},
		"write":                 {toolCall("c", "write", map[string]any{"path": "f0", "content": body + "new\n"}), 1, 1},
	} {
		for i, mark := range []string{"tool_call", "patch_started", "patch_committed"} {
			if !longtest.On() && i != tt.plain && tt.plain >= 0 {
				continue
			}
			t.Run(name+" at "+mark, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, wirecheck.Chat, "", modeltest.Respond(tt.call))
				s.srv.Otherwise(modeltest.Respond(modeltest.Say("so")))
				for i := range tt.files {
					s.file(fmt.Sprintf("f%d", i), body+"old\n")
				}
				proc := s.start("exec", "-s", "workspace-write", "go")
				id := s.conversation()
				s.awaitKind(mark)
				_ = proc.cmd.Process.Signal(syscall.SIGINT) // it may have ended
				if code := proc.code(); code != 130 && code != 0 {
					t.Errorf("exit code %d\n%s", code, proc.err.String())
				}
				applied := func() bool { return strings.Contains(s.journal(), `"applied":true`) }
				check := func(when string, changed bool) {
					t.Helper()
					want := body + map[bool]string{false: "old\n", true: "new\n"}[changed]
					for i := range tt.files {
						if got := s.read(fmt.Sprintf("f%d", i)); got != want {
							t.Fatalf("%s, recorded as applied %t: f%d ends in %q", when, applied(), i, got[max(0, len(got)-4):])
						}
					}
				}
				if applied() || !strings.Contains(s.journal(), `"kind":"patch_committed"`) { // else a slow disk has kept it from its end
					check("after the stop", applied())
				}
				s.must("exec", "resume", id, "and?")
				s.fsck(id)
				check("after the next turn", applied())
				if applied() {
					s.must("undo", id, "--yes", "--turn", "1")
					check("after undo", false)
				}
			})
		}
	}
}

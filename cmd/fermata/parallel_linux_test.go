package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	p "github.com/fermata-agent/fermata/protocol"
)

// together is a command that ends when so many like it run.
func together(i, n int) modeltest.ToolCall {
	cmd := fmt.Sprintf("touch began%d; until [ $(ls began* | wc -l) -ge %d ]; do sleep 0.02; done; echo %d", i, n, i)
	return modeltest.ToolCall{ID: fmt.Sprint("call_", i), Name: "exec_command", Arguments: fmt.Sprintf(`{"cmd":%q,"yield_time_ms":100000}`, cmd)}
}

// Eight commands of one response run at the same time: each of them waits for the others. Their outputs are sent in
// the order of the calls, and none of them comes between the lines of another on the screen.
func TestCommandsRunSideBySide(t *testing.T) {
	t.Parallel()
	onEveryWire(t, func(t *testing.T, w wirecheck.Wire) {
		var calls []modeltest.ToolCall
		for i := range 8 {
			calls = append(calls, together(i, 8))
		}
		s := newSite(t, w, "", modeltest.Respond(modeltest.Calls(calls...)), modeltest.Respond(modeltest.Say("done")))
		_, errs, code := s.run("exec", "--sandbox", "workspace-write", "go")
		if code != 0 {
			t.Fatalf("exit code %d\n%s", code, errs)
		}
		var got []string
		for _, it := range s.srv.Wait(2).Items {
			if it.Kind == wirecheck.Output {
				got = append(got, it.ID+" "+it.Text[strings.LastIndex(it.Text, "\n")-1:][:1])
			}
		}
		for i := range 8 {
			if i >= len(got) || got[i] != fmt.Sprintf("call_%d %d", i, i) {
				t.Fatalf("the model was sent the outputs %q", got)
			}
			if block := fmt.Sprintf("echo %d\n  %d\n  (ok,", i, i); !strings.Contains(errs, block) {
				t.Errorf("there is no %q in\n%s", block, errs)
			}
		}
	})
}

// With max_parallel_calls = 1 they run one at a time.
func TestCommandsRunOneAtATime(t *testing.T) {
	t.Parallel()
	call := func(i int) modeltest.ToolCall {
		return modeltest.ToolCall{ID: fmt.Sprint("call_", i), Name: "exec_command", Arguments: `{"cmd":"mkdir busy && sleep 0.1 && rmdir busy","yield_time_ms":100000}`}
	}
	s := newSite(t, wirecheck.Chat, "", modeltest.Respond(modeltest.Calls(call(0), call(1), call(2))), modeltest.Respond(modeltest.Say("done")))
	s.prepend("max_parallel_calls = 1\n")
	s.must("exec", "--sandbox", "workspace-write", "go")
	for _, it := range s.srv.Wait(2).Items {
		if it.Kind == wirecheck.Output && !strings.Contains(it.Text, "code 0") {
			t.Errorf("a command ran beside another: %s", it.Text)
		}
	}
}

// An interrupt ends all commands that run, and one batch ends the turn: each call has one output.
func TestInterruptCommandsSideBySide(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Responses, "", modeltest.Respond(modeltest.Calls(together(0, 4), together(1, 4), together(2, 4))), modeltest.Respond(modeltest.Say("so")))
	proc := s.start("exec", "--sandbox", "workspace-write", "go")
	id := s.conversation()
	eventually(t, "three commands run", func() bool {
		m, err := filepath.Glob(filepath.Join(s.work, "began*"))
		return err == nil && len(m) == 3
	})
	proc.signal(syscall.SIGINT)
	if code := proc.code(); code != 130 {
		t.Errorf("exit code %d\n%s", code, proc.err.String())
	}
	eventually(t, "nothing runs any more", func() bool { return len(traces(s.work)) == 0 })
	aborted := 0
	for _, e := range s.events(id) {
		if b, ok := e.Body.(*p.ToolOutput); ok && b.Aborted {
			aborted++
		}
	}
	if aborted != 3 {
		t.Errorf("%d outputs are aborted", aborted)
	}
	s.must("exec", "resume", id, "and?")
	s.fsck(id)
}

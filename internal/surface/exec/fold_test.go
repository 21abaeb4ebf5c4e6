package exec

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// screenOf runs a turn to its first question, which ask puts, and returns what is on the terminal then.
func screenOf(t *testing.T, ask func(*run)) (screen string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) {
			o.ErrTerminal, o.Plain, o.Prompt = true, true, &Prompt{In: strings.NewReader("")}
		})
		m := r.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		ask(r)
		r.e.Request().Answer("done")
		<-r.done
		screen, _, _ = strings.Cut(r.err.String(), "this? ")
	})
	return screen
}

// Whatever a command consists of, its first line and its last are on the screen when it has to be judged: blank lines
// are counted, and of a long one the beginning is repeated.
func TestApprovalsAreFolded(t *testing.T) {
	var long strings.Builder
	for i := range 60 {
		fmt.Fprintf(&long, "echo %d\n", i)
	}
	for name, tt := range map[string]struct {
		script string
		want   []string
		most   int // lines
	}{
		"blank lines":            {"rm -rf x" + strings.Repeat("\n", 301) + "ls", []string{"$ rm -rf x\n  ⋮ 300 blank lines\n  ls\n"}, 12},
		"spaces":                 {"rm -rf x" + strings.Repeat(" ", 50_000) + "; ls", []string{"$ rm -rf x\n  ; ls\n"}, 12},
		"more than a line shows": {"true " + strings.Repeat("x ", 2000) + "; rm -rf y", []string{"; rm -rf y\n"}, 80},
		"many lines":             {"rm -rf x\n" + long.String() + "rm -rf y", []string{"$ rm -rf x\n", "  echo 31\n", "  rm -rf y\n  the call above has 62 lines; it begins: rm -rf x\n? waiting"}, 80},
		"controls":               {"rm x\r\x1b[2Kls", []string{"$ rm x␍␛[2Kls\n"}, 12},
	} {
		screen := screenOf(t, func(r *run) { r.e.Run().Ask("bash", "-c", tt.script) })
		for _, want := range tt.want {
			if !strings.Contains(screen, want) {
				t.Errorf("%s: want %q in\n%s", name, want, screen)
			}
		}
		if n := strings.Count(screen, "\n"); n > tt.most {
			t.Errorf("%s: %d lines", name, n)
		}
	}
}

// A command that runs without a question, such as one that fermata approve has answered, is folded as well.
func TestRunningCommandsAreFolded(t *testing.T) {
	screen := screenOf(t, func(r *run) {
		run := r.e.Run()
		script := "rm -rf x" + strings.Repeat("\n", 301) + "ls\n\nls"
		_ = run.Call.Host.Record(context.Background(), &p.CommandStarted{Call: run.Call.ID, Command: []string{"bash", "-c", script}})
		run.Finish("")
	})
	if !strings.Contains(screen, "$ rm -rf x\n⋮ 300 blank lines\nls\n\nls\n") {
		t.Errorf("got\n%s", screen)
	}
}

// The reason of an approval, and what an MCP server asks, push nothing off the screen.
func TestQuestionsAreFolded(t *testing.T) {
	blank := "first" + strings.Repeat("\n", 300) + "last"
	screen := screenOf(t, func(r *run) {
		r.e.Run().Question(p.ApprovalRequested{Kind: p.ApproveCommand, Command: []string{"make"}, Reason: blank})
	})
	if !strings.Contains(screen, "? waiting for approval: first\n  ⋮ 299 blank lines\n  last\n") {
		t.Errorf("the reason:\n%s", screen)
	}
	screen = screenOf(t, func(r *run) {
		run := r.e.Run()
		_, _ = run.Call.Host.(tool.Elicitor).Elicit(context.Background(), p.ElicitationRequested{Server: "s\rx", Message: strings.Repeat("line\n", 100) + "\rlast"})
		run.Finish("")
	})
	if !strings.Contains(screen, "The MCP server s␍x asks: line\n") || !strings.Contains(screen, "… 83 more lines; the last one is:\n  ␍last\n") || strings.Count(screen, "\n") > 30 {
		t.Errorf("the question of a server:\n%s", screen)
	}
}

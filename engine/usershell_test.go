package engine_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

func TestUserShell(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		rc := e.Must(id, p.UserShell{Command: "ls -l"})
		if rc.Turn != 1 || rc.Seq == 0 {
			t.Errorf("receipt %+v", rc)
		}
		run := e.Run()
		if run.Call.Name != "user_shell" || run.Call.Arguments != `{"command":"ls -l"}` || run.Call.Grant != p.Approved {
			t.Errorf("call %+v", run.Call)
		}
		run.Print("a b\n")
		run.Return(p.ToolOutput{Output: "{}", Command: &p.CommandResult{Output: "a b\n", ExitCode: 2}})
		w.ExpectExactly("turn_started", "user_message !ls -l", "tool_call 1.0.1 user_shell", "call_started 1.0.1 approved",
			"tool_output 1.0.1 {}", "turn_ended completed")
		e.Idle() // no model is asked
		e.Say(id, "and?")
		r := e.Request()
		items := r.Prompt.Items
		if got, want := p.PlainText(items[len(items)-2].Content), "I ran this command myself:\n$ ls -l\nExit code 2 after 0.0 s. Output:\na b\n"; got != want {
			t.Errorf("the model is told %q, want %q", got, want)
		}
		for _, spec := range r.Prompt.Tools {
			if spec.Name == "user_shell" {
				t.Error("the model is told of the user's own tool")
			}
		}
		r.Answer("yes")
		w.Expect("turn_ended completed")
		verify(t, e, id)
	})
}

func TestUserShellIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		if _, err := e.Submit(t.Context(), id, p.UserShell{}); !errors.Is(err, turn.ErrEmpty) {
			t.Errorf("without a command: %v", err)
		}
		refused := func(while string) {
			t.Helper()
			synctest.Wait()
			if _, err := e.Submit(t.Context(), id, p.UserShell{Command: "ls"}); !errors.Is(err, turn.ErrBusy) {
				t.Errorf("while %s: %v", while, err)
			}
		}
		e.Say(id, "go")
		r := e.Request()
		refused("the model speaks")
		r.Call("c", "work", "{}")
		r.End()
		run := e.Run()
		refused("a call runs")
		run.Ask("rm")
		refused("an approval is open")
		e.Must(id, p.Interrupt{})
		w.Expect("turn_ended interrupted")
		e.Must(id, p.UserShell{Command: "sleep"})
		refused("another runs")
		e.Run().Finish("x")
		w.Expect("turn_ended completed")
		w.Nothing()
	})
}

func TestUserShellIsStopped(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Must(id, p.UserShell{Command: "sleep 600"})
		run := e.Run()
		run.Print("zzz")
		e.Must(id, p.Interrupt{})
		w.Expect("stop_requested interrupted", "tool_output 1.0.1 aborted", "turn_ended interrupted")
		w.Nothing()
		e.Say(id, "and?")
		items := e.Request().Prompt.Items
		text := p.PlainText(items[len(items)-2].Content)
		if !strings.HasPrefix(text, "I ran this command myself:\n$ sleep 600\naborted after 0.0 s: the user stopped") || !strings.HasSuffix(text, "zzz") {
			t.Errorf("the model is told %q", text)
		}
		if d := cmp.Diff([]string{"user <environment_context>", "user I ran this command myself", "user and?"}, promptLines(items)); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
	})
}

func promptLines(items []*p.PromptItem) (lines []string) {
	for _, it := range items {
		lines = append(lines, enginetest.PromptLine(it))
	}
	return lines
}

func TestUserShellIsCutByACrash(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		e.Must(id, p.UserShell{Command: "make"})
		run := e.Run()
		run.Print("cc a.c\n")
		time.Sleep(200 * time.Millisecond)
		e = kill(t, e, id, enginetest.Options{})
		w := e.Watch(id, 1)
		w.Expect("stop_requested crashed", "tool_output 1.0.1 aborted", "turn_ended crashed")
		verify(t, e, id)
		e.Say(id, "and?")
		items := e.Request().Prompt.Items
		text := p.PlainText(items[len(items)-2].Content)
		if !strings.Contains(text, "$ make\naborted after") || !strings.HasSuffix(text, "cc a.c\n") {
			t.Errorf("the model is told %q", text)
		}
	})
}

// What is typed while the command runs joins it, and is answered then.
func TestMessageSteeredIntoUserShell(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Must(id, p.UserShell{Command: "ls"})
		run := e.Run()
		e.Say(id, "explain", p.Steer)
		e.Idle()
		run.Finish("x")
		r := e.Request()
		if d := cmp.Diff([]string{"user <environment_context>", "user I ran this command myself", "user explain"}, r.Inputs()); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
		r.Answer("files")
		w.Expect("user_message explain", "model_requested 1", "assistant_message files", "turn_ended completed")
		verify(t, e, id)
	})
}

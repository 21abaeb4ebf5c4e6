package shell_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/store/memory"
	"github.com/fermata-agent/fermata/tool"
	"github.com/fermata-agent/fermata/tool/patch"
	"github.com/fermata-agent/fermata/tool/read"
	"github.com/fermata-agent/fermata/tool/shell"
)

// caller makes the call that the last message is, such as "shell {…}", and repeats its output.
var caller = engine.ModelFunc(func(_ context.Context, r engine.Request, reply *engine.Reply) error {
	if last := r.Items[len(r.Items)-1]; last.Kind == protocol.PromptOutput {
		reply.Text(last.Text)
		return nil
	}
	name, arguments, _ := strings.Cut(r.LastMessage(), " ")
	reply.Call(fmt.Sprint("call_", len(r.Items)), name, arguments)
	return nil
})

// A place is a conversation in a directory, with tools.
type place struct {
	t   *testing.T
	e   *engine.Local
	id  protocol.ConversationID
	dir string
}

func newPlace(t *testing.T, o tool.Options, mode protocol.SandboxMode) *place {
	t.Helper()
	sh, err := shell.New(o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{
		Store: memory.New(), Model: caller, Tools: []engine.Tool{sh, patch.New(o), patch.Write(o), read.New(o), loud(sh)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown(context.Background()) })
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	id, err := e.Create(t.Context(), protocol.Settings{Cwd: dir, Approval: protocol.ApprovalNever, Sandbox: protocol.SandboxPolicy{Mode: mode}})
	if err != nil {
		t.Fatal(err)
	}
	return &place{t, e, id, dir}
}

// call runs a turn with one call and returns its output.
func (p *place) call(ctx context.Context, text string, fn func(protocol.Event)) (protocol.ToolOutput, engine.TurnEnd) {
	p.t.Helper()
	var out protocol.ToolOutput
	end, err := engine.RunTurn(ctx, p.e, p.id, protocol.UserTurn{Content: protocol.Text(text)}, func(ev protocol.Event) {
		if b, ok := ev.Body.(*protocol.ToolOutput); ok {
			out = *b
		}
		if fn != nil {
			fn(ev)
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return out, end
}

// loud is a tool of a program around the shell.
func loud(inner engine.Tool) engine.Tool {
	spec := inner.Spec()
	spec.Name = "loud"
	return engine.NewTool(spec, func(ctx context.Context, c engine.Call) (engine.Output, error) {
		out, err := inner.Run(ctx, c)
		out.Text = strings.ToUpper(out.Text)
		return out, err
	})
}

// Programs of other modules run the same tools as fermata does.
func TestToolsOfAProgram(t *testing.T) {
	p := newPlace(t, tool.Options{}, protocol.SandboxFullAccess)
	out, _ := p.call(t.Context(), `shell {"command":["echo","hello"]}`, nil)
	if out.Failed || out.Command == nil || out.Command.Output != "hello\n" {
		t.Errorf("shell: %+v", out)
	}
	if out, _ = p.call(t.Context(), `write {"path":"a.txt","content":"one\n"}`, nil); out.Failed {
		t.Errorf("write: %+v", out)
	}
	if out, _ = p.call(t.Context(), `read_file {"path":"a.txt"}`, nil); out.Failed || !strings.Contains(out.Output, "one") {
		t.Errorf("read_file: %+v", out)
	}

	// A tool around another changes the text, and keeps what is known of the command.
	if out, _ = p.call(t.Context(), `loud {"command":["echo","hello"]}`, nil); !strings.Contains(out.Output, "HELLO") || out.Command == nil || out.Command.Output != "hello\n" {
		t.Errorf("around the shell: %+v", out)
	}
}

// The options keep tools from what is the program's own, whatever the conversation allows.
func TestSecretsOfAProgram(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, tool.Options{Secrets: []string{secret}}, protocol.SandboxReadOnly)
	for _, call := range []string{
		fmt.Sprintf(`read_file {"path":%q}`, secret), fmt.Sprintf(`shell {"command":["cat",%q]}`, secret), `read_file {"path":"/proc/self/environ"}`,
	} {
		out, _ := p.call(t.Context(), call, nil)
		if strings.Contains(out.Output, "s3cret") || strings.HasPrefix(call, "read_file") && !out.Failed {
			t.Errorf("%s: %+v", call, out)
		}
	}
}

// An interrupt ends the command and everything that it started.
func TestInterruptEndsTheCommand(t *testing.T) {
	p := newPlace(t, tool.Options{}, protocol.SandboxFullAccess)
	ctx, interrupt := context.WithCancel(t.Context())
	out, end := p.call(ctx, `shell {"command":["sh","-c","sleep 1000 & echo begun; wait"]}`, func(ev protocol.Event) {
		if _, ok := ev.Body.(*protocol.Delta); ok {
			interrupt()
		}
	})
	if end.End.Reason != protocol.Interrupted || !out.Aborted || out.Command == nil || out.Command.Killed < 2 {
		t.Errorf("end %+v, output %+v", end.End, out)
	}
}

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// mcpSDKDir is where the official TypeScript client is, unchanged and pinned, with the
// script that drives us through it.
const mcpSDKDir = "../../e2e/mcp-sdk"

// installMCPSDK fetches the client, if it is not there, once.
var installMCPSDK = sync.OnceValue(func() error { return npmInstall(mcpSDKDir, "@modelcontextprotocol/sdk") })

// typeScript plays a scenario of the script and reads what it saw into v.
func (s *mcpSite) typeScript(v any, args ...string) {
	s.t.Helper()
	if err := installMCPSDK(); err != nil {
		s.t.Skipf("the TypeScript client of MCP is not tested: %v", err)
	}
	script, err := filepath.Abs(filepath.Join(mcpSDKDir, "client.mjs"))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{script}, args...)...)
	cmd.Dir, cmd.Env = s.work, append(s.env, "FERMATA_BIN="+s.bin, "TMPDIR="+s.dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("node client.mjs %q: %v\n%s%s", args, err, out, stderr.String())
	}
	if err := json.Unmarshal(out, v); err != nil {
		s.t.Fatalf("node client.mjs %q: %v: %s", args, err, out)
	}
}

func TestTypeScriptHandshake(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	var got struct {
		Server       struct{ Name, Version string }
		Capabilities map[string]any
		Tools        []struct {
			Name     string
			Required []string
			Output   bool
		}
		UnknownTool   struct{ IsError bool }
		UnknownMethod caughtCode
	}
	s.typeScript(&got, "handshake")
	if got.Server.Name != "fermata" || got.Server.Version == "" || got.Capabilities["tools"] == nil || got.Capabilities["logging"] == nil {
		t.Errorf("the server is %+v, %v", got.Server, got.Capabilities)
	}
	want := map[string][]string{
		"codex": {"prompt"}, "codex-reply": {"prompt"}, "conversationCreate": {"prompt", "cwd"},
		"conversationSendMessage": {"conversation_id", "content"}, "conversationStream": {"conversation_id"}, "conversationsList": {},
	}
	for _, tool := range got.Tools {
		if tool.Output || !slices.Equal(tool.Required, want[tool.Name]) {
			t.Errorf("tool %+v, want %q required", tool, want[tool.Name])
		}
		delete(want, tool.Name)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
	if !got.UnknownTool.IsError {
		t.Error("an unknown tool is no error")
	}
	// The client looks at what the server can do and does not even ask.
	if got.UnknownMethod.Message == "" {
		t.Errorf("listResources: %+v", got.UnknownMethod)
	}
}

// A caughtCode is what the client threw.
type caughtCode struct {
	Name, Message string
	Code          any
	Value         any
}

func TestTypeScriptTurnsAndProgress(t *testing.T) {
	t.Parallel()
	// The client forgets the progress that comes together with the answer, so the
	// turn does not end before it has seen some.
	s := newMCPSite(t, "never",
		modeltest.Respond(shellCall("call_w", "sh", "-c", "until test -e seen; do sleep 0.05; done")),
		modeltest.Respond(modeltest.Say("first")), modeltest.Respond(modeltest.Say("second")))
	var got struct {
		ID       string
		Answers  []string
		Errors   []bool
		Progress []struct {
			Progress int
			Message  string
		}
		Events []string
	}
	s.typeScript(&got, "turns", filepath.Join(s.work, "seen"))
	if got.ID != s.conversation() || !slices.Equal(got.Answers, []string{"first", "second"}) || !slices.Equal(got.Errors, []bool{false, false}) {
		t.Errorf("%+v", got)
	}
	for i, p := range got.Progress {
		if p.Progress != i+1 {
			t.Errorf("progress %+v", got.Progress)
		}
	}
	if len(got.Progress) == 0 || got.Progress[0].Message != "session_configured" {
		t.Errorf("progress %+v", got.Progress)
	}
	whole := slices.DeleteFunc(got.Events, func(e string) bool { return strings.HasSuffix(e, "_delta") || e == "token_count" })
	if d := cmp.Diff([]string{
		"session_configured", "task_started", "exec_command_begin", "exec_command_end", "agent_message", "task_complete", "task_started", "agent_message", "task_complete",
	}, whole); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

// An AbortSignal stops the turn and all it runs; the client that gave up goes on with
// the conversation.
func TestTypeScriptAbort(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never",
		modeltest.Respond(shellCall("call_s", "sh", "-c", "(sleep 611 & sleep 612 & wait) & touch running; sleep 613")),
		modeltest.Respond(modeltest.Say("I know.")))
	var got struct {
		Seen     caughtCode
		Answer   string
		Events   []string
		Requests []int
	}
	s.typeScript(&got, "abort", filepath.Join(s.work, "running"))
	if got.Seen.Value != nil || !strings.Contains(got.Seen.Message, "enough") || got.Answer != "I know." {
		t.Errorf("%+v", got)
	}
	if n := len(slices.DeleteFunc(slices.Clone(got.Events), func(e string) bool { return e != "turn_aborted" })); n != 1 {
		t.Errorf("%d turns aborted in %q", n, got.Events)
	}
	if len(got.Requests) != 2 {
		t.Errorf("events of requests %v", got.Requests)
	}
	eventually(t, "nothing runs any more", func() bool { return len(traces(s.dir)) == 0 })
	s.fsck()
}

func TestTypeScriptElicitation(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		action, answer string
		made           bool
		replies        []modeltest.Reply
	}{
		{"accept", "the end", true, []modeltest.Reply{modeltest.Respond(modeltest.Say("the end"))}},
		{"decline", "the end", false, []modeltest.Reply{modeltest.Respond(modeltest.Say("the end"))}},
		{"cancel", "turn interrupted", false, nil},
	} {
		t.Run(x.action, func(t *testing.T) {
			t.Parallel()
			s := newMCPSite(t, "untrusted", append([]modeltest.Reply{modeltest.Respond(shellCall("call_1", "touch", "made"))}, x.replies...)...)
			var got struct {
				Asked   []struct{ Message string }
				Answer  string
				IsError bool
			}
			s.typeScript(&got, "elicit", x.action)
			if len(got.Asked) != 1 || !strings.Contains(got.Asked[0].Message, "touch made") {
				t.Errorf("asked %+v", got.Asked)
			}
			if got.Answer != x.answer || got.IsError != (x.action == "cancel") {
				t.Errorf("answer %q, error %v", got.Answer, got.IsError)
			}
			if _, err := os.Stat(filepath.Join(s.work, "made")); (err == nil) != x.made {
				t.Errorf("the command ran: %v", err == nil)
			}
		})
	}
}

func TestTypeScriptAbortTakesTheQuestionBack(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "untrusted", modeltest.Respond(shellCall("call_1", "touch", "made")), modeltest.Respond(shellCall("call_1", "touch", "more")))
	var got struct {
		Seen caughtCode
		Back bool
	}
	s.typeScript(&got, "unasked")
	if got.Seen.Value != nil || !got.Back {
		t.Errorf("%+v", got)
	}
}

func TestTypeScriptStream(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", bareDone("Done"))
	var got struct{ Told []string }
	s.typeScript(&got, "stream")
	if d := cmp.Diff([]string{"notifications/initial_state", "task_started", "agent_message", "task_complete"}, got.Told); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

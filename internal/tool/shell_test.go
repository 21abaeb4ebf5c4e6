package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/protocol"
)

// A fakeHost remembers what a tool shows and records.
type fakeHost struct {
	text    string
	kinds   map[protocol.DeltaKind]string
	events  []protocol.Body
	refuse  error
	kept    []Background
	later   string // what background commands printed
	onWrite func(string)
}

func (h *fakeHost) Write(k protocol.DeltaKind, text string) {
	h.text += text
	if h.kinds == nil {
		h.kinds = map[protocol.DeltaKind]string{}
	}
	h.kinds[k] += text
	if h.onWrite != nil {
		h.onWrite(h.text)
	}
}

func (h *fakeHost) Record(_ context.Context, b protocol.Body) error {
	if h.refuse == nil {
		h.events = append(h.events, b)
	}
	return h.refuse
}

// Keep takes a command over, and remembers it.
func (h *fakeHost) Keep(_ context.Context, b protocol.BackgroundStarted, job Background) (protocol.BackgroundID, func(protocol.DeltaKind, string), error) {
	if h.refuse != nil {
		return 0, nil, h.refuse
	}
	b.ID = protocol.BackgroundID(len(h.kept) + 1)
	h.events = append(h.events, &b)
	h.kept = append(h.kept, job)
	return b.ID, func(_ protocol.DeltaKind, text string) { h.later += text }, nil
}

func shell(t *testing.T) *Shell {
	t.Helper()
	sp, err := spawner()
	if err != nil {
		t.Fatal(err)
	}
	return &Shell{Spawner: sp}
}

// spawner is one for all tests, as a process has one: the shim that it keeps ready is then used by the next test.
var spawner = sync.OnceValues(proc.NewSpawner)

func call(h Host, dir string, args any) Call {
	b, _ := json.Marshal(args)
	return Call{
		ID: protocol.CallID{Turn: 1, Response: 1}, Name: "shell", Arguments: string(b),
		Settings: protocol.Settings{
			Cwd: dir, Approval: protocol.ApprovalNever, Sandbox: protocol.SandboxPolicy{Mode: protocol.SandboxFullAccess},
		},
		Host: h,
	}
}

type params map[string]any

func sh(script string) params { return params{"command": []string{"sh", "-c", script}} }

func TestShellAnswersAsModelsExpect(t *testing.T) {
	h := &fakeHost{}
	dir := t.TempDir()
	res := shell(t).Run(t.Context(), call(h, dir, sh("echo one; echo two >&2; pwd; exit 3")))
	var got struct {
		Output   string
		Metadata struct {
			ExitCode int `json:"exit_code"`
		}
	}
	if err := json.Unmarshal([]byte(res.Output.Output), &got); err != nil {
		t.Fatalf("output %q: %v", res.Output.Output, err)
	}
	if got.Metadata.ExitCode != 3 || !res.Output.Failed || res.Output.Aborted {
		t.Errorf("output %+v", res.Output)
	}
	if d := cmp.Diff(map[protocol.DeltaKind]string{"stdout": "one\n" + dir + "\n", "stderr": "two\n"}, h.kinds); d != "" {
		t.Errorf("shown (-want +got):\n%s", d)
	}
	c := res.Output.Command
	if c.Output != h.text || got.Output != h.text {
		t.Errorf("kept %q, told %q, shown %q", c.Output, got.Output, h.text)
	}
	stderr := ""
	for _, r := range c.Stderr {
		stderr += c.Output[r[0]:r[1]]
	}
	if stderr != "two\n" {
		t.Errorf("stderr ranges %v give %q", c.Stderr, stderr)
	}
	started, ok := h.events[0].(*protocol.CommandStarted)
	if !ok || started.Cwd != dir || len(started.Process) == 0 {
		t.Errorf("recorded %+v", h.events)
	}
}

func TestShellArguments(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := shell(t)
	tests := []struct {
		name string
		args string
		want string // in the output
		fail bool
	}{
		{"unknown members are tolerated", `{"command":["echo","hi"],"color":true}`, "hi", false},
		{"a string is for a shell", `{"command":"echo $((1+1))"}`, "2", false},
		{"relative workdir", `{"command":["pwd"],"workdir":"sub"}`, filepath.Join(dir, "sub"), false},
		{"absolute workdir", `{"command":["pwd"],"workdir":"/"}`, `"/\n"`, false},
		{"timeout by its other name", `{"command":["sleep","60"],"timeout":50}`, "longer than 50ms", true},
		{"not JSON", `{"command":`, "failed to parse function arguments:", true},
		{"no command", `{}`, "failed to parse function arguments:", true},
		{"empty command", `{"command":[""]}`, "failed to parse function arguments:", true},
		{"no such program", `{"command":["/no/such/program"]}`, "no such file", true},
		{"no such directory", `{"command":["pwd"],"workdir":"nowhere"}`, "nowhere", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := call(&fakeHost{}, dir, nil)
			c.Arguments = tt.args
			out := s.Run(t.Context(), c).Output
			if !strings.Contains(out.Output, tt.want) || out.Failed != tt.fail || out.Aborted {
				t.Errorf("got %+v, want %q, failed %t", out, tt.want, tt.fail)
			}
		})
	}
}

func TestShellStopped(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	h := &fakeHost{onWrite: func(text string) {
		if strings.HasSuffix(text, "ready\n") {
			cancel(errors.New("stop"))
		}
	}}
	res := shell(t).Run(ctx, call(h, t.TempDir(), sh("(trap '' TERM HUP; sleep 600) & echo ready; sleep 600")))
	out := res.Output
	if !out.Aborted || out.Output != "ready\n" || out.Command.Killed < 2 {
		t.Errorf("output %+v, command %+v", out, out.Command)
	}
}

// What cannot be recorded is not done.
func TestShellDoesNotRunWhatIsNotRecorded(t *testing.T) {
	dir := t.TempDir()
	h := &fakeHost{refuse: errors.New("disk full")}
	res := shell(t).Run(t.Context(), call(h, dir, sh("touch ran")))
	if !res.Output.Failed || !strings.Contains(res.Output.Output, "disk full") {
		t.Errorf("output %+v", res.Output)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

func TestShellTimeout(t *testing.T) {
	s := shell(t)
	s.Timeout = 50 * time.Millisecond
	res := s.Run(t.Context(), call(&fakeHost{}, t.TempDir(), sh("echo before; sleep 600")))
	if out := res.Output; !out.Failed || out.Aborted || !out.Command.TimedOut || !strings.Contains(out.Output, "longer than 50ms") {
		t.Errorf("output %+v", out)
	}
}

func TestShellShortensWhatTheModelIsTold(t *testing.T) {
	res := shell(t).Run(t.Context(), call(&fakeHost{}, t.TempDir(), sh("seq 1 30000")))
	if n := len(res.Output.Output); n > 55_000 || !strings.Contains(res.Output.Output, "omitted") {
		t.Errorf("%d bytes: %.100q", n, res.Output.Output)
	}
	if c := res.Output.Command; !strings.HasSuffix(c.Output, "30000\n") || strings.Count(c.Output, "\n") != 30000 {
		t.Errorf("kept %d bytes", len(c.Output))
	}
}

// What is printed is kept byte for byte; what the model is told is valid text.
func TestShellKeepsBytes(t *testing.T) {
	h := &fakeHost{}
	res := shell(t).Run(t.Context(), call(h, t.TempDir(), sh(`printf 'caf\303'; printf '\251 \377\n'`)))
	if want := "café \xff\n"; h.text != want || res.Output.Command.Output != want {
		t.Errorf("shown %q, kept %q, want %q", h.text, res.Output.Command.Output, want)
	}
	if told := res.Output.Output; !utf8.ValidString(told) || !strings.Contains(told, "café \uFFFD") {
		t.Errorf("the model is told %q", told)
	}
}

func TestDecoderPutsCharactersTogether(t *testing.T) {
	text := "a é € 𝄐 z"
	for cut := range len(text) + 1 {
		for cut2 := cut; cut2 <= len(text); cut2++ {
			var d decoder
			got := d.decode([]byte(text[:cut])) + d.decode([]byte(text[cut:cut2])) + d.decode([]byte(text[cut2:])) + d.rest()
			if got != text {
				t.Fatalf("cut at %d and %d: %q", cut, cut2, got)
			}
		}
	}
	var d decoder
	if got := d.decode([]byte("x\xe2\x82")) + d.rest(); got != "x\xe2\x82" {
		t.Errorf("half a character at the end: %q", got)
	}
}

func TestReclaimOfSomethingLongGone(t *testing.T) {
	if n, err := Reclaim(t.Context(), json.RawMessage(`{"pid":1,"start":1,"boot":"another","token":"x"}`)); n != 0 || err != nil {
		t.Errorf("killed %d, %v", n, err)
	}
	if _, err := Reclaim(t.Context(), json.RawMessage(`nonsense`)); err == nil {
		t.Error("nonsense was taken")
	}
}

func TestPlan(t *testing.T) {
	h := &fakeHost{}
	c := call(h, "/", params{"explanation": "why", "plan": []params{{"step": "a", "status": "completed"}, {"step": "b", "status": "pending"}}})
	if out := (Plan{}).Run(t.Context(), c).Output; out.Output != "Plan updated" || out.Failed {
		t.Errorf("output %+v", out)
	}
	want := []protocol.Body{&protocol.PlanUpdated{
		Call: c.ID, Explanation: "why",
		Plan: []protocol.PlanStep{{Step: "a", Status: "completed"}, {Step: "b", Status: "pending"}},
	}}
	if d := cmp.Diff(want, h.events); d != "" {
		t.Errorf("recorded (-want +got):\n%s", d)
	}
	bad := call(h, "/", params{"plan": []params{{"step": "a", "status": "someday"}}})
	if out := (Plan{}).Run(t.Context(), bad).Output; !out.Failed {
		t.Errorf("a bad status was taken: %+v", out)
	}
}

func BenchmarkShell(b *testing.B) {
	sp, err := proc.NewSpawner()
	if err != nil {
		b.Fatal(err)
	}
	defer sp.Close()
	s := &Shell{Spawner: sp}
	for _, argv := range [][]string{{"true"}, {"bash", "-lc", "true"}} {
		b.Run(fmt.Sprint(argv), func(b *testing.B) {
			for b.Loop() {
				s.Run(b.Context(), call(&fakeHost{}, "/", params{"command": argv}))
			}
		})
	}
}

func (h *fakeHost) Output(_ context.Context, call protocol.CallID) (string, error) {
	return "", errors.New("no output of " + call.String())
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	p "github.com/fermata-agent/fermata/protocol"
)

// sdkDir is where the Codex SDK is, unchanged and pinned, with the script that
// drives us through it. What checks the outcome is here and not there, because it needs
// what the tests of the binary have: places of their own, and a look at the processes left.
const sdkDir = "../../e2e/codex-sdk"

var errNoNode = errors.New("node and npm are not installed")

// installSDK fetches the SDK, if it is not there, once.
var installSDK = sync.OnceValue(func() error { return npmInstall(sdkDir, "@openai/codex-sdk", "--omit=optional") })

// npmInstall fetches what a directory pins, unless the package is there already.
func npmInstall(dir, pkg string, flags ...string) error {
	return npm(dir, pkg, append([]string{"ci"}, flags...)...)
}

// npm has npm fetch the packages of a directory, unless the one that is named is there already.
func npm(dir, pkg string, args ...string) error {
	if !longtest.On() {
		return longtest.ErrOff
	}
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			return errNoNode
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", filepath.FromSlash(pkg))); err == nil {
		return nil
	}
	cmd := exec.Command("npm", append(args, "--ignore-scripts", "--no-audit", "--no-fund")...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// An sdk is a place in which the SDK drives the binary.
type sdk struct {
	*place
	srv *modeltest.Server
}

func newSDK(t *testing.T, replies ...modeltest.Reply) *sdk {
	t.Helper()
	if err := installSDK(); err != nil {
		t.Skipf("the Codex SDK is not tested: %v", err)
	}
	t.Parallel()
	s := &sdk{newPlace(t), modeltest.New(t, replies...)}
	s.env = append(s.env, "FERMATA_BIN="+s.bin, "MODEL_URL="+s.srv.URL(), "MODEL_KEY="+mockKey, "TMPDIR="+s.dir)
	return s
}

// node plays a scenario of the script and reads what it saw into v.
func (s *sdk) node(v any, args ...string) {
	s.t.Helper()
	script, err := filepath.Abs(filepath.Join(sdkDir, "sdk.mjs"))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{script}, args...)...)
	cmd.Dir, cmd.Env = s.work, s.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("node sdk.mjs %q: %v\n%s%s", args, err, out, stderr.String())
	}
	if err := json.Unmarshal(out, v); err != nil {
		s.t.Fatalf("node sdk.mjs %q: %v: %s", args, err, out)
	}
}

// noProcess waits until nothing is left of what ran.
func (s *sdk) noProcess() {
	s.t.Helper()
	eventually(s.t, "nothing runs any more", func() bool { return len(traces(s.dir)) == 0 })
}

// An sdkUsage is what the SDK says a thread has cost.
type sdkUsage struct {
	Input  int `json:"input_tokens"`
	Cached int `json:"cached_input_tokens"`
	Write  int `json:"cache_write_input_tokens"`
	Output int `json:"output_tokens"`
	Reason int `json:"reasoning_output_tokens"`
}

func cost(in, out int64) modeltest.Step {
	return modeltest.Usage(p.Usage{Input: in, Output: out, Total: in + out})
}

func TestSDKRun(t *testing.T) {
	s := newSDK(t,
		modeltest.Respond(modeltest.Think("hm"), shell("call_1", "echo one; exit 3"), cost(10, 1)),
		modeltest.Respond(modeltest.Say("Done."), cost(20, 2)))
	var got struct {
		ID    string
		Final string `json:"finalResponse"`
		Items []struct {
			ID, Type, Text, Command, Status, Message string
			Output                                   string `json:"aggregated_output"`
			Code                                     *int   `json:"exit_code"`
		}
		Usage sdkUsage
	}
	s.node(&got, "run")
	if got.Final != "Done." || got.ID != s.conversation() {
		t.Errorf("answer %q, thread %s", got.Final, got.ID)
	}
	if want := (sdkUsage{Input: 30, Output: 3}); got.Usage != want {
		t.Errorf("usage %+v, want %+v", got.Usage, want)
	}
	var items []string
	for _, it := range got.Items {
		line := strings.Join([]string{it.ID, it.Type, it.Text + it.Message, it.Command, it.Output, it.Status}, "|")
		if it.Code != nil {
			line += fmt.Sprint("|", *it.Code)
		}
		items = append(items, line)
	}
	want := []string{
		"item_0|error|-c: unknown: unknown key|||", "item_1|reasoning|hm|||",
		"item_2|command_execution||bash -lc 'echo one; exit 3'|one\n|failed|3", "item_3|agent_message|Done.|||",
	}
	if !slices.Equal(items, want) {
		t.Errorf("items\n%q, want\n%q", items, want)
	}
	first := s.srv.Wait(1)
	if by := first.Header.Get("Originator"); by != "codex_sdk_ts" {
		t.Errorf("originator %q", by)
	}
	if key := first.Header.Get("Authorization"); key != "Bearer "+mockKey {
		t.Errorf("key %q", key)
	}
}

func TestSDKStreamedRun(t *testing.T) {
	s := newSDK(t, modeltest.Respond(shell("call_1", "true")), modeltest.Respond(modeltest.Say("Do", "ne.")))
	var got struct {
		ID     string
		Events []struct{ Type string }
	}
	s.node(&got, "streamed")
	var types []string
	for _, e := range got.Events {
		types = append(types, e.Type)
	}
	want := []string{"thread.started", "item.completed", "turn.started", "item.started", "item.completed", "item.completed", "turn.completed"}
	if !slices.Equal(types, want) {
		t.Errorf("events %q, want %q", types, want)
	}
}

func TestSDKThreadAndResume(t *testing.T) {
	s := newSDK(t,
		modeltest.Respond(modeltest.Say("first"), cost(10, 1)), modeltest.Respond(modeltest.Say("second"), cost(20, 2)),
		modeltest.Respond(modeltest.Say("third"), cost(30, 3)))
	var two struct {
		IDs     []string
		Answers []string
		Usages  []sdkUsage
	}
	s.node(&two, "two")
	if two.IDs[0] == "" || two.IDs[0] != two.IDs[1] || !slices.Equal(two.Answers, []string{"first", "second"}) {
		t.Errorf("two turns: %+v", two)
	}
	if two.Usages[0].Input != 10 || two.Usages[1].Input != 30 {
		t.Errorf("the usage of a thread grows: %+v", two.Usages)
	}
	var again struct {
		ID, Answer string
		Usage      sdkUsage
	}
	s.node(&again, "resume", two.IDs[0])
	if again.ID != two.IDs[0] || again.Answer != "third" || again.Usage.Input != 60 || again.Usage.Output != 6 {
		t.Errorf("resumed: %+v", again)
	}
	matches(t, "end of the request", tail(s.srv.Wait(3), 5), `user  one`, `assistant  first`, `user  two`, `assistant  second`, `user  again`)
}

// caughtError is what the SDK threw.
type caughtError struct {
	Name, Message string
	Value         any
}

func TestSDKAbortInMidCommand(t *testing.T) {
	s := newSDK(t,
		modeltest.Respond(shell("call_s", "echo begun; (sleep 601 & sleep 602 & wait) & touch running; sleep 603")),
		modeltest.Respond(modeltest.Say("I know.")))
	var got struct {
		Aborted caughtError
		Answer  string
	}
	s.node(&got, "abort", filepath.Join(s.work, "running"))
	if got.Aborted.Name != "AbortError" || got.Answer != "I know." {
		t.Errorf("%+v", got)
	}
	s.noProcess()
	matches(t, "end of the request", tail(s.srv.Wait(2), 5),
		`user  work`, `call call_s .*`, `output call_s aborted.*begun.*`, `user  <turn_aborted>.*</turn_aborted>`, `user  and now\?`)
	s.fsck()
}

// However early or late an abort comes, it is an AbortError, and the next run works.
func TestSDKAbortsAtAnyTime(t *testing.T) {
	s := newSDK(t)
	s.srv.Otherwise(modeltest.From(func(r *modeltest.Request) modeltest.Reply {
		last := r.Items[len(r.Items)-1]
		switch {
		case last.Kind == wirecheck.User && last.Text == "at last":
			return modeltest.Respond(modeltest.Say("I know."))
		case last.Kind == wirecheck.Output:
			return modeltest.Respond(modeltest.SayCut("and"), modeltest.Stall())
		}
		return modeltest.Respond(modeltest.Say("I try."), shell(fmt.Sprintf("call_%d", r.Number), "sleep 0.02"))
	}))
	var got struct {
		Names  []string
		Answer string
	}
	s.node(&got, "hasty", "24")
	if others := slices.DeleteFunc(got.Names, func(n string) bool { return n == "AbortError" }); len(others) > 0 || got.Answer != "I know." {
		t.Errorf("%+v", got)
	}
	s.noProcess()
	s.fsck()
}

func TestSDKLeavesTheLoop(t *testing.T) {
	s := newSDK(t,
		modeltest.Respond(shell("call_s", "touch running; sleep 603")),
		modeltest.Respond(modeltest.Say("I know.")))
	var got struct {
		Seen   []string
		Answer string
	}
	s.node(&got, "leave", filepath.Join(s.work, "running"))
	if got.Answer != "I know." || !slices.Equal(got.Seen, []string{"thread.started", "item.completed", "turn.started", "item.started"}) {
		t.Errorf("%+v", got)
	}
	s.noProcess()
	matches(t, "end of the request", tail(s.srv.Wait(2), 3), `output call_s aborted.*`, `user  <turn_aborted>.*</turn_aborted>`, `user  and now\?`)
	s.fsck()
}

func TestSDKFailingTurnThrows(t *testing.T) {
	s := newSDK(t, modeltest.Status(400, `{"error":{"message":"no credit left","type":"insufficient_quota"}}`))
	var got caughtError
	s.node(&got, "fail")
	if got.Value != nil || !strings.HasPrefix(got.Message, "no credit left") {
		t.Errorf("thrown: %+v", got)
	}
	s.node(&got, "unknown")
	if got.Value != nil {
		t.Errorf("an unknown thread became %v", got.Value)
	}
	contains(t, "thrown", got.Message, "code 1", "no-such-thread", "no such conversation")
}

func TestSDKArguments(t *testing.T) {
	s := newSDK(t, modeltest.Respond(modeltest.Say(`{"n":1}`)), modeltest.Respond(modeltest.Say("plain")))
	s.image("one.png")
	s.image("two.png")
	var got struct {
		ID      string
		Answers []string
	}
	s.node(&got, "everything", s.work, "one.png", "two.png")
	if !slices.Equal(got.Answers, []string{`{"n":1}`, "plain"}) {
		t.Errorf("answers %q", got.Answers)
	}
	first, second := s.srv.Wait(1), s.srv.Wait(2)
	if first.Body()["model"] != "their-model" {
		t.Errorf("model %v", first.Body()["model"])
	}
	raw := string(first.Raw)
	contains(t, "request", raw, `"effort":"high"`, `look\n\nclosely`, `"type":"json_schema"`, `"properties":{"n":{"type":"integer"}}`, `<sandbox_mode>workspace-write`)
	if n := strings.Count(raw, pixel); n != 2 {
		t.Errorf("the model was shown %d images", n)
	}
	if strings.Contains(string(second.Raw), "json_schema") {
		t.Error("the schema of the first turn was sent again")
	}
}

package event

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

var (
	id    = p.CallID{Turn: 1, Response: 1, Index: 0}
	asked = &p.ToolCall{Call: id, WireID: "call_1", Name: "shell"}
	begun = &p.CommandStarted{Call: id, Command: []string{"ls", "-l"}, Cwd: "/w"}
)

// translations are events, those before them, and what is told: a line for each msg.
type translations map[string]struct {
	before []p.Body
	body   p.Body
	want   string
}

func TestTranslate(t *testing.T) {
	patch := &p.PatchStarted{Call: id, Changes: json.RawMessage(`{"/w/a":"delete"}`), AutoApproved: true}
	check(t, translations{
		"start":            {nil, &p.TurnStarted{}, `{"type":"task_started","model_context_window":null}`},
		"window":           {[]p.Body{&p.Configured{Settings: p.Settings{ContextWindow: 9}}}, &p.TurnStarted{}, `{"type":"task_started","model_context_window":9}`},
		"message":          {nil, &p.AssistantMessage{Text: "<hi>"}, `{"type":"agent_message","message":"<hi>"}`},
		"no message":       {nil, &p.AssistantMessage{}, ``},
		"message so far":   {nil, &p.Delta{Kind: p.DeltaMessage, Text: "h"}, `{"type":"agent_message_delta","delta":"h"}`},
		"reasoning":        {nil, &p.Reasoning{Text: "hm"}, `{"type":"agent_reasoning","text":"hm"}`},
		"secret reasoning": {nil, &p.Reasoning{}, ``},
		"reasoning so far": {nil, &p.Delta{Kind: p.DeltaReasoning, Text: "h"}, `{"type":"agent_reasoning_delta","delta":"h"}`},
		"call":             {nil, asked, ``},
		"command":          {[]p.Body{asked}, begun, `{"type":"exec_command_begin","call_id":"call_1","command":["ls","-l"],"cwd":"/w","parsed_cmd":[{"type":"list_files","cmd":"ls -l"}]}`},
		"output so far":    {[]p.Body{asked, begun}, &p.Delta{Item: id, Kind: p.DeltaStderr, Text: "x\n"}, `{"type":"exec_command_output_delta","call_id":"call_1","stream":"stderr","chunk":"eAo="}`},
		"output of no run": {[]p.Body{asked}, &p.Delta{Item: id, Kind: p.DeltaStdout, Text: "x\n"}, ``},
		"server called":    {[]p.Body{asked}, &p.ServerCallStarted{Call: id, Tool: p.MCPTool{Server: "s", Name: "find"}, Arguments: json.RawMessage(`{"q":1}`)}, `{"type":"mcp_tool_call_begin","call_id":"call_1","invocation":{"server":"s","tool":"find","arguments":{"q":1}}}`},
		"server answered": {
			[]p.Body{asked, &p.ServerCallStarted{Call: id, Tool: p.MCPTool{Server: "s", Name: "find"}}},
			&p.ToolOutput{Call: id, Output: "hit", Elapsed: 1500 * time.Millisecond, MCP: &p.MCPResult{Result: json.RawMessage(`{"content":[{"type":"text","text":"hit"}]}`)}},
			`{"type":"mcp_tool_call_end","call_id":"call_1","invocation":{"server":"s","tool":"find","arguments":null},"duration":{"secs":1,"nanos":500000000},"result":{"Ok":{"content":[{"type":"text","text":"hit"}]}}}`,
		},
		"server did not answer": {
			[]p.Body{asked, &p.ServerCallStarted{Call: id, Tool: p.MCPTool{Server: "s", Name: "find"}}},
			&p.ToolOutput{Call: id, Output: "it ended", Failed: true, MCP: &p.MCPResult{Error: "it ended"}},
			`{"type":"mcp_tool_call_end","call_id":"call_1","invocation":{"server":"s","tool":"find","arguments":null},"duration":{"secs":0,"nanos":0},"result":{"Err":"it ended"}}`,
		},
		"command over":      {[]p.Body{asked, begun}, &p.ToolOutput{Call: id, Output: "{}", Command: &p.CommandResult{Output: "outerrout", Stderr: [][2]int{{3, 6}}, ExitCode: 2, Elapsed: 1500 * time.Millisecond}}, `{"type":"exec_command_end","call_id":"call_1","stdout":"outout","stderr":"err","aggregated_output":"outerrout","exit_code":2,"duration":{"secs":1,"nanos":500000000},"formatted_output":"{}"}`},
		"command not found": {[]p.Body{asked, begun}, &p.ToolOutput{Call: id, Output: "no such file", Failed: true}, `{"type":"exec_command_end","call_id":"call_1","stdout":"","stderr":"no such file","aggregated_output":"no such file","exit_code":-1,"duration":{"secs":0,"nanos":0},"formatted_output":"no such file"}`},
		"nowhere to run":    {[]p.Body{asked, begun}, &p.ToolOutput{Call: id, Output: "no such directory", Failed: true, Command: &p.CommandResult{ExitCode: -1}}, `{"type":"exec_command_end","call_id":"call_1","stdout":"","stderr":"no such directory","aggregated_output":"no such directory","exit_code":-1,"duration":{"secs":0,"nanos":0},"formatted_output":"no such directory"}`},
		"silent and late":   {[]p.Body{asked, begun}, &p.ToolOutput{Call: id, Output: "too late", Failed: true, Command: &p.CommandResult{ExitCode: -1, TimedOut: true}}, `{"type":"exec_command_end","call_id":"call_1","stdout":"","stderr":"","aggregated_output":"","exit_code":-1,"duration":{"secs":0,"nanos":0},"formatted_output":"too late"}`},
		"silent and cut":    {[]p.Body{asked, begun}, &p.ToolOutput{Call: id, Output: "aborted", Failed: true, Aborted: true, Command: &p.CommandResult{ExitCode: -1}}, `{"type":"exec_command_end","call_id":"call_1","stdout":"","stderr":"","aggregated_output":"","exit_code":-1,"duration":{"secs":0,"nanos":0},"formatted_output":"aborted"}`},
		"denied":            {[]p.Body{asked}, &p.ToolOutput{Call: id, Output: "the user said no"}, ``},
		"unknown call":      {nil, begun, `{"type":"exec_command_begin","call_id":"1.1.0","command":["ls","-l"],"cwd":"/w","parsed_cmd":[{"type":"list_files","cmd":"ls -l"}]}`},
		"may it run":        {[]p.Body{asked}, &p.ApprovalRequested{Call: id, Kind: p.ApproveCommand, Command: []string{"rm"}, Cwd: "/w", Reason: "why"}, `{"type":"exec_approval_request","call_id":"call_1","command":["rm"],"cwd":"/w","reason":"why"}`},
		"may it patch":      {[]p.Body{asked}, &p.ApprovalRequested{Call: id, Kind: p.ApprovePatch, Cwd: "/w", Detail: json.RawMessage(`{"/w/a":{"add":{"content":"x"}}}`)}, `{"type":"apply_patch_approval_request","call_id":"call_1","changes":{"/w/a":{"add":{"content":"x"}}}}`},
		"patch":             {[]p.Body{asked}, patch, `{"type":"patch_apply_begin","call_id":"call_1","auto_approved":true,"changes":{"/w/a":"delete"}}`},
		"undo":              {nil, &p.PatchStarted{Undoes: 1}, ``},
		"patch done":        {[]p.Body{asked, patch}, &p.ToolOutput{Call: id, Output: "{}", Patch: &p.PatchResult{Applied: true, Summary: "D a"}}, `{"type":"patch_apply_end","call_id":"call_1","stdout":"D a","stderr":"","success":true}`},
		"patch not done":    {[]p.Body{asked, patch}, &p.ToolOutput{Call: id, Output: "no such line", Patch: &p.PatchResult{}}, `{"type":"patch_apply_end","call_id":"call_1","stdout":"","stderr":"no such line","success":false}`},
		"diff":              {nil, &p.TurnDiff{Diff: "d"}, `{"type":"turn_diff","unified_diff":"d"}`},
		"no diff":           {nil, &p.TurnDiff{}, ``},
		"plan":              {nil, &p.PlanUpdated{Plan: []p.PlanStep{{Step: "a", Status: "pending"}}}, `{"type":"plan_update","explanation":null,"plan":[{"step":"a","status":"pending"}]}`},
		"tokens":            {nil, &p.ModelEnded{Usage: &p.Usage{Input: 5, Cached: 1, Output: 2, Reasoning: 3, Total: 7}}, `{"type":"token_count","input_tokens":5,"cached_input_tokens":1,"output_tokens":2,"reasoning_output_tokens":3,"total_tokens":7}`},
		"no tokens":         {nil, &p.ModelEnded{Usage: &p.Usage{}}, ``},
		"retry":             {nil, &p.ModelRetry{Attempt: 1, Max: 5, Wait: time.Second, Reason: "cut"}, `{"type":"stream_error","message":"attempt 1 of 5 in 1s: cut"}`},
		"notice":            {nil, &p.Notice{Text: "n"}, `{"type":"background_event","message":"n"}`},
		"held":              {nil, &p.Held{Error: p.Error{Message: "used up"}, Until: time.Date(2030, 1, 2, 3, 4, 5, 0, time.Local), Resume: true}, `{"type":"background_event","message":"waiting: a limit of the model service is reached (used up); it is lifted at 2030-01-02 03:04:05, and the turn resumes then, or when a process opens the conversation later"}`},
		"hold over":         {nil, &p.HoldEnded{}, `{"type":"background_event","message":"trying again"}`},
		"compacted":         {nil, &p.Compacted{}, `{"type":"background_event","message":"the conversation was compacted"}`},
		"damaged":           {nil, &p.Damaged{File: "f"}, `{"type":"background_event","message":"a part of the conversation could not be read and was set aside in f"}`},
		"handed back":       {nil, &p.InputReturned{Inputs: []p.ReturnedInput{{Content: p.Text("a")}, {Content: p.Text("b")}}}, `{"type":"background_event","message":"not delivered: \"a\", \"b\""}`},
		"complete":          {[]p.Body{&p.AssistantMessage{Text: "Done"}}, &p.TurnEnded{Reason: p.Completed}, `{"type":"task_complete","last_agent_message":"Done"}`},
		"nothing said":      {[]p.Body{&p.AssistantMessage{Text: "before"}, &p.TurnStarted{}, &p.AssistantMessage{Text: "cu", Partial: true}}, &p.TurnEnded{Reason: p.Completed}, `{"type":"task_complete","last_agent_message":null}`},
		"failed":            {[]p.Body{&p.AssistantMessage{Text: "x"}}, &p.TurnEnded{Reason: p.Failed, Error: &p.Error{Message: "m", Hint: "h"}}, `{"type":"error","message":"m (h)"}` + "\n" + `{"type":"task_complete","last_agent_message":null}`},
		"interrupted":       {nil, &p.TurnEnded{Reason: p.Interrupted, Killed: 3}, `{"type":"turn_aborted","reason":"interrupted"}`},
		"replaced":          {nil, &p.TurnEnded{Reason: p.Replaced}, `{"type":"turn_aborted","reason":"replaced"}`},
		"crashed":           {nil, &p.TurnEnded{Reason: p.Crashed}, `{"type":"turn_aborted","reason":"interrupted"}`},
		"user":              {nil, &p.UserMessage{Content: p.Text("x")}, ``},
		"repaired":          {nil, &p.HistoryRepaired{WireID: "x"}, ``}, // a Notice says so
		"later version":     {nil, &p.Unknown{Kind: "new"}, ``},
	})
}

func TestTranslateBackground(t *testing.T) {
	check(t, translations{
		"goes on": {
			[]p.Body{asked, begun},
			&p.ToolOutput{Call: id, Output: "still running", Command: &p.CommandResult{ExitCode: -1, Output: "a", Background: 1}},
			`{"type":"exec_command_end","call_id":"call_1","stdout":"a","stderr":"","aggregated_output":"a","exit_code":0,"duration":{"secs":0,"nanos":0},"formatted_output":"still running"}`,
		},
		"background output": {[]p.Body{asked, begun}, &p.Delta{Item: p.BackgroundID(1).Item(), Kind: p.DeltaStdout, Text: "x"}, ``},
		"background begins": {nil, &p.BackgroundStarted{ID: 1, Command: []string{"a b"}}, ``},
		"background ended": {
			[]p.Body{&p.BackgroundStarted{ID: 1, Command: []string{"sh", "-c", "a b"}}},
			&p.BackgroundEnded{ID: 1, Reason: p.Completed, Result: p.CommandResult{ExitCode: 3}},
			`{"type":"background_event","message":"background command 1 has ended (exit code 3): sh -c 'a b'"}`,
		},
		"background killed": {nil, &p.BackgroundEnded{ID: 2, Reason: p.Interrupted}, `{"type":"background_event","message":"background command 2 has ended (interrupted)"}`},
	})
}

func check(t *testing.T, all translations) {
	t.Helper()
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			tr := New(0)
			for _, b := range c.before {
				tr.Translate(p.Event{Body: b})
			}
			var want []any
			for line := range strings.Lines(c.want) {
				want = append(want, decoded(t, line))
			}
			var got []any
			for _, m := range tr.Translate(p.Event{Body: c.body}) {
				text, err := json.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, decoded(t, string(text)))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func TestLongOutputInChunks(t *testing.T) {
	id := p.CallID{Turn: 1, Response: 1}
	tr := New(0)
	tr.Translate(p.Event{Body: &p.CommandStarted{Call: id}})
	got := tr.Translate(p.Event{Body: &p.Delta{Item: id, Kind: p.DeltaStdout, Text: strings.Repeat("x", 2*maxChunk+1)}})
	if len(got) != 3 || got[2]["chunk"] != "eA==" {
		t.Errorf("%d chunks", len(got))
	}
	for _, m := range got {
		if !m.Delta() {
			t.Errorf("%v is a delta", m["type"])
		}
	}
}

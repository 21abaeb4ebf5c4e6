// Package event reports what happens in a conversation in the words of the clients: objects
// whose member type says what they are. A [Translator] makes them of our events; how they go
// over the wire is the server's.
package event

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// Types are the types of all events that clients are sent.
var Types = []string{
	"session_configured", "task_started", "task_complete", "turn_aborted", "error", "stream_error", "background_event", "token_count",
	"agent_message_delta", "agent_message", "agent_reasoning_delta", "agent_reasoning",
	"exec_approval_request", "exec_command_begin", "exec_command_output_delta", "exec_command_end",
	"apply_patch_approval_request", "patch_apply_begin", "patch_apply_end", "turn_diff", "plan_update",
}

// A Msg is an event in the clients' form: an object whose member type says
// what it is.
type Msg map[string]any

func (m Msg) Type() string { return m["type"].(string) }

// Delta reports whether m is a piece of something that comes again as a whole.
func (m Msg) Delta() bool { return strings.HasSuffix(m.Type(), "_delta") }

// A Translator makes our events those of the clients. It must see a turn from
// its start to know what its calls are called.
type Translator struct {
	window  int64 // of the model, in tokens; 0 is unknown
	calls   map[p.CallID]*call
	running map[p.BackgroundID][]string // background commands
	last    any                         // the last whole message of the turn, nil if none
	begun   map[p.ItemID]bool           // texts of which pieces were sent
}

// A call is what an event about it does not repeat.
type call struct {
	wireID   string
	commands bool // a command was begun
	patches  bool // a patch was begun

	invocation Msg // of a tool of another MCP server, if it was begun
}

func New(window int64) *Translator {
	return &Translator{window: window, calls: map[p.CallID]*call{}, running: map[p.BackgroundID][]string{}, begun: map[p.ItemID]bool{}}
}

// call is what is known of a call. One that was never seen is called by our own name.
func (t *Translator) call(id p.CallID) *call {
	c := t.calls[id]
	if c == nil {
		c = &call{wireID: id.String()}
		t.calls[id] = c
	}
	return c
}

// Translate returns what clients are sent about an event, in order.
func (t *Translator) Translate(e p.Event) []Msg {
	switch b := e.Body.(type) {
	case *p.TurnStarted:
		return t.started()
	case *p.AssistantMessage:
		return t.message(b)
	case *p.Reasoning:
		return t.text(b.Item, b.Text, b.Partial, Msg{"type": "agent_reasoning", "text": b.Text})
	case *p.Delta:
		return t.delta(b)
	case *p.ToolCall:
		t.calls[b.Call] = &call{wireID: b.WireID}
	case *p.ModelEnded:
		return usage(b.Usage)
	case *p.ModelRetry:
		return []Msg{{"type": "stream_error", "message": "attempt " + strconv.Itoa(b.Attempt) + " of " + strconv.Itoa(b.Max) + " in " + b.Wait.String() + ": " + b.Reason}}
	case *p.ApprovalRequested:
		return t.approvalRequested(b)
	case *p.CommandStarted:
		c := t.call(b.Call)
		c.commands = true
		return []Msg{{"type": "exec_command_begin", "call_id": c.wireID, "command": b.Command, "cwd": b.Cwd, "parsed_cmd": policy.Parsed(b.Command)}}
	case *p.ServerCallStarted:
		return t.serverCallStarted(b)
	case *p.PatchStarted:
		return t.patchStarted(b)
	case *p.TurnDiff:
		if b.Diff != "" {
			return []Msg{{"type": "turn_diff", "unified_diff": b.Diff}}
		}
	case *p.PlanUpdated:
		return []Msg{{"type": "plan_update", "explanation": orNull(b.Explanation), "plan": b.Plan}}
	case *p.ToolOutput:
		return t.output(b)
	case *p.TurnEnded:
		return t.turnEnded(b)
	case *p.Configured:
		t.window = b.Settings.ContextWindow
	case *p.BackgroundStarted:
		t.running[b.ID] = b.Command
	case *p.BackgroundEnded:
		return t.backgroundEnded(b)
	default:
		return remark(e.Body)
	}
	return nil
}

// backgroundEnded reports the end of what went on after its call had ended.
func (t *Translator) backgroundEnded(b *p.BackgroundEnded) []Msg {
	how := "exit code " + strconv.Itoa(b.Result.ExitCode)
	if b.Reason != p.Completed {
		how = string(b.Reason)
	}
	text := "background command " + strconv.Itoa(int(b.ID)) + " has ended (" + how + ")"
	if command, ok := t.running[b.ID]; ok {
		delete(t.running, b.ID)
		text += ": " + ShellQuoted(command)
	}
	return []Msg{background(text)}
}

func background(text string) Msg { return Msg{"type": "background_event", "message": text} }

// remark is what people should know and clients have no form for.
func remark(b p.Body) []Msg {
	var text string
	switch b := b.(type) {
	case *p.Notice:
		text = b.Text
	case *p.Held:
		text = transcript.HoldText(b)
	case *p.HoldEnded:
		text = "trying again"
	case *p.Compacted:
		text = "the conversation was compacted"
	case *p.Damaged:
		text = "a part of the conversation could not be read and was set aside in " + b.File
	case *p.InputReturned:
		var texts []string
		for _, in := range b.Inputs {
			texts = append(texts, strconv.Quote(p.PlainText(in.Content)))
		}
		text = "not delivered: " + strings.Join(texts, ", ")
	default:
		return nil
	}
	return []Msg{background(text)}
}

// Configured is the first word about a conversation.
func Configured(id p.ConversationID, model string) Msg {
	return Msg{"type": "session_configured", "session_id": id, "model": model, "history_log_id": 0, "history_entry_count": 0}
}

func (t *Translator) started() []Msg {
	t.last = nil
	m := Msg{"type": "task_started", "model_context_window": nil}
	if t.window > 0 {
		m["model_context_window"] = t.window
	}
	return []Msg{m}
}

func (t *Translator) message(b *p.AssistantMessage) []Msg {
	if b.Text != "" && !b.Partial {
		t.last = b.Text
	}
	return t.text(b.Item, b.Text, b.Partial, Msg{"type": "agent_message", "message": b.Text})
}

// text is a text that has come to its end. One that was never finished has been sent in pieces,
// or is sent as one piece now: only what is finished is sent as a whole.
func (t *Translator) text(item p.ItemID, text string, partial bool, whole Msg) []Msg {
	begun := t.begun[item]
	delete(t.begun, item)
	switch {
	case text == "" || partial && begun:
		return nil
	case partial:
		return []Msg{{"type": whole.Type() + "_delta", "delta": text}}
	}
	return []Msg{whole}
}

// maxChunk is how many bytes of output one event carries.
const maxChunk = 8192

func (t *Translator) delta(b *p.Delta) []Msg {
	switch b.Kind {
	case p.DeltaMessage:
		t.begun[b.Item] = true
		return []Msg{{"type": "agent_message_delta", "delta": b.Text}}
	case p.DeltaReasoning:
		t.begun[b.Item] = true
		return []Msg{{"type": "agent_reasoning_delta", "delta": b.Text}}
	}
	c := t.calls[b.Item]
	if c == nil || !c.commands { // what a background command prints comes after its call's end
		return nil
	}
	var list []Msg
	for text := b.Text; text != ""; {
		n := min(len(text), maxChunk)
		chunk := base64.StdEncoding.EncodeToString([]byte(text[:n]))
		list = append(list, Msg{"type": "exec_command_output_delta", "call_id": c.wireID, "stream": string(b.Kind), "chunk": chunk})
		text = text[n:]
	}
	return list
}

// usage is how many tokens a response took, if the model says so.
func usage(u *p.Usage) []Msg {
	if u == nil || *u == (p.Usage{}) {
		return nil
	}
	return []Msg{{
		"type": "token_count", "input_tokens": u.Input, "cached_input_tokens": u.Cached, "output_tokens": u.Output,
		"reasoning_output_tokens": u.Reasoning, "total_tokens": u.Total,
	}}
}

func (t *Translator) approvalRequested(b *p.ApprovalRequested) []Msg {
	m := Msg{"type": "exec_approval_request", "call_id": t.call(b.Call).wireID}
	if b.Kind == p.ApprovePatch {
		m["type"], m["changes"] = "apply_patch_approval_request", Changes(b.Detail)
	} else {
		m["command"], m["cwd"] = b.Command, b.Cwd
	}
	if b.Reason != "" {
		m["reason"] = b.Reason
	}
	return []Msg{m}
}

func Changes(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

func (t *Translator) patchStarted(b *p.PatchStarted) []Msg {
	if b.Call == (p.CallID{}) { // an undo, which clients do not know
		return nil
	}
	c := t.call(b.Call)
	c.patches = true
	return []Msg{{"type": "patch_apply_begin", "call_id": c.wireID, "auto_approved": b.AutoApproved, "changes": Changes(b.Changes)}}
}

// output is the end of what was begun. A call that began nothing has no end.
func (t *Translator) output(b *p.ToolOutput) []Msg {
	c := t.call(b.Call)
	delete(t.calls, b.Call)
	switch {
	case c.patches:
		m := Msg{"type": "patch_apply_end", "call_id": c.wireID, "stdout": "", "stderr": "", "success": b.Patch != nil && b.Patch.Applied}
		if m["success"] == true {
			m["stdout"] = b.Patch.Summary
		} else {
			m["stderr"] = b.Output
		}
		return []Msg{m}
	case c.commands:
		return []Msg{commandEnd(c, b)}
	case c.invocation != nil:
		return []Msg{serverCallEnd(c, b)}
	}
	return nil
}

func commandEnd(c *call, b *p.ToolOutput) Msg {
	r := b.Command
	if r == nil || b.Failed && !b.Aborted && !r.TimedOut && r.Signal == "" && r.ExitCode < 0 && r.Output == "" { // it did not get as far as running
		r = &p.CommandResult{ExitCode: -1, Output: b.Output, Stderr: [][2]int{{0, len(b.Output)}}, Elapsed: b.Elapsed}
	}
	code := r.ExitCode
	if r.Background != 0 { // it goes on, so that there is none yet
		code = 0
	}
	stdout, stderr := split(r.Output, r.Stderr)
	return Msg{
		"type": "exec_command_end", "call_id": c.wireID, "stdout": stdout, "stderr": stderr, "aggregated_output": r.Output,
		"exit_code": code, "duration": duration(r.Elapsed), "formatted_output": b.Output,
	}
}

// split takes the two streams of a command's output apart.
func split(text string, ranges [][2]int) (stdout, stderr string) {
	at := 0
	for _, r := range ranges {
		from, to := min(max(r[0], at), len(text)), min(max(r[1], at), len(text))
		stdout += text[at:from]
		stderr += text[from:to]
		at = to
	}
	return stdout + text[at:], stderr
}

func duration(d time.Duration) map[string]int64 {
	return map[string]int64{"secs": int64(d / time.Second), "nanos": int64(d % time.Second)}
}

// turnEnded is the last word about a turn. To a client that knows no crash it is reported that it was
// interrupted.
func (t *Translator) turnEnded(b *p.TurnEnded) []Msg {
	clear(t.calls)
	switch b.Reason {
	case p.Completed:
		return []Msg{{"type": "task_complete", "last_agent_message": t.last}}
	case p.Failed:
		return []Msg{{"type": "error", "message": Failure(b)}, {"type": "task_complete", "last_agent_message": nil}}
	}
	return []Msg{{"type": "turn_aborted", "reason": AbortReason(b.Reason)}}
}

func AbortReason(r p.EndReason) string {
	if r == p.Replaced {
		return "replaced"
	}
	return "interrupted"
}

func Failure(b *p.TurnEnded) string {
	switch {
	case b.Error == nil:
		return "the turn failed"
	case b.Error.Hint != "":
		return b.Error.Message + " (" + b.Error.Hint + ")"
	}
	return b.Error.Message
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// ShellQuoted is a command as it would be typed.
func ShellQuoted(argv []string) string {
	parts := make([]string, len(argv))
	for i, a := range argv {
		q, err := syntax.Quote(a, syntax.LangBash)
		if err != nil {
			q = strconv.Quote(a)
		}
		parts[i] = q
	}
	return strings.Join(parts, " ")
}

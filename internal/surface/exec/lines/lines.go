// Package lines writes a turn as lines of JSON, one event each, in the form that programs
// written for Codex read.
package lines

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// Options say what is written, and where.
type Options struct {
	Out          io.Writer
	Conversation p.ConversationID
	Before       p.Usage                       // what the conversation has used so far
	Cost         func(p.Usage) (float64, bool) // of the model, in US dollars, if known; may be nil
	HideThought  bool                          // leave out what the model thought
	Notices      []string                      // what there is to know of the conversation

	// OwnStop, if set, tells whether it was the reader who stopped the turn. Then there
	// is no turn.failed: the Codex SDK would throw that at its caller, in place of the
	// AbortError that a client that aborts waits for.
	OwnStop func() bool
}

// A Printer writes one turn.
type Printer struct {
	w      io.Writer
	failed error       // the first write that failed: the reader has left
	onFail func(error) // called once then

	before      p.Usage
	cost        func(p.Usage) (float64, bool) // see Options.Cost
	hideThought bool                          // leave out what the model thought
	ownStop     func() bool                   // see Options.OwnStop
	items       map[string]*jsonItem          // by our id: those that have begun and not ended, and the plan
	behind      map[p.ItemID]string           // what background commands print: the items that show it
	order       []string
	count       int
}

// A jsonItem is an item as it was last written.
type jsonItem struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	jsonBody
	open bool

	heard transcript.Transcript // what its command prints
	soFar string                // all of that which Output does not tell
}

// jsonBody is the members that the types of item have; nil ones are left out, empty
// ones are not: readers count on them.
type jsonBody struct {
	Text     *string      `json:"text,omitempty"`
	Partial  bool         `json:"partial,omitempty"` // the text was interrupted
	Command  *string      `json:"command,omitempty"`
	Output   *string      `json:"aggregated_output,omitempty"`
	ExitCode **int        `json:"exit_code,omitempty"` // null while it runs
	Changes  []jsonChange `json:"changes,omitzero"`
	Status   string       `json:"status,omitempty"`
	Items    []todo       `json:"items,omitzero"`
	Message  *string      `json:"message,omitempty"`
	*jsonServerCall
}

type jsonChange struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
}

type todo struct {
	Text      string `json:"text"`
	Completed bool   `json:"completed"`
}

// A jsonLine is one line; each type of line has one of the members after it.
type jsonLine struct {
	Type    string           `json:"type"`
	Thread  p.ConversationID `json:"thread_id,omitempty"`
	Item    *jsonItem        `json:"item,omitempty"`
	Usage   *jsonUsage       `json:"usage,omitempty"`
	Error   *jsonError       `json:"error,omitempty"`
	Message string           `json:"message,omitempty"`
}

type jsonError struct {
	Message string `json:"message"`
}

type jsonUsage struct {
	Input      int64 `json:"input_tokens"`
	Cached     int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"`
	Reasoning  int64 `json:"reasoning_output_tokens"`

	Cost *float64 `json:"cost_usd,omitempty"` // if the price is known
}

// New begins a turn. onFail is called once, when the reader has left.
func New(o Options, onFail func(error)) *Printer {
	j := &Printer{w: o.Out, onFail: onFail, before: o.Before, cost: o.Cost, hideThought: o.HideThought, ownStop: o.OwnStop, items: map[string]*jsonItem{}, behind: map[p.ItemID]string{}}
	j.line(jsonLine{Type: "thread.started", Thread: o.Conversation})
	for _, word := range o.Notices {
		j.once("error", jsonBody{Message: &word})
	}
	return j
}

// PrintThread writes the line that names a conversation.
func PrintThread(w io.Writer, id p.ConversationID) error {
	j := New(Options{Out: w, Conversation: id}, func(error) {})
	return j.result()
}

// PrintError writes the line for an error that no turn has reported. If no program
// can read it, that is not ours to report.
func PrintError(w io.Writer, err error) {
	j := Printer{w: w, onFail: func(error) {}}
	j.line(jsonLine{Type: "error", Message: err.Error()})
}

// Event writes what an event changes.
func (j *Printer) Event(e p.Event) {
	switch b := e.Body.(type) {
	case *p.TurnStarted:
		j.line(jsonLine{Type: "turn.started"})
	case *p.AssistantMessage:
		j.once("agent_message", jsonBody{Text: &b.Text, Partial: b.Partial})
	case *p.Reasoning:
		if strings.TrimSpace(b.Text) != "" && !j.hideThought {
			j.once("reasoning", jsonBody{Text: &b.Text, Partial: b.Partial})
		}
	case *p.Notice:
		j.once("error", jsonBody{Message: &b.Text})
	case *p.ModelRetry:
		j.line(jsonLine{Type: "error", Message: fmt.Sprintf("Reconnecting... %d/%d (%s)", b.Attempt, b.Max, b.Reason)})
	case *p.Held:
		j.line(jsonLine{Type: "error", Message: transcript.HoldText(b)})
	case *p.Compacted:
		j.once("context_compaction", jsonBody{Text: new("the conversation so far was summarised for the model")})
	case *p.PlanUpdated:
		j.plan(b)
	case *p.Delta:
		j.printed(e, b)
	default:
		j.command(e)
	}
}

func (j *Printer) command(e p.Event) {
	switch b := e.Body.(type) {
	case *p.CommandStarted:
		j.begin(b.Call.String(), "command_execution", running(b.Command))
	case *p.PatchStarted:
		j.begin(patchKey(b), "file_change", jsonBody{Changes: fileChanges(b.Changes), Status: "in_progress"})
	case *p.PatchSettled:
		if it := j.items[b.Patch]; it != nil {
			it.Status = map[bool]string{true: "completed", false: "failed"}[b.Applied]
			j.end(b.Patch, it.jsonBody)
		}
	case *p.ServerCallStarted:
		j.begin(b.Call.String(), "mcp_tool_call", serverCall(b.Tool, b.Arguments))
	case *p.ApprovalRequested:
		if b.MCP != nil {
			j.item(b.Call.String(), "mcp_tool_call").jsonBody = serverCall(*b.MCP, b.Detail)
		} else if b.Kind == p.ApprovePatch {
			j.item(b.Call.String(), "file_change").jsonBody = jsonBody{Changes: fileChanges(b.Detail), Status: "in_progress"}
		} else if j.items[b.Call.String()] == nil && len(b.Command) > 0 {
			j.item(b.Call.String(), "command_execution").jsonBody = running(b.Command)
		}
	case *p.ApprovalResolved:
		if it := j.items[b.Call.String()]; it != nil && b.Decision == p.Denied {
			it.Status = "declined"
		}
	case *p.ToolOutput:
		j.output(b)
	case *p.BackgroundEnded:
		j.backgroundEnded(b)
	}
}

// printed keeps what a command prints, in case it is cut without an output of its own.
func (j *Printer) printed(e p.Event, d *p.Delta) {
	if d.Kind != p.DeltaStdout && d.Kind != p.DeltaStderr {
		return
	}
	key, ok := j.behind[d.Item]
	if !ok {
		key = d.Item.String()
	}
	if it := j.items[key]; it != nil {
		for _, now := range it.heard.Apply(e) {
			it.soFar = now.Output
		}
	}
}

// backgroundEnded finishes the item of a background command: it is shown as one command,
// from its call to its end.
func (j *Printer) backgroundEnded(b *p.BackgroundEnded) {
	key := j.behind[b.ID.Item()]
	it := j.items[key]
	if it == nil {
		return // another turn's
	}
	body, output := it.jsonBody, *it.Output+b.Result.Output
	body.Output, body.Status = &output, "completed"
	if b.Reason != p.Completed || b.Result.ExitCode != 0 {
		body.Status = "failed"
	}
	if b.Reason == p.Completed && b.Result.ExitCode >= 0 {
		body.ExitCode = exitCode(&b.Result.ExitCode)
	}
	j.end(key, body)
}

func (j *Printer) output(b *p.ToolOutput) {
	it := j.items[b.Call.String()]
	if it == nil {
		return // nothing of it was shown
	}
	body := it.jsonBody
	switch c := b.Command; {
	case it.jsonServerCall != nil:
		body = it.withResult(b)
	case it.Changes != nil:
		body.Status = "failed" // also if it was declined
		if b.Patch != nil && b.Patch.Applied {
			body.Status = "completed"
		}
	case it.Status == "declined": // it may have run, and asked to run again with more rights
		body.Output = &it.soFar
	case c == nil:
		body.Status, body.Output = "failed", &b.Output
	case c.Background != 0: // it goes on
		it.Output, it.soFar = &c.Output, ""
		j.behind[c.Background.Item()] = b.Call.String()
		return
	default:
		printed := transcript.Printed(b)
		body.Output, body.Status = &printed, "completed"
		if c.ExitCode != 0 || b.Aborted || c.TimedOut {
			body.Status = "failed"
		}
		if c.ExitCode >= 0 && !b.Aborted {
			body.ExitCode = exitCode(&c.ExitCode)
		}
	}
	j.end(b.Call.String(), body)
}

// patchKey names the item of a patch: its call's, unless a command asked for it.
func patchKey(b *p.PatchStarted) string {
	if b.Command != (p.CallID{}) {
		return b.Patch
	}
	return b.Call.String()
}

func fileChanges(raw json.RawMessage) []jsonChange {
	list := []jsonChange{}
	for _, c := range transcript.Changes(raw) {
		list = append(list, jsonChange{c.Path, c.Kind})
	}
	return list
}

func exitCode(n *int) **int { return &n }

// running is a command that has printed nothing so far.
func running(argv []string) jsonBody {
	line, none := transcript.Quote(argv), ""
	return jsonBody{Command: &line, Output: &none, ExitCode: exitCode(nil), Status: "in_progress"}
}

const planItem = "plan"

func (j *Printer) plan(b *p.PlanUpdated) {
	items := []todo{}
	for _, s := range b.Plan {
		items = append(items, todo{s.Step, s.Status == "completed"})
	}
	if it := j.items[planItem]; it != nil {
		it.Items = items
		j.write("item.updated", it)
		return
	}
	j.begin(planItem, "todo_list", jsonBody{Items: items})
}

// item returns the item with our id, giving it a number if it is new.
func (j *Printer) item(key, typ string) *jsonItem {
	if it := j.items[key]; it != nil {
		return it
	}
	it := &jsonItem{ID: fmt.Sprintf("item_%d", j.count), Type: typ}
	j.count++
	j.items[key] = it
	j.order = append(j.order, key)
	return it
}

func (j *Printer) begin(key, typ string, body jsonBody) {
	it := j.item(key, typ)
	it.jsonBody, it.open = body, true
	j.write("item.started", it)
}

func (j *Printer) end(key string, body jsonBody) {
	it := j.items[key]
	it.jsonBody, it.open = body, false
	delete(j.items, key)
	j.write("item.completed", it)
}

// once writes an item that is only shown when it is finished.
func (j *Printer) once(typ string, body jsonBody) {
	key := fmt.Sprintf("once %d", j.count)
	j.item(key, typ)
	j.end(key, body)
}

func (j *Printer) write(kind string, it *jsonItem) {
	j.line(jsonLine{Type: kind, Item: it})
}

// Leave ends what has begun, for it does not outlive us. A call that waits for an
// approval has not.
func (j *Printer) Leave() {
	for _, key := range j.order {
		if it := j.items[key]; it != nil && it.open {
			j.cut(key, it)
		}
	}
}

func (j *Printer) cut(key string, it *jsonItem) {
	if it.Status == "in_progress" {
		it.Status = "failed"
	}
	if it.Output != nil {
		all := *it.Output + it.soFar
		it.Output = &all
	}
	j.end(key, it.jsonBody)
}

// Finish ends what is open, and says how the turn ended.
func (j *Printer) Finish(end engine.TurnEnd) error {
	for _, key := range j.order {
		if it := j.items[key]; it != nil {
			j.cut(key, it)
		}
	}
	if end.End.Reason == p.Completed {
		u := j.before.Add(end.Usage)
		usage := &jsonUsage{Input: u.Input, Cached: u.Cached, CacheWrite: u.CacheWrite, Output: u.Output, Reasoning: u.Reasoning}
		if dollars, ok := Cost(j.cost, u); ok {
			usage.Cost = &dollars
		}
		j.line(jsonLine{Type: "turn.completed", Usage: usage})
		return j.result()
	}
	message := failure(end)
	j.line(jsonLine{Type: "error", Message: message})
	if j.ownStop != nil && end.End.Reason == p.Interrupted && j.ownStop() {
		return j.result()
	}
	j.line(jsonLine{Type: "turn.failed", Error: &jsonError{message}})
	return j.result()
}

func failure(end engine.TurnEnd) string {
	if e := end.End.Error; e != nil && e.Hint != "" {
		return e.Message + " · " + e.Hint
	} else if e != nil {
		return e.Message
	}
	return "turn " + string(end.End.Reason)
}

func (j *Printer) result() error {
	return j.failed
}

// line writes one object. Each line is one write, so that a reader never sees
// half of one.
func (j *Printer) line(v jsonLine) {
	if j.failed != nil {
		return
	}
	enc := json.NewEncoder(j.w)
	enc.SetEscapeHTML(false) // people and grep read them too, and 2>&1 is in many a command
	if err := enc.Encode(v); err != nil {
		j.failed = err
		j.onFail(j.failed)
	}
}

// Cost is what some usage costs, if that is known.
func Cost(of func(p.Usage) (float64, bool), u p.Usage) (float64, bool) {
	if of == nil || u.Total == 0 {
		return 0, false
	}
	return of(u)
}

package items

import (
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// An item is one that has started.
type item struct {
	id         string
	shown      *transcript.Item // nil when it is done, or is none of those
	start, end time.Time
	done       bool
	of         wire.Item // when it is done, or from the beginning if it does not change
	tail       string    // the beginning of a character whose end has not come

	server    *p.MCPTool // for the tool of an MCP server
	arguments json.RawMessage
	decision  p.Decision // the answer to its last approval
}

// isText reports whether it is a message or reasoning of the model.
func (it *item) isText() bool {
	return it.shown != nil && (it.shown.Kind == transcript.Message || it.shown.Kind == transcript.Reasoning)
}

// empty is a text that has just started.
func (it *item) empty() wire.Item {
	if it.shown.Kind == transcript.Reasoning {
		return wire.Item{Of: wire.Reasoning{Type: "reasoning", ID: it.id, Summary: []string{}, Content: []string{}}}
	}
	return wire.Item{Of: wire.AgentMessage{Type: "agentMessage", ID: it.id}}
}

func (it *item) textForm() wire.Item {
	if it.shown.Kind == transcript.Reasoning {
		return wire.Item{Of: wire.Reasoning{Type: "reasoning", ID: it.id, Summary: []string{it.shown.Text}, Content: []string{}}}
	}
	return wire.Item{Of: wire.AgentMessage{Type: "agentMessage", ID: it.id, Text: it.shown.Text, Partial: it.shown.Status == transcript.Interrupted}}
}

// applyCall takes an event of a call. What a call does is known when it begins to do it, and that is when its item
// starts; of one that does nothing special, when it is over.
func (f *Fold) applyCall(e p.Event) {
	switch b := e.Body.(type) {
	case *p.CommandStarted:
		f.call(e, b.Call)
	case *p.PatchStarted:
		if b.Call != (p.CallID{}) { // an undo, or a patch that a command asked for
			f.call(e, b.Call)
		}
	case *p.ServerCallStarted:
		f.serverCall(e, b.Call, b.Tool, b.Arguments)
	case *p.ApprovalRequested:
		if b.MCP != nil {
			f.serverCall(e, b.Call, *b.MCP, b.Detail)
		}
		f.addApproval(e, f.call(e, b.Call), b)
	case *p.ApprovalResolved:
		f.resolved(b)
	case *p.ElicitationRequested:
		f.elicited(b)
	case *p.ElicitationResolved:
		f.withdraw(func(a ask) bool { return a.call == b.Call && a.elicitation == b.Number })
	case *p.ToolOutput:
		f.output(e, b)
	}
}

// call returns the item of a call, starting it if need be.
func (f *Fold) call(e p.Event, id p.CallID) *item {
	name := id.String()
	it := f.cur.byID[name]
	if it == nil {
		it = &item{id: name, shown: f.cur.shown.Item(name)}
		if it.shown == nil { // the record of the call was lost
			it.shown = &transcript.Item{ID: name, Kind: transcript.Call}
		}
		f.start(e, it)
	}
	return it
}

func (f *Fold) serverCall(e p.Event, id p.CallID, tool p.MCPTool, arguments json.RawMessage) {
	if f.cur.byID[id.String()] != nil {
		return
	}
	f.start(e, &item{id: id.String(), shown: f.cur.shown.Item(id.String()), server: &tool, arguments: arguments})
}

var decisions = []any{"accept", "acceptForSession", "decline", "cancel"}

// addApproval asks for an approval.
func (f *Fold) addApproval(e p.Event, it *item, b *p.ApprovalRequested) {
	n := Note{Ask: AskName(f.ID, b.Call, e.Seq), Approval: b}
	thread, turn, at := f.thread(), f.cur.name, e.Time.UnixMilli()
	switch b.Kind {
	case p.ApprovePatch:
		n.Method, n.Params = "item/fileChange/requestApproval", wire.FileApproval{ThreadID: thread, TurnID: turn, ItemID: it.id, StartedAtMs: at, Reason: text(b.Reason)}
	case p.ApproveTool:
		server, tool := "", it.shown.Tool
		if b.MCP != nil {
			server, tool = b.MCP.Server, b.MCP.Name
		}
		message := "Allow the MCP server " + server + " to run the tool " + tool + " with " + string(b.Detail) + "?"
		n.Method, n.Params = "mcpServer/elicitation/request", wire.Elicitation{
			ThreadID: thread, TurnID: &turn, ServerName: server, Mode: "form", Message: message,
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`), Meta: json.RawMessage("null"),
		}
	default:
		command := transcript.Quote(b.Command)
		n.Method, n.Params = "item/commandExecution/requestApproval", wire.CommandApproval{
			Kind: "command", ThreadID: thread, TurnID: turn, ItemID: it.id, StartedAtMs: at, Reason: text(b.Reason),
			Command: &command, Cwd: text(b.Cwd), CommandActions: unknown(b.Command), AvailableDecisions: decisions,
		}
	}
	f.ask(ask{b.Call, 0, n})
}

// resolved withdraws an approval.
func (f *Fold) resolved(b *p.ApprovalResolved) {
	if it := f.cur.byID[b.Call.String()]; it != nil {
		it.decision = b.Decision
	}
	f.withdraw(func(a ask) bool { return a.call == b.Call && a.elicitation == 0 })
}

// withdraw withdraws what was asked.
func (f *Fold) withdraw(which func(ask) bool) {
	f.asks = slices.DeleteFunc(f.asks, func(a ask) bool {
		if !which(a) {
			return false
		}
		f.note("serverRequest/resolved", wire.RequestResolved{ThreadID: f.thread(), RequestID: a.note.Ask})
		return true
	})
	f.waiting()
}

// waiting says what the turn waits for.
func (f *Fold) waiting() {
	var on []string
	if slices.ContainsFunc(f.asks, func(a ask) bool { return a.elicitation == 0 }) {
		on = append(on, "waitingOnApproval")
	}
	if slices.ContainsFunc(f.asks, func(a ask) bool { return a.elicitation != 0 }) {
		on = append(on, "waitingOnUserInput")
	}
	f.setStatus(wire.Active(on...))
}

// elicited asks what an MCP server wants to know.
func (f *Fold) elicited(b *p.ElicitationRequested) {
	turn := f.cur.name
	params := wire.Elicitation{
		ThreadID: f.thread(), TurnID: &turn, ServerName: b.Server, Mode: "form", Message: b.Message,
		RequestedSchema: orElse(b.Schema, `{"type":"object","properties":{}}`), Meta: json.RawMessage("null"),
	}
	if b.URL != "" {
		params.Mode, params.URL, params.RequestedSchema = "url", b.URL, nil
		params.ElicitationID = ElicitName(f.ID, b.Call, b.Number)
	}
	f.ask(ask{b.Call, b.Number, Note{Ask: ElicitName(f.ID, b.Call, b.Number), Method: "mcpServer/elicitation/request", Params: params}})
}

// ask asks something.
func (f *Fold) ask(a ask) {
	f.asks = append(f.asks, a)
	f.waiting()
	if f.live {
		f.notes = append(f.notes, a.note)
	}
}

// output ends a call.
func (f *Fold) output(e p.Event, b *p.ToolOutput) {
	name := b.Call.String()
	it := f.cur.byID[name]
	if it == nil {
		it = &item{id: name, shown: f.cur.shown.Item(name)}
		if it.shown == nil || it.shown.Tool == "update_plan" && !b.Failed {
			return // the plan itself is sent
		}
		if b.MCP != nil {
			it.server = &b.MCP.Tool
		}
		f.start(e, it)
	}
	if !it.done {
		f.finish(e, it, f.form(it, b))
	}
}

// form is an item that is not a text, as clients know it; b is nil until a call is over.
func (f *Fold) form(it *item, b *p.ToolOutput) wire.Item {
	switch {
	case it.of.Of != nil: // it is no call, and does not change
		return it.of
	case it.server != nil:
		return wire.Item{Of: it.serverForm(b)}
	case len(it.shown.Command) > 0:
		return wire.Item{Of: f.command(it, b)}
	case len(it.shown.Changes) > 0:
		return wire.Item{Of: it.fileChange(b)}
	}
	if of, ok := f.look(it, b); ok {
		return of
	}
	return wire.Item{Of: it.toolCall(b)}
}

// status says how far a call is, in the words for commands and patches.
func (it *item) status(b *p.ToolOutput) string {
	switch {
	case b == nil:
		return "inProgress"
	case it.decision == p.Denied, it.decision == p.Abort:
		return "declined"
	case b.Aborted, it.shown.Status == transcript.Failed, b.Failed:
		return "failed"
	}
	return "completed"
}

// plainStatus is status for calls that cannot be declined.
func (it *item) plainStatus(b *p.ToolOutput) string {
	if s := it.status(b); s != "declined" {
		return s
	}
	return "failed"
}

func took(b *p.ToolOutput) *int64 {
	if b == nil {
		return nil
	}
	ms := b.Elapsed.Milliseconds()
	return &ms
}

func unknown(argv []string) []wire.CommandAction {
	return []wire.CommandAction{{Type: "unknown", Command: transcript.CommandLine(argv)}}
}

func (f *Fold) command(it *item, b *p.ToolOutput) wire.CommandExecution {
	s := it.shown
	c := wire.CommandExecution{
		Type: "commandExecution", ID: it.id, Command: transcript.Quote(s.Command), Cwd: s.Cwd, Source: "agent",
		Status: it.status(b), CommandActions: unknown(s.Command), AggregatedOutput: text(strings.TrimSuffix(s.Output, it.tail)), DurationMs: took(b),
	}
	if c.Cwd == "" {
		c.Cwd = f.Settings.Cwd
	}
	if f.cur.shell {
		c.Source = "userShell"
	}
	if b == nil {
		if s.Approval != nil && s.Approval.Tried != nil { // it has run in the sandbox, and would run again
			c.AggregatedOutput = text(s.Approval.Tried.Output)
		}
		return c
	}
	if b.Command == nil && (b.Aborted || c.Status == "declined") {
		c.AggregatedOutput = nil // what it answers is for the model
	}
	if r := b.Command; r != nil {
		c.AggregatedOutput = &r.Output
		if r.Background != 0 {
			c.ProcessID = text(r.Background.Item().String())
		} else if !b.Aborted && c.Status != "declined" && r.ExitCode >= 0 {
			c.ExitCode = &r.ExitCode
		}
	}
	return c
}

func (it *item) fileChange(b *p.ToolOutput) wire.FileChange {
	out := wire.FileChange{Type: "fileChange", ID: it.id, Changes: []wire.FileUpdate{}, Status: it.status(b)}
	if b != nil && out.Status == "completed" && b.Patch != nil && !b.Patch.Applied {
		out.Status = "failed"
	}
	for _, c := range it.shown.Changes {
		out.Changes = append(out.Changes, wire.FileUpdate{
			Path: c.Path, Kind: wire.UpdateKind{Type: c.Kind, MovePath: text(c.Move)}, Diff: diff(c),
		})
	}
	return out
}

// diff is a change as clients know it: of a file that is added or deleted its content, else hunks.
func diff(c transcript.Change) string {
	if c.Kind == "update" {
		return c.Diff
	}
	var b strings.Builder
	for line := range strings.Lines(c.Diff) {
		if line[0] == '+' || line[0] == '-' {
			b.WriteString(line[1:])
		}
	}
	return b.String()
}

func (it *item) serverForm(b *p.ToolOutput) wire.MCPToolCall {
	out := wire.MCPToolCall{
		Type: "mcpToolCall", ID: it.id, Server: it.server.Server, Tool: it.server.Name,
		Status: it.plainStatus(b), Arguments: object(string(it.arguments)), DurationMs: took(b),
	}
	if len(it.arguments) == 0 && it.shown != nil {
		out.Arguments = object(it.shown.Arguments)
	}
	if b == nil {
		return out
	}
	var got struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		Meta       json.RawMessage `json:"_meta"`
	}
	switch {
	case b.MCP != nil && len(b.MCP.Result) > 0 && json.Unmarshal(b.MCP.Result, &got) == nil:
		out.Result = &wire.MCPResult{Content: orElse(got.Content, "[]"), StructuredContent: orElse(got.Structured, "null"), Meta: orElse(got.Meta, "null")}
	case b.MCP != nil && b.MCP.Error != "":
		out.Error = &wire.MCPError{Message: b.MCP.Error}
	default:
		out.Error = &wire.MCPError{Message: b.Output}
	}
	return out
}

func orElse(raw json.RawMessage, def string) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(def)
	}
	return raw
}

// object is arguments as JSON, whatever the model wrote.
func object(arguments string) json.RawMessage {
	if json.Valid([]byte(arguments)) {
		return json.RawMessage(arguments)
	}
	quoted, err := json.Marshal(arguments)
	if err != nil {
		return json.RawMessage("null")
	}
	return quoted
}

func (it *item) toolCall(b *p.ToolOutput) wire.DynamicToolCall {
	out := wire.DynamicToolCall{
		Type: "dynamicToolCall", ID: it.id, Tool: it.shown.Tool, Arguments: object(it.shown.Arguments),
		Status: it.plainStatus(b), ContentItems: []wire.ToolContent{}, DurationMs: took(b),
	}
	if b != nil {
		ok := out.Status == "completed"
		out.Success = &ok
		out.ContentItems = append(out.ContentItems, wire.ToolContent{Type: "inputText", Text: b.Output})
	}
	return out
}

// look is the form of a call that only looks at something: clients know such commands, and show them in one line.
func (f *Fold) look(it *item, b *p.ToolOutput) (wire.Item, bool) {
	var a struct{ Path, Pattern, URL string }
	if json.Unmarshal([]byte(it.shown.Arguments), &a) != nil {
		return wire.Item{}, false
	}
	action := wire.CommandAction{Command: it.shown.Tool + " " + a.Path, Path: text(a.Path)}
	switch it.shown.Tool {
	case "read_file":
		action.Type, action.Name = "read", path.Base(a.Path)
	case "list_files":
		action.Type = "listFiles"
	case "grep":
		action.Type, action.Query, action.Command = "search", text(a.Pattern), "grep "+transcript.Quote([]string{a.Pattern})+" "+a.Path
	case "view_image":
		if !filepath.IsAbs(a.Path) {
			a.Path = filepath.Join(f.Settings.Cwd, a.Path)
		}
		return wire.Item{Of: wire.ImageView{Type: "imageView", ID: it.id, Path: a.Path}}, true
	case "web_fetch":
		return wire.Item{Of: wire.WebSearch{Type: "webSearch", ID: it.id, Query: a.URL, Action: &wire.WebAction{Type: "openPage", URL: a.URL}}}, true
	default:
		return wire.Item{}, false
	}
	c := wire.CommandExecution{
		Type: "commandExecution", ID: it.id, Command: action.Command, Cwd: f.Settings.Cwd, Source: "agent",
		Status: it.status(b), CommandActions: []wire.CommandAction{action}, DurationMs: took(b),
	}
	if b != nil {
		c.AggregatedOutput = &b.Output
	}
	return wire.Item{Of: c}, true
}

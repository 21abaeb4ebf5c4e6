package updates

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// planTool is the tool that changes the plan, which is shown as such.
const planTool = "update_plan"

// kinds are the kinds of our tools.
var kinds = map[string]string{
	"exec_command": "execute", "shell": "execute", "shell_command": "execute", "local_shell": "execute", "bash": "execute", "write_stdin": "execute", "user_shell": "execute",
	"apply_patch": "edit", "edit": "edit", "write": "edit",
	"read_file": "read", "view_image": "read", "read_history": "read",
	"list_files": "search", "grep": "search", "search_history": "search",
	"web_fetch": "fetch",
}

// verbs are the beginnings of the titles of calls that only look.
var verbs = map[string]string{
	"read_file": "Read", "view_image": "Look at", "list_files": "List", "grep": "Search", "web_fetch": "Fetch", "read_history": "Read earlier messages", "search_history": "Search earlier messages",
}

// Bounds of what is sent of an output: the whole of it is sent again whenever it has grown.
const (
	maxLive  = 8 << 10
	maxFinal = 128 << 10
	maxInput = 64 << 10 // of arguments as they came
)

// showCall sends a call, or what has changed about it.
func (f *Fold) showCall(it *transcript.Item) {
	s := f.cur.sent[it.ID]
	if it.Tool == planTool || it.Tool == "" || s != nil && isOver(s.call) {
		return
	}
	now := f.form(it)
	if s == nil {
		s = &sent{}
		f.cur.sent[it.ID] = s
		first := now
		first.Update = wire.NewCall
		if f.terminal(it) {
			first.Meta = map[string]any{"terminal_info": map[string]any{"terminal_id": it.ID, "cwd": it.Cwd}}
			s.grown.WriteString(it.Output)
		}
		s.call = now
		f.add(first)
		f.terminalOutput(it, s, wire.ToolCall{})
		return
	}
	change := changed(s.call, now)
	becomesTerminal := f.terminal(it) && s.call.Content != nil && !hasTerminal(s.call)
	s.call = now
	if becomesTerminal {
		change.Meta = map[string]any{"terminal_info": map[string]any{"terminal_id": it.ID, "cwd": it.Cwd}}
	}
	f.terminalOutput(it, s, change)
}

// isOver reports whether nothing more will happen to a call.
func isOver(c wire.ToolCall) bool { return c.Status == wire.Completed || c.Status == wire.Failed }

// hasTerminal reports whether a call shows a terminal.
func hasTerminal(c wire.ToolCall) bool {
	return c.Content != nil && slices.ContainsFunc(*c.Content, func(c wire.CallContent) bool { return c.Type == "terminal" })
}

// terminal reports whether the output of a call is shown in a terminal.
func (f *Fold) terminal(it *transcript.Item) bool {
	return f.o.Terminals && toolKind(it) == "execute" && len(it.Command) > 0
}

// terminalOutput sends a change of a call, with the output that its terminal has not got, and its end.
func (f *Fold) terminalOutput(it *transcript.Item, s *sent, change wire.ToolCall) {
	meta := map[string]any{}
	if f.terminal(it) {
		if out := whole(s.grown.String()); out != "" {
			rest := s.grown.String()[len(out):]
			s.grown.Reset()
			s.grown.WriteString(rest)
			meta["terminal_output"] = map[string]any{"terminal_id": it.ID, "data": strings.ToValidUTF8(out, "\uFFFD")}
		}
		if isOver(s.call) {
			exit := map[string]any{"terminal_id": it.ID, "exit_code": it.ExitCode}
			if it.Signal != "" || it.ExitCode < 0 {
				exit["exit_code"], exit["signal"] = nil, cmp.Or(it.Signal, "none")
			}
			meta["terminal_exit"] = exit
		}
	}
	for key, value := range change.Meta {
		meta[key] = value
	}
	if len(meta) > 0 {
		change.Meta = meta
	}
	if reflect.DeepEqual(change, wire.ToolCall{}) {
		return
	}
	change.Update, change.ID = wire.CallChanged, it.ID
	f.add(change)
}

// changed is what of a call has changed.
func changed(old, now wire.ToolCall) wire.ToolCall {
	var out wire.ToolCall
	set := func(to *string, old, now string) {
		if old != now {
			*to = now
		}
	}
	set(&out.Title, old.Title, now.Title)
	set(&out.Name, old.Name, now.Name)
	set(&out.Kind, old.Kind, now.Kind)
	set(&out.Status, old.Status, now.Status)
	if !reflect.DeepEqual(old.Content, now.Content) {
		out.Content = now.Content
	}
	if !reflect.DeepEqual(old.Locations, now.Locations) {
		out.Locations = now.Locations
	}
	if !bytes.Equal(old.RawInput, now.RawInput) {
		out.RawInput = now.RawInput
	}
	if !bytes.Equal(old.RawOutput, now.RawOutput) {
		out.RawOutput = now.RawOutput
	}
	return out
}

// form is a call as it is now.
func (f *Fold) form(it *transcript.Item) wire.ToolCall {
	content, locations := f.content(it), f.locations(it)
	return wire.ToolCall{
		ID: it.ID, Title: f.titleOf(it), Name: it.Tool, Kind: kindOf(it), Status: status(it),
		Content: &content, Locations: &locations, RawInput: object(it.Arguments), RawOutput: rawOutput(it),
	}
}

func status(it *transcript.Item) string {
	switch it.Status {
	case transcript.Done:
		return wire.Completed
	case transcript.Asking:
		return wire.Pending
	case transcript.Open:
		if it.Waiting {
			return wire.Pending
		}
		return wire.InProgress
	}
	return wire.Failed // the protocol knows neither interrupted nor declined
}

// toolKind is the kind of a call by its tool, or by what it runs.
func toolKind(it *transcript.Item) string {
	switch kind := kinds[it.Tool]; {
	case kind != "":
		return kind
	case len(it.Command) > 0:
		return "execute"
	}
	return "other"
}

func kindOf(it *transcript.Item) string {
	kind := toolKind(it)
	if kind != "edit" || len(it.Changes) == 0 {
		return kind
	}
	only := func(is func(transcript.Change) bool) bool {
		return !slices.ContainsFunc(it.Changes, func(c transcript.Change) bool { return !is(c) })
	}
	switch {
	case only(func(c transcript.Change) bool { return c.Kind == "delete" }):
		return "delete"
	case only(func(c transcript.Change) bool { return c.Move != "" && c.Added+c.Removed == 0 }):
		return "move"
	}
	return kind
}

// titleOf says in one line what a call does.
func (f *Fold) titleOf(it *transcript.Item) string {
	switch {
	case it.Server != nil:
		return it.Server.Server + ": " + it.Server.Name
	case len(it.Changes) > 0:
		var list []string
		for _, c := range it.Changes {
			list = append(list, c.Kind+" "+f.short(c.Path))
		}
		return strings.Join(list, ", ")
	case verbs[it.Tool] != "":
		a := argumentsOf(it)
		return strings.TrimSpace(verbs[it.Tool] + " " + cmp.Or(a.Pattern, a.URL, a.Path))
	case len(it.Command) > 0:
		return it.CommandLine()
	}
	return cmp.Or(transcript.RequestLine(it.Tool, it.Arguments), it.Tool, "command")
}

// short is a path relative to the working directory, if it is below that.
func (f *Fold) short(path string) string {
	if rel, err := filepath.Rel(f.Settings.Cwd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// arguments are those of calls that look at something.
type arguments struct{ Path, Pattern, URL string }

func argumentsOf(it *transcript.Item) (a arguments) {
	_ = json.Unmarshal([]byte(it.Arguments), &a) // what cannot be read is not shown
	return a
}

func (f *Fold) locations(it *transcript.Item) []wire.Location {
	list := []wire.Location{}
	for _, c := range it.Changes {
		list = append(list, wire.Location{Path: cmp.Or(c.Move, c.Path), Line: firstLine(c.Diff)})
	}
	path := argumentsOf(it).Path
	if len(list) > 0 || path == "" || verbs[it.Tool] == "" || strings.HasPrefix(path, "~") {
		return list
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.Settings.Cwd, path)
	}
	return append(list, wire.Location{Path: path})
}

// content is what a call shows.
func (f *Fold) content(it *transcript.Item) []wire.CallContent {
	list := []wire.CallContent{}
	text := func(s string) {
		block := wire.Text(s)
		list = append(list, wire.CallContent{Type: "content", Content: &block})
	}
	over := it.Status != transcript.Open && it.Status != transcript.Asking
	if f.terminal(it) {
		list = append(list, wire.CallContent{Type: "terminal", TerminalID: it.ID})
	}
	if applied := it.Patch == nil || it.Patch.Applied; applied {
		for _, c := range it.Changes {
			list = append(list, diffs(c)...)
		}
	}
	failed := it.Status != transcript.Done && over
	switch out := output(it, over); {
	case f.terminal(it):
	case out != "" && (len(it.Changes) == 0 || failed):
		text(fenced(out))
	}
	if over {
		for _, url := range it.Images {
			block := imageBlock(url)
			list = append(list, wire.CallContent{Type: "content", Content: &block})
		}
	}
	switch {
	case it.Background != 0 && over:
		text("It keeps running in the background as " + strconv.Itoa(int(it.Background)) + ".")
	case len(it.Command) > 0 && failed && it.Status == transcript.Failed && !f.terminal(it):
		text(it.Failure())
	case it.Progress != "" && !over:
		text(it.Progress)
	}
	return list
}

// output is the end of what a call has printed, or what it answered.
func output(it *transcript.Item, over bool) string {
	out, bound := it.Output, maxLive
	if over {
		bound = maxFinal
	}
	if len(out) > bound {
		out = out[len(out)-bound:]
		if _, rest, ok := strings.Cut(out, "\n"); ok {
			out = rest
		}
		out = "…\n" + out
	}
	return strings.ToValidUTF8(whole(out), "\uFFFD")
}

// fenced is text that Markdown leaves as it is.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

// object is JSON, or a text as JSON.
func object(arguments string) json.RawMessage {
	if len(arguments) > maxInput {
		return nil
	}
	if json.Valid([]byte(arguments)) {
		return json.RawMessage(arguments)
	}
	if arguments == "" {
		return nil
	}
	quoted, _ := json.Marshal(arguments) // a text
	return quoted
}

// rawOutput is how a command ended.
func rawOutput(it *transcript.Item) json.RawMessage {
	if it.Status == transcript.Open || it.Status == transcript.Asking || len(it.Command) == 0 || toolKind(it) != "execute" || it.Background != 0 {
		return nil
	}
	out := map[string]any{"exitCode": it.ExitCode}
	if it.Signal != "" {
		out = map[string]any{"signal": it.Signal}
	}
	if it.TimedOut {
		out["timedOut"] = true
	}
	if it.Killed > 0 {
		out["killedProcesses"] = it.Killed
	}
	raw, _ := json.Marshal(out) // numbers and texts
	return raw
}

// Reason is why the user is asked, for people.
func Reason(b *p.ApprovalRequested) string {
	text := b.Reason
	if b.Kind == p.ApproveTool && b.MCP != nil {
		text = strings.TrimSpace("The MCP server " + b.MCP.Server + " is to run " + b.MCP.Name + ". " + text)
	}
	return text
}

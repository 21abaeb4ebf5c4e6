package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/internal/patch/syntax"
	"github.com/fermata-agent/fermata/internal/tool/args"
	"github.com/fermata-agent/fermata/protocol"
)

// Tools of other agents that models know and call although they are not offered. They are carried out by our own.

// TextEditor is the editor that Claude was trained with: one tool for several commands.
type TextEditor struct {
	Read  *Read
	Edit  *Edit
	Write *Write
}

var textEditorSchema = &args.Schema{
	Tool: "str_replace_based_edit_tool", Example: `{"command":"str_replace","path":"src/app.go","old_str":"count := 1","new_str":"count := 2"}`,
	Params: []args.Param{
		{Name: "command", Type: args.String, Required: true, Description: "view, create or str_replace."},
		{Name: "path", Type: args.String, Required: true, Description: "The file.", Aliases: pathNames},
		{Name: "old_str", Type: args.String, Aliases: []string{"old_string"}},
		{Name: "new_str", Type: args.String, Aliases: []string{"new_string"}},
		{Name: "file_text", Type: args.String, Aliases: []string{"content"}},
		{Name: "view_range", Type: args.Command, Hidden: true},
	},
}

// Spec implements [Tool].
func (e *TextEditor) Spec() model.ToolSpec {
	return model.ToolSpec{Name: textEditorSchema.Tool, Kind: protocol.CallFunction, Parameters: textEditorSchema.JSON(), Description: textEditorSchema.Describe("Views, creates and edits files.")}
}

// ReadOnly implements [Tool].
func (e *TextEditor) ReadOnly() bool { return false }

// Run carries out one command.
func (e *TextEditor) Run(ctx context.Context, call Call) Result {
	var in struct {
		Command string `json:"command"`
		Range   []int  `json:"view_range"`
	}
	if err := json.Unmarshal([]byte(call.Arguments), &in); err != nil {
		return failure(textEditorSchema.Error(err.Error()))
	}
	switch in.Command {
	case "view":
		if len(in.Range) == 2 && in.Range[1] < 0 { // to the end
			in.Range[1] = in.Range[0] + readLines - 1
		}
		call.Arguments = withRange(call.Arguments, in.Range)
		return e.Read.Run(ctx, call)
	case "create":
		return e.Write.Run(ctx, call)
	case "str_replace":
		return e.Edit.Run(ctx, call)
	}
	return failure(textEditorSchema.Error(fmt.Sprintf("the command %q is not supported; use edit or write to change a file", in.Command)))
}

// withRange puts the range of lines of a view into the form of read_file.
func withRange(arguments string, lines []int) string {
	var object map[string]json.RawMessage
	if len(lines) != 2 || json.Unmarshal([]byte(arguments), &object) != nil {
		return arguments
	}
	object["offset"], object["end_line"] = fmt.Append(nil, lines[0]), fmt.Append(nil, lines[1])
	text, err := json.Marshal(object)
	if err != nil {
		return arguments
	}
	return string(text)
}

// MultiEdit makes several replacements in one file, all or none.
type MultiEdit struct{ Patch *Patch }

var multiEditSchema = &args.Schema{
	Tool: "multi_edit", Example: `{"path":"src/app.go","edits":[{"old_text":"a","new_text":"b"}]}`,
	Params: []args.Param{
		{Name: "path", Type: args.String, Required: true, Description: "The file.", Aliases: pathNames},
		{
			Name: "edits", Type: args.Objects, Required: true, Description: "The replacements, in order.",
			Item: json.RawMessage(`{"type":"object","properties":{"old_text":{"type":"string"},"new_text":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["old_text","new_text"]}`),
		},
	},
}

// Spec implements [Tool].
func (e *MultiEdit) Spec() model.ToolSpec {
	return model.ToolSpec{Name: multiEditSchema.Tool, Kind: protocol.CallFunction, Parameters: multiEditSchema.JSON(), Description: multiEditSchema.Describe("Makes several replacements in one file.")}
}

// ReadOnly implements [Tool].
func (e *MultiEdit) ReadOnly() bool { return false }

// Run makes the replacements of one call, if policy lets it.
func (e *MultiEdit) Run(ctx context.Context, call Call) Result {
	v, wrong := call.parse(multiEditSchema)
	if wrong != nil {
		return *wrong
	}
	p := &syntax.Patch{}
	for _, o := range v.Objects("edits") {
		all, _ := editSchema.Parse(string(mustObject(o)))
		one := patch.NewReplace(v.String("path"), all.String("old_text"), all.String("new_text"), all.Bool("replace_all", false))
		p.Sections = append(p.Sections, one.Sections...)
	}
	if len(p.Sections) == 0 || v.String("path") == "" {
		return failure(multiEditSchema.Error("the path or the edits are empty"))
	}
	return e.Patch.change(ctx, call, p, call.Settings.Cwd)
}

// mustObject is the JSON of an object that was read from JSON.
func mustObject(o map[string]json.RawMessage) []byte {
	o["path"] = json.RawMessage(`"."`) // which the schema of edit wants
	text, err := json.Marshal(o)
	if err != nil {
		return []byte("{}")
	}
	return text
}

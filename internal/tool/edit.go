package tool

import (
	"context"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/internal/tool/args"
	"github.com/fermata-agent/fermata/protocol"
)

// Edit replaces a text in a file. It is a patch in all but its form: approved,
// recorded, applied whole or not at all and undone like one.
type Edit struct{ Patch *Patch }

// pathNames are other names that models use for the path of a file.
var pathNames = []string{"file_path", "file", "filename", "target_file", "absolute_path", "relative_path", "filepath"}

var editSchema = &args.Schema{
	Tool: "edit", Example: `{"path":"src/app.go","old_text":"count := 1","new_text":"count := 2"}`,
	Params: []args.Param{
		{Name: "path", Type: args.String, Required: true, Description: "The file, relative to the working directory or absolute.", Aliases: pathNames},
		{
			Name: "old_text", Type: args.String, Required: true,
			Description: "The text to replace, exactly as it is in the file. Give enough lines around it that it is in the file only once.",
			Aliases:     []string{"old_string", "old_str", "old", "search", "find"},
		},
		{Name: "new_text", Type: args.String, Required: true, Description: "The text to put in its place; empty to delete it.", Aliases: []string{"new_string", "new_str", "new", "replace", "replacement"}},
		{Name: "replace_all", Type: args.Boolean, Description: "Replace every occurrence. Default: false.", Aliases: []string{"all"}},
	},
}

// Spec describes the tool to the model.
func (e *Edit) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "edit", Kind: protocol.CallFunction,
		Description: editSchema.Describe("Replaces an exact text in a file. Read the file first. The text must match exactly, with its indentation and without line numbers. " +
			"Use it for changes, and write for new files."),
		Parameters: editSchema.JSON(),
	}
}

// ReadOnly reports that edits are applied one at a time.
func (e *Edit) ReadOnly() bool { return false }

// Run makes the replacement of one call, if policy lets it.
func (e *Edit) Run(ctx context.Context, call Call) Result {
	v, wrong := call.parse(editSchema)
	if wrong != nil {
		return *wrong
	}
	if v.String("path") == "" {
		return failure(editSchema.Error("the path is empty"))
	}
	p := patch.NewReplace(v.String("path"), v.String("old_text"), v.String("new_text"), v.Bool("replace_all", false))
	return e.Patch.change(ctx, call, p, call.Settings.Cwd)
}

// Write gives a file a content. It is a patch in all but its form.
type Write struct{ Patch *Patch }

var writeSchema = &args.Schema{
	Tool: "write", Example: `{"path":"docs/notes.md","content":"# Notes\n"}`,
	Params: []args.Param{
		{Name: "path", Type: args.String, Required: true, Description: "The file, relative to the working directory or absolute.", Aliases: pathNames},
		{Name: "content", Type: args.String, Required: true, Description: "The whole content of the file.", Aliases: []string{"contents", "text", "file_text", "data"}},
	},
}

// Spec describes the tool to the model.
func (w *Write) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "write", Kind: protocol.CallFunction,
		Description: writeSchema.Describe("Writes a file, with the directories that it needs. A file that exists is replaced: use edit to change a part of one."),
		Parameters:  writeSchema.JSON(), Strict: writeSchema.Strict(),
	}
}

// ReadOnly reports that files are written one at a time.
func (w *Write) ReadOnly() bool { return false }

// Run writes the file of one call, if policy lets it.
func (w *Write) Run(ctx context.Context, call Call) Result {
	v, wrong := call.parse(writeSchema)
	if wrong != nil {
		return *wrong
	}
	if v.String("path") == "" {
		return failure(writeSchema.Error("the path is empty"))
	}
	return w.Patch.change(ctx, call, patch.NewFile(v.String("path"), v.String("content")), call.Settings.Cwd)
}

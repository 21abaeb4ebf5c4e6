package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/internal/patch/syntax"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/internal/tool/args"
	"github.com/fermata-agent/fermata/internal/tool/openfile"
	"github.com/fermata-agent/fermata/protocol"
)

// A Patch changes files by a patch, all of it or nothing. Shell uses it too, for
// models that call apply_patch as a command, and so do Edit and Write.
type Patch struct {
	Freeform bool     // offer it as a custom tool, held to the grammar
	Home     string   // fermata's own directory, which is not changed unasked
	Changes  *Changes // what this turn changed; may be nil
	Files    patch.FS // nil is the machine's

	// OtherHomes and Guarded are other paths that are not changed unasked, as for commands.
	OtherHomes, Guarded []string

	// Secret reports whether the contents of a file must not be shown, which a patch that
	// does not fit does. May be nil.
	Secret func(path string) bool

	NoEscalation bool // an approval does not let it write outside the sandbox

	Buffers openfile.Buffers // what the user has open in an editor; may be nil

	slot slot // patches are applied one at a time
}

const patchDescription = "Adds, updates, moves and deletes files by a patch, which is applied whole or not at all. " +
	"Paths are relative to the working directory, or absolute."

const patchFormat = ` The patch is a text in this format:

*** Begin Patch
*** Add File: docs/new.txt
+every line of the new file
*** Update File: src/app.go
*** Move to: cmd/app.go
@@ func main() {
 context
-removed
+added
*** Delete File: tmp.log
*** End Patch

"*** Move to" is optional. "@@" begins a change and may be followed by a line of the file above the place, such as the header of the function. ` +
	`Give three lines of context before and after a change, and more if that is not enough to find the place.`

var patchSchema = &args.Schema{
	Tool: "apply_patch", Bare: "input",
	Example: `{"input":"*** Begin Patch\n*** Update File: src/app.go\n@@ func main() {\n-\told()\n+\tnew()\n*** End Patch"}`,
	Params: []args.Param{
		{Name: "input", Type: args.Line, Required: true, Description: "The whole patch.", Aliases: []string{"patch", "diff", "text", "content", "cmd", "command", "patch_text", "arguments"}},
	},
}

// Spec describes the tool to the model.
func (t *Patch) Spec() model.ToolSpec {
	if t.Freeform {
		return model.ToolSpec{
			Name: "apply_patch", Kind: protocol.CallCustom, Grammar: syntax.Grammar,
			Description: patchDescription + " This is a freeform tool: the input is the patch itself, not JSON.",
		}
	}
	return model.ToolSpec{
		Name: "apply_patch", Kind: protocol.CallFunction, Description: patchDescription + patchFormat,
		Parameters: patchSchema.JSON(), Strict: patchSchema.Strict(),
	}
}

// ReadOnly reports that patches are applied one at a time.
func (t *Patch) ReadOnly() bool { return false }

// Run applies the patch of one call, if policy lets it.
func (t *Patch) Run(ctx context.Context, call Call) Result {
	text := call.Arguments
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, `"`) || strings.HasPrefix(trimmed, "[") {
		v, wrong := call.parse(patchSchema)
		if wrong != nil {
			return *wrong
		}
		argv, line := v.Command("input")
		if n := len(argv); n > 0 { // ["apply_patch", PATCH]
			line = argv[n-1]
		}
		text = line
	}
	return t.apply(ctx, call, text, call.Settings.Cwd)
}

// apply applies the patch in a text.
func (t *Patch) apply(ctx context.Context, call Call, text, dir string) Result {
	text, repairs := syntax.Normalize(text)
	call.noteRepair(repairs...)
	parsed, err := syntax.Parse(text)
	if err != nil {
		return failure("error: " + err.Error() + "\nNothing was applied." + patchFormat)
	}
	return t.change(ctx, call, parsed, dir)
}

// change checks a patch against the files and the rules, then writes. Commands that run side by side may ask for
// patches at the same time.
func (t *Patch) change(ctx context.Context, call Call, parsed *syntax.Patch, dir string) Result {
	defer t.slot.take()()
	plan, apply, err := t.plan(ctx, parsed, dir)
	if err != nil {
		return notApplied(ctx, fmt.Errorf("error: %w", err))
	}
	changes, err := json.Marshal(plan.FileChanges())
	if err != nil {
		return failure("error: " + err.Error())
	}
	if call.Grant != "" && !sameJSON(call.Asked, changes) {
		call.Grant = "" // a file changed meanwhile: the user said yes to something else
	}
	if call.Settings.Plan {
		return refusal(call, protocol.RefusedByPlanMode, "the patch was not applied: "+planMode)
	}
	ruling := t.rules(call).Patch(policy.PatchRequest{Paths: plan.Paths(), Answer: call.Grant})
	switch ruling.Verdict {
	case policy.Refuse:
		return refusalBy(call, ruling)
	case policy.Ask:
		return Result{Ask: &protocol.ApprovalRequested{Kind: protocol.ApprovePatch, Cwd: dir, Reason: ruling.Text, RefusedFor: ruling.Reason, Detail: changes}}
	}
	t.Changes.before(ctx, call)
	if err := t.write(ctx, call, plan, changes, apply); err != nil {
		return notApplied(ctx, err)
	}
	t.Changes.patched(plan)
	summary := plan.Summary()
	return Result{
		Output: protocol.ToolOutput{
			Output: summary,
			Patch:  &protocol.PatchResult{Applied: true, Summary: summary, Diff: plan.Diff(call.Settings.Cwd)},
		},
		Diff: t.Changes.diff(ctx, call),
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// write records the patch, then writes it. From the records whoever opens the
// conversation after a crash knows what to make of what is on disk.
func (t *Patch) write(ctx context.Context, call Call, plan *patch.Plan, changes json.RawMessage, apply openfile.Apply) error {
	rec := plan.Record()
	started, err := patchStarted(plan, rec)
	if err != nil {
		return err
	}
	started.Call, started.Cwd, started.Changes, started.AutoApproved = call.ID, call.Settings.Cwd, changes, call.Grant == ""
	if call.inCommand {
		started.Call, started.Command = protocol.CallID{}, call.ID
	}
	if err := call.Host.Record(ctx, started); err != nil {
		return err
	}
	err = apply(ctx, plan, rec, func(patch.Record) error {
		return call.Host.Record(ctx, &protocol.PatchCommitted{Patch: rec.ID, Call: started.Call})
	})
	var incomplete *patch.IncompleteError
	if call.inCommand && !errors.As(err, &incomplete) {
		settle(ctx, call, rec, err == nil)
	}
	return err
}

// plan works out what a patch does to the files, as the user's editor has them if there is one, and what carries it out.
func (t *Patch) plan(ctx context.Context, parsed *syntax.Patch, dir string) (*patch.Plan, openfile.Apply, error) {
	disk := func(ctx context.Context, p *patch.Plan, rec patch.Record, commit func(patch.Record) error) error {
		return patch.Apply(ctx, t.files(), p, rec, commit)
	}
	if t.Buffers == nil {
		p, err := patch.Verify(ctx, t.files(), dir, parsed)
		return p, disk, err
	}
	open := openfile.NewFS(ctx, t.files(), t.Buffers)
	p, err := patch.Verify(ctx, open, dir, parsed)
	if err != nil {
		return nil, nil, err
	}
	apply, err := open.Apply(p, disk)
	return p, apply, err
}

// patchStarted is the record of a patch that is about to be written.
func patchStarted(plan *patch.Plan, rec patch.Record) (*protocol.PatchStarted, error) {
	record, err := json.Marshal(rec)
	if err != nil {
		return nil, fmt.Errorf("record the patch: %w", err)
	}
	back, err := json.Marshal(wayBack(plan))
	if err != nil {
		return nil, fmt.Errorf("record the patch: %w", err)
	}
	return &protocol.PatchStarted{Patch: rec.ID, Record: record, Back: back}, nil
}

// notApplied is the result of a patch of which nothing is in the files, unless
// the error says otherwise.
func notApplied(ctx context.Context, err error) Result {
	var incomplete *patch.IncompleteError
	out := protocol.ToolOutput{Failed: true, Patch: &protocol.PatchResult{}}
	switch {
	case errors.As(err, &incomplete):
		out.Patch.Unsettled = true
		out.Output = err.Error() + "\nLook at the files before you go on."
	case ctx.Err() != nil:
		out.Aborted = true
	default:
		out.Output = err.Error() + "\nNothing was applied."
	}
	return Result{Output: out}
}

func (t *Patch) files() patch.FS {
	var files patch.FS = patch.OS{}
	if t.Files != nil {
		files = t.Files
	}
	if t.Secret != nil {
		return withoutSecrets{files, t.Secret}
	}
	return files
}

// withoutSecrets does not read secret files: what is nearest to the text that a patch
// looks for would be shown.
type withoutSecrets struct {
	patch.FS
	secret func(path string) bool
}

// ReadFile reads a file that is not secret.
func (f withoutSecrets) ReadFile(path string) ([]byte, error) {
	if f.secret(path) {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errSecret}
	}
	return f.FS.ReadFile(path)
}

var errSecret = errors.New("it holds secrets and must not be read")

// rules are what is in force for a patch. Paths of patches are real ones; roots
// are taken as they are named, so that one which leads elsewhere through a
// symbolic link, which a command may have put there, holds nothing.
func (t *Patch) rules(call Call) policy.Rules {
	s := call.Settings
	own := sandbox.Guarded(sandbox.Place{Home: t.Home, OtherHomes: t.OtherHomes, Guarded: t.Guarded})
	roots := policy.Workspace(s.Sandbox, s.Cwd, os.Getenv("TMPDIR"), own...)
	roots.Writable = slices.DeleteFunc(roots.Writable, func(dir string) bool { return dir == "/" })
	return policy.Rules{Approval: s.Approval, Mode: s.Sandbox.Mode, Grants: call.Grants, Roots: roots, NoEscalation: t.NoEscalation || s.Plan}
}

// SettlePatch completes a patch that was interrupted, or takes it back,
// from what PatchStarted recorded. After an error nothing is known.
func SettlePatch(record json.RawMessage, committed bool) (applied bool, note string, err error) {
	var rec patch.Record
	if err := json.Unmarshal(record, &rec); err != nil {
		return false, "", fmt.Errorf("read what was recorded of a patch: %w", err)
	}
	applied, err = patch.Recover(patch.OS{}, rec, committed)
	var conflict *patch.ConflictError
	if errors.As(err, &conflict) {
		return applied, conflict.Error(), nil
	}
	return applied, "", err
}

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Tool is something that a model can call. It may be used from any goroutine.
type Tool interface {
	// Spec describes the tool. It is called once, by Open.
	Spec() ToolSpec

	// Run carries out one call and returns the output for the model. An error is
	// given to the model as well, and marked as a failure; the turn goes on. When
	// ctx ends, because the turn was interrupted, Run ends what it began and returns.
	//
	// An *ApprovalError asks for an approval. Run is called again when that is given.
	Run(ctx context.Context, c Call) (string, error)
}

// A ToolSpec describes a tool to the model.
type ToolSpec struct {
	Name        string          // letters, digits, - and _
	Description string          // what it does, and when to use it
	Parameters  json.RawMessage // the JSON Schema of its arguments, an object; nil if it has none

	// ReadOnly says that calls change nothing, so that they may run side by side.
	ReadOnly bool
}

var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })

// NewTool makes a tool of a function.
func NewTool(spec ToolSpec, run func(ctx context.Context, c Call) (string, error)) Tool {
	return toolFunc{spec, run}
}

type toolFunc struct {
	spec ToolSpec
	run  func(context.Context, Call) (string, error)
}

func (t toolFunc) Spec() ToolSpec                                  { return t.spec }
func (t toolFunc) Run(ctx context.Context, c Call) (string, error) { return t.run(ctx, c) }

// A Call is one call of a tool.
type Call struct {
	ID        p.CallID
	Name      string     // the tool's
	Arguments string     // JSON, as the model wrote it; not checked against the schema
	Settings  p.Settings // of the turn

	// Decision is how the approval that the call asked for was answered; empty if
	// it has not asked. A call that is denied is not run again.
	Decision p.Decision

	print func(string)
}

// Print shows followers a part of the output as it arrives. If the turn is
// interrupted, what was printed is kept, and the model is informed. It may be called from
// any goroutine.
func (c Call) Print(text string) {
	if c.print != nil {
		c.print(strings.ToValidUTF8(text, "\uFFFD"))
	}
}

// An ApprovalError is returned by Run to ask for an approval before it does
// anything. The turn waits for the answer, a protocol.Approve, for as long as it takes, also over the
// end of the process; then Run is called again.
type ApprovalError struct {
	Command []string // what is to be done, as words
	Cwd     string   // where, if that matters
	Reason  string   // why somebody has to be asked
}

func (e *ApprovalError) Error() string { return "approval needed: " + strings.Join(e.Command, " ") }

// A toolAdapter is a Tool in the form that conversations use.
type toolAdapter struct {
	tool Tool
	spec ToolSpec
}

// Spec implements tool.Tool.
func (a toolAdapter) Spec() model.ToolSpec {
	s := a.spec
	if len(s.Parameters) == 0 {
		s.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return model.ToolSpec{Name: s.Name, Description: s.Description, Parameters: s.Parameters, Kind: p.CallFunction}
}

// ReadOnly implements tool.Tool.
func (a toolAdapter) ReadOnly() bool { return a.spec.ReadOnly }

// Run implements tool.Tool.
func (a toolAdapter) Run(ctx context.Context, c tool.Call) tool.Result {
	var mu sync.Mutex
	printed := "" // guarded by mu: a tool may print from several goroutines
	text, err := a.tool.Run(ctx, Call{
		ID: c.ID, Name: c.Name, Arguments: c.Arguments, Settings: c.Settings, Decision: c.Grant,
		print: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			printed += text
			c.Host.Write(p.DeltaStdout, text)
		},
	})
	mu.Lock()
	defer mu.Unlock()
	var ask *ApprovalError
	switch {
	case ctx.Err() != nil && err != nil:
		return tool.Result{Output: p.ToolOutput{Output: printed, Aborted: true}}
	case errors.As(err, &ask):
		return tool.Result{Ask: &p.ApprovalRequested{Kind: p.ApproveCommand, Command: ask.Command, Cwd: ask.Cwd, Reason: ask.Reason}}
	case err != nil:
		return tool.Result{Output: p.ToolOutput{Output: "failed: " + err.Error(), Failed: true}}
	}
	return tool.Result{Output: p.ToolOutput{Output: text}}
}

package engine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/tool/exchange"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Tool is something that a model can call. It may be used from any goroutine.
type Tool interface {
	// Spec describes the tool. It is called once, by Open.
	Spec() ToolSpec

	// Run carries out one call and returns the output for the model. The model is sent
	// the text of an error as well, marked as a failure; the turn continues. When
	// ctx ends, because the turn was interrupted, Run ends what it began and returns.
	//
	// An *ApprovalError asks for an approval. Run is called again after an approval.
	Run(ctx context.Context, c Call) (Output, error)
}

// An Output is what a call returns to the model.
type Output struct {
	Text   string  // for the model, and shown to users
	Images []Image // for models that accept images
	Failed bool    // the call did not do what was asked; Text says why
}

// An Image is a picture in an Output.
type Image struct {
	Type string // its media type, such as image/png
	Data []byte // the file
}

// content is the output in the form of a message, if it has more than text.
func (o Output) content() []p.Content {
	var list []p.Content
	for _, img := range o.Images {
		url := "data:" + img.Type + ";base64," + base64.StdEncoding.EncodeToString(img.Data)
		list = append(list, p.Content{Type: p.ContentImage, ImageURL: url})
	}
	return list
}

// A ToolSpec describes a tool to the model.
type ToolSpec struct {
	Name        string          // letters, digits, - and _
	Description string          // what it does, and when to use it
	Parameters  json.RawMessage // the JSON Schema of its arguments, an object; nil if it has none

	// ReadOnly says that calls change nothing, so that they may run side by side.
	ReadOnly bool

	// Strict lets the service hold the model to Parameters. Not every schema can be used so.
	Strict bool

	// Grammar, if set, makes this a tool whose argument is free text that follows a grammar in Lark's form.
	// Only some models accept that.
	Grammar string

	// Hidden keeps the tool from being offered. A model that calls it all the same gets its output.
	Hidden bool
}

var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })

// NewTool makes a tool of a function. ToolFor derives the schema and the decoding, too.
func NewTool(spec ToolSpec, run func(ctx context.Context, c Call) (Output, error)) Tool {
	return toolFunc{spec, run}
}

type toolFunc struct {
	spec ToolSpec
	run  func(context.Context, Call) (Output, error)
}

func (t toolFunc) missing() bool                                   { return t.run == nil }
func (t toolFunc) Spec() ToolSpec                                  { return t.spec }
func (t toolFunc) Run(ctx context.Context, c Call) (Output, error) { return t.run(ctx, c) }

// A Call is one call of a tool.
type Call struct {
	ID        p.CallID   // which one, in its conversation
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
// anything. The turn waits for the answer, a protocol.Approve, for as long as it takes, also across
// restarts of the process; then Run is called again.
type ApprovalError struct {
	Command []string // what is to be done, as words
	Cwd     string   // where, if that matters
	Reason  string   // why an approval is needed
}

func (e *ApprovalError) Error() string { return "approval needed: " + strings.Join(e.Command, " ") }

// A toolAdapter is a Tool in the form that conversations use.
type toolAdapter struct {
	tool Tool
	spec ToolSpec
}

func toolsOf(list []Tool) []tool.Tool {
	tools := make([]tool.Tool, len(list))
	for i, t := range list {
		var ok bool
		if tools[i], ok = native[tool.Tool](t); !ok {
			tools[i] = adapt(t)
		}
	}
	return tools
}

func adapt(t Tool) tool.Tool {
	a := toolAdapter{t, t.Spec()}
	if a.spec.Hidden {
		return tool.Hidden(a)
	}
	return a
}

// Spec implements tool.Tool.
func (a toolAdapter) Spec() model.ToolSpec {
	s := a.spec
	spec := model.ToolSpec{Name: s.Name, Description: s.Description, Parameters: s.Parameters, Strict: s.Strict, Kind: p.CallFunction, Grammar: s.Grammar}
	if s.Grammar != "" {
		spec.Kind = p.CallCustom
	} else if len(s.Parameters) == 0 {
		spec.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return spec
}

// ReadOnly implements tool.Tool.
func (a toolAdapter) ReadOnly() bool { return a.spec.ReadOnly }

// Run implements tool.Tool.
func (a toolAdapter) Run(ctx context.Context, c tool.Call) tool.Result {
	var mu sync.Mutex
	printed := "" // guarded by mu: a tool may print from several goroutines
	x := &exchange.Exchange{Call: c}
	out, err := a.tool.Run(exchange.With(ctx, x), Call{
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
	case x.Result != nil && (err == nil || x.Result.Ask != nil && errors.As(err, &ask)):
		return withText(*x.Result, out.Text)
	case ctx.Err() != nil && err != nil:
		return tool.Result{Output: p.ToolOutput{Output: printed, Aborted: true}}
	case errors.As(err, &ask):
		return tool.Result{Ask: &p.ApprovalRequested{Kind: p.ApproveCommand, Command: ask.Command, Cwd: ask.Cwd, Reason: ask.Reason}}
	case err != nil:
		return tool.Result{Output: p.ToolOutput{Output: "failed: " + err.Error(), Failed: true}}
	}
	return tool.Result{Output: p.ToolOutput{Output: strings.ToValidUTF8(out.Text, "\uFFFD"), Content: out.content(), Failed: out.Failed}}
}

// withText is the result of one of this module's tools, with the text that a tool around it made of its own.
func withText(r tool.Result, text string) tool.Result {
	if r.Ask == nil {
		r.Output.Output = text
	}
	return r
}

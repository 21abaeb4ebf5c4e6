// Package native gives the models, tools and stores of this module their public form. An engine takes what is inside,
// so that the form costs nothing; a program that wraps one uses the form.
package native

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/tool/exchange"
	p "github.com/fermata-agent/fermata/protocol"
)

// Model returns a client of a model service as a model.
func Model(c model.Client) engine.Model { return client{c} }

type client struct{ model.Client }

// Native returns what engines use.
func (c client) Native() model.Client { return c.Client }

// Stream implements engine.Model.
func (c client) Stream(ctx context.Context, r engine.Request, reply *engine.Reply) error {
	end, err := c.Client.Stream(ctx, prompt(r), reply)
	if end.Usage != nil {
		reply.Usage(*end.Usage)
	}
	reply.ID(end.ID)
	return err
}

func prompt(r engine.Request) model.Prompt {
	pr := model.Prompt{
		CacheKey: string(r.Conversation), Model: r.Model, Instructions: r.Instructions, Items: r.Items,
		Effort: r.Effort, Summary: r.Summary, Verbosity: r.Verbosity, OutputSchema: r.OutputSchema,
		NoCalls: r.NoCalls, Window: r.Window, UnknownCalls: r.UnknownCalls,
	}
	for _, t := range r.Tools {
		spec := model.ToolSpec{Name: t.Name, Description: t.Description, Parameters: t.Parameters, Strict: t.Strict, Kind: p.CallFunction, Grammar: t.Grammar}
		if t.Grammar != "" {
			spec.Kind = p.CallCustom
		}
		pr.Tools = append(pr.Tools, spec)
	}
	return pr
}

// Tool returns one of our tools in its public form.
func Tool(t tool.Tool) engine.Tool { return builtin{t} }

// Tools returns a list of our tools in their public form.
func Tools(list []tool.Tool) []engine.Tool {
	tools := make([]engine.Tool, len(list))
	for i, t := range list {
		tools[i] = Tool(t)
	}
	return tools
}

type builtin struct{ tool tool.Tool }

// Native returns what engines use.
func (b builtin) Native() tool.Tool { return b.tool }

// Spec implements engine.Tool.
func (b builtin) Spec() engine.ToolSpec {
	s := b.tool.Spec()
	return engine.ToolSpec{
		Name: s.Name, Description: s.Description, Parameters: s.Parameters, Strict: s.Strict, Grammar: s.Grammar,
		ReadOnly: b.tool.ReadOnly(), Hidden: len(tool.Offered([]tool.Tool{b.tool})) == 0,
	}
}

// Run implements engine.Tool, for a tool that a program has put around this one.
func (b builtin) Run(ctx context.Context, c engine.Call) (engine.Output, error) {
	x := exchange.Of(ctx)
	if x == nil {
		return engine.Output{}, fmt.Errorf("tool %s must be run by an engine", b.tool.Spec().Name)
	}
	call := x.Call
	call.Arguments, call.Settings = c.Arguments, c.Settings
	res := b.tool.Run(ctx, call)
	x.Result = &res
	if ask := res.Ask; ask != nil {
		return engine.Output{}, &engine.ApprovalError{Command: ask.Command, Cwd: ask.Cwd, Reason: ask.Reason}
	}
	return engine.Output{Text: res.Output.Output, Failed: res.Output.Failed}, nil
}

// Store returns one of our stores in its public form. end is called by Close; it may be nil.
func Store(s journal.Store, end func()) engine.Store { return store{s, end} }

type store struct {
	journals journal.Store
	end      func()
}

// Native returns what engines use.
func (s store) Native() journal.Store { return s.journals }

// Close implements engine.Store.
func (s store) Close() error {
	if s.end != nil {
		s.end()
	}
	return nil
}

// InvalidStore returns a store that cannot be used, and says why: engine.Open reports it.
func InvalidStore(why string) engine.Store {
	return invalid{store{journals: journal.NewMemoryStore(journal.MemoryOptions{})}, errors.New(why)}
}

type invalid struct {
	store
	err error
}

// Invalid returns why the store cannot be used.
func (s invalid) Invalid() error { return s.err }

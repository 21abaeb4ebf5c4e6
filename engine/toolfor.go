package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fermata-agent/fermata/internal/tool/args"
)

// ToolFor makes a tool of a function with a typed argument. The schema that the model sees is derived from In, a struct or
// a map: a field's json tag names it, omitempty makes it optional, and its jsonschema tag describes it. Arguments that do
// not fit the schema are an error for the model, and fn is not called.
//
// What fn returns is the output: an Output as it is, a string as text, anything else as JSON. Its errors are as for
// Tool.Run, also an *ApprovalError; CallOf returns the Call, to print and to see the decision.
//
// A schema that cannot be derived is an error of Open.
func ToolFor[In, Out any](name, description string, fn func(context.Context, In) (Out, error)) Tool {
	arguments := args.NewTyped[In]()
	t := typedTool{toolFunc: toolFunc{spec: ToolSpec{Name: name, Description: description}}, schema: arguments.JSON}
	if fn == nil {
		return t
	}
	t.run = func(ctx context.Context, c Call) (Output, error) {
		in, err := arguments.Decode(c.Arguments)
		if err != nil {
			return Output{}, fmt.Errorf("the arguments of %s are not valid: %w", name, err)
		}
		out, err := fn(context.WithValue(ctx, callKey{}, c), in)
		if err != nil {
			return Output{}, err
		}
		return outputOf(out)
	}
	return t
}

type callKey struct{}

// CallOf returns the call that the function of ToolFor carries out. ctx is that of the function.
func CallOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call)
	return c
}

// A typedTool is a function whose schema is derived when it is first needed.
type typedTool struct {
	toolFunc
	schema func() (json.RawMessage, error)
}

// Spec describes the tool.
func (t typedTool) Spec() ToolSpec {
	spec := t.spec
	spec.Parameters, _ = t.schema() // Invalid reports the error
	return spec
}

// Invalid returns why there is no schema.
func (t typedTool) Invalid() error {
	_, err := t.schema()
	return err
}

// outputOf is what a function returned as an output.
func outputOf(v any) (Output, error) {
	switch v := v.(type) {
	case Output:
		return v, nil
	case string:
		return Output{Text: v}, nil
	}
	data, err := json.Marshal(v)
	return Output{Text: string(data)}, err
}

package wire

import (
	"encoding/json"
	"strings"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/protocol"
)

// Some wires know only functions, whose arguments are JSON. On those a custom
// tool, whose input is free text, is a function with one argument called input.

// Function is a tool as a function.
func Function(t model.ToolSpec) model.ToolSpec {
	if t.Kind == protocol.CallCustom {
		t.Parameters = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)
		if t.Grammar != "" {
			t.Description = strings.TrimSpace(t.Description + "\n\nThe input has to follow this Lark grammar:\n" + t.Grammar)
		}
	}
	if len(t.Parameters) == 0 {
		t.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t
}

// FromFunction is a call of a function as a call of the tool it stands for.
func FromFunction(tools []model.ToolSpec, id, name, arguments string) *protocol.ToolCall {
	name = ToolName(tools, name)
	call := &protocol.ToolCall{WireID: id, Kind: protocol.CallFunction, Name: name, Arguments: arguments}
	for _, t := range tools {
		if t.Name == name && t.Kind == protocol.CallCustom {
			call.Kind = protocol.CallCustom
			call.Arguments = customInput(arguments)
		}
	}
	if strings.TrimSpace(call.Arguments) == "" && call.Kind == protocol.CallFunction {
		call.Arguments = "{}" // what a call without arguments means
	}
	return call
}

// customInput is the input in the arguments of a function; a model may also
// have written it bare.
func customInput(arguments string) string {
	var args struct {
		Input *string `json:"input"`
	}
	if json.Unmarshal([]byte(arguments), &args) != nil || args.Input == nil {
		return arguments
	}
	return *args.Input
}

// FunctionArguments are the arguments of a call as those of a function: always
// a JSON object.
func FunctionArguments(it *protocol.PromptItem) string {
	if it.CallKind == protocol.CallCustom {
		return string(append(AppendString([]byte(`{"input":`), it.Arguments), '}'))
	}
	m := Scan([]byte(it.Arguments))
	for m.Next() {
	}
	if m.Err() != nil || !json.Valid([]byte(it.Arguments)) {
		// What the model wrote was not JSON. Services refuse that in a history.
		return string(append(AppendString([]byte(`{"invalid":`), it.Arguments), '}'))
	}
	return it.Arguments
}

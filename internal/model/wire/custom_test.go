package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/protocol"
)

var tools = []model.ToolSpec{
	{Name: "shell", Kind: protocol.CallFunction, Parameters: json.RawMessage(`{"type":"object"}`)},
	{Name: "patch", Kind: protocol.CallCustom, Description: "patches", Grammar: "start: x"},
	{Name: "none"},
}

func TestFunction(t *testing.T) {
	for i, want := range []string{`{"type":"object"}`, `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`, `{"type":"object","properties":{}}`} {
		if got := string(Function(tools[i]).Parameters); got != want {
			t.Errorf("%s: %s", tools[i].Name, got)
		}
	}
	if d := Function(tools[1]).Description; !strings.HasPrefix(d, "patches\n") || !strings.HasSuffix(d, "start: x") {
		t.Errorf("description is %q", d)
	}
}

func TestFromFunction(t *testing.T) {
	tests := []struct {
		name, arguments string
		kind            protocol.CallKind
		want            string
	}{
		{"shell", `{"a":1}`, protocol.CallFunction, `{"a":1}`},
		{"shell", ``, protocol.CallFunction, `{}`},
		{"shell", ` `, protocol.CallFunction, `{}`},
		{"shell", `not json`, protocol.CallFunction, `not json`},
		{"other", `{"input":"x"}`, protocol.CallFunction, `{"input":"x"}`},
		{"patch", `{"input":"*** Begin\n"}`, protocol.CallCustom, "*** Begin\n"},
		{"patch", `{"input":""}`, protocol.CallCustom, ""},
		{"patch", "*** bare", protocol.CallCustom, "*** bare"},
		{"patch", `{"other":1}`, protocol.CallCustom, `{"other":1}`},
	}
	for _, tt := range tests {
		got := FromFunction(tools, "id", tt.name, tt.arguments)
		if got.Kind != tt.kind || got.Arguments != tt.want || got.WireID != "id" || got.Name != tt.name {
			t.Errorf("%s %s: %+v", tt.name, tt.arguments, got)
		}
	}
}

func TestFunctionArguments(t *testing.T) {
	for _, tt := range []struct {
		kind       protocol.CallKind
		args, want string
	}{
		{protocol.CallFunction, `{"a":[1]}`, `{"a":[1]}`},
		{protocol.CallCustom, "a\n\"b\"", `{"input":"a\n\"b\""}`},
		{protocol.CallFunction, `{"a":`, `{"invalid":"{\"a\":"}`},
		{protocol.CallFunction, `{"a":[1 2]}`, `{"invalid":"{\"a\":[1 2]}"}`},
		{protocol.CallFunction, `5`, `{"invalid":"5"}`},
		{protocol.CallLocalShell, `{"command":[]}`, `{"command":[]}`},
	} {
		if got := FunctionArguments(&protocol.PromptItem{CallKind: tt.kind, Arguments: tt.args}); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.args, got, tt.want)
		}
	}
}

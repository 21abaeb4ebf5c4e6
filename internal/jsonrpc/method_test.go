package jsonrpc

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type inner struct {
	Deep bool `json:"deep"`
}

type everything struct {
	inner
	Mode   string            `json:"mode" enum:"a,b" doc:"which one"`
	Count  *int              `json:"count"`
	Ratio  float64           `json:"ratio,omitzero"`
	List   []inner           `json:"list,omitempty"`
	Table  map[string]string `json:"table,omitempty"`
	Any    json.RawMessage   `json:"any,omitempty"`
	Hidden string            `json:"-"`
	Plain  int
	secret int
}

func TestSchema(t *testing.T) {
	methods := []Method{
		Handle("do", func(context.Context, *Request, everything) (inner, error) { return inner{}, nil }),
		Listen("note", func(context.Context, struct{}) {}),
		Ask[inner, inner]("may I"),
		Notification[inner]("look"),
		Listen("stop", func(context.Context, inner) {}),
		Notification[inner]("stop"),
	}
	got, err := json.MarshalIndent(Schema(methods)["methods"], "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var have, want any
	_ = json.Unmarshal(got, &have)
	if err := json.Unmarshal([]byte(`{
		"do": {"kind": "request", "from": "client",
			"params": {"type": "object", "required": ["deep", "mode", "Plain"], "properties": {
				"deep": {"type": "boolean"}, "mode": {"type": "string", "enum": ["a", "b"], "description": "which one"},
				"count": {"type": ["integer", "null"]}, "ratio": {"type": "number"},
				"list": {"type": "array", "items": {"type": "object", "required": ["deep"], "properties": {"deep": {"type": "boolean"}}}},
				"table": {"type": "object", "additionalProperties": {"type": "string"}}, "any": {}, "Plain": {"type": "integer"}}},
			"result": {"type": "object", "required": ["deep"], "properties": {"deep": {"type": "boolean"}}}},
		"note": {"kind": "notification", "from": "client", "params": {"type": "object", "properties": {}}},
		"may I": {"kind": "request", "from": "server", "params": {"type": "object", "required": ["deep"], "properties": {"deep": {"type": "boolean"}}},
			"result": {"type": "object", "required": ["deep"], "properties": {"deep": {"type": "boolean"}}}},
		"look": {"kind": "notification", "from": "server", "params": {"type": "object", "required": ["deep"], "properties": {"deep": {"type": "boolean"}}}},
		"stop": {"kind": "notification", "from": "both", "params": {"type": "object", "required": ["deep"], "properties": {"deep": {"type": "boolean"}}}}}`), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("schema (-want +got):\n%s", d)
	}
	_ = everything{}.secret
}

func TestDecodeChecksWhatAValueMayBe(t *testing.T) {
	for params, want := range map[string]string{
		`{"deep":true,"mode":"a","Plain":1}`:  "",
		`{"deep":true,"mode":"","Plain":1}`:   `mode: "" is none of a, b`,
		`{"deep":true,"mode":null,"Plain":1}`: `mode: "" is none of a, b`,
		`{"deep":true,"mode":"c","Plain":1}`:  `mode: "c" is none of a, b`,
		`{"deep":true,"Plain":1}`:             "mode is missing",
	} {
		got := ""
		if err := Decode(json.RawMessage(params), new(everything)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", params, got, want)
		}
	}
}

type either struct{}

func (either) Variants() []any { return []any{struct{ A string }{}, struct{ B int }{}} }

func TestUnionsAndUnknownMembers(t *testing.T) {
	list, _ := SchemaOf(reflect.TypeFor[either]())["oneOf"].([]any)
	if len(list) != 2 {
		t.Errorf("a union has %d variants", len(list))
	}
	type params struct {
		Known string `json:"known"`
	}
	got := Unknown(json.RawMessage(`{"z":1,"known":"x","none":null,"a":{}}`), reflect.TypeFor[params]())
	if want := []string{"a", "z"}; !slices.Equal(got, want) {
		t.Errorf("unknown members %q, want %q", got, want)
	}
}

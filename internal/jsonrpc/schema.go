package jsonrpc

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A field is a member of a struct's JSON.
type field struct {
	name     string
	required bool
	null     bool // it is there even if it is nothing
	typ      reflect.Type
	tag      reflect.StructTag
}

// fields lists the members of a struct's JSON, embedded ones included.
func fields(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			list = append(list, fields(f.Type)...)
			continue
		case name == "":
			name = f.Name
		}
		left, pointer := strings.Contains(opts, "omitempty") || strings.Contains(opts, "omitzero"), f.Type.Kind() == reflect.Pointer
		list = append(list, field{name, !left && !pointer, !left && pointer, f.Type, f.Tag})
	}
	return list
}

// A Union is a type whose JSON is that of one of several types.
type Union interface{ Variants() []any }

// Unknown lists the members of params that a struct does not have, in order. Those that are null do not count.
func Unknown(params json.RawMessage, t reflect.Type) []string {
	var given map[string]json.RawMessage
	if json.Unmarshal(params, &given) != nil || t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range fields(t) {
		delete(given, f.name)
	}
	maps.DeleteFunc(given, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	return slices.Sorted(maps.Keys(given))
}

var (
	unionType = reflect.TypeFor[Union]()
	rawType   = reflect.TypeFor[json.RawMessage]()
	textType  = reflect.TypeFor[encoding.TextMarshaler]()
)

// SchemaOf is the JSON Schema of a type. The tag enum:"a,b" of a field lists what
// it may be, doc:"…" says what it is.
func SchemaOf(t reflect.Type) map[string]any {
	switch {
	case t == nil, t == rawType, t.Kind() == reflect.Interface:
		return map[string]any{} // anything
	case t.Implements(unionType):
		var list []any
		for _, v := range reflect.Zero(t).Interface().(Union).Variants() {
			list = append(list, SchemaOf(reflect.TypeOf(v)))
		}
		return map[string]any{"oneOf": list}
	case t.Implements(textType):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return SchemaOf(t.Elem())
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": SchemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": SchemaOf(t.Elem())}
	case reflect.Struct:
		return structSchema(t)
	}
	return map[string]any{"type": "integer"}
}

func structSchema(t reflect.Type) map[string]any {
	properties := map[string]any{}
	required := []string{}
	for _, f := range fields(t) {
		s := SchemaOf(f.typ)
		if kind, ok := s["type"]; ok && f.null {
			s["type"] = []any{kind, "null"}
		}
		if enum := f.tag.Get("enum"); enum != "" {
			s["enum"] = strings.Split(enum, ",")
		}
		if doc := f.tag.Get("doc"); doc != "" {
			s["description"] = doc
		}
		properties[f.name] = s
		if f.required {
			required = append(required, f.name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

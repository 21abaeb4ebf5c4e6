package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
)

// A Method is a row of the table of everything that is said on a connection: [Handle]
// and [Listen] make one that the peer uses, [Ask] and [Notification] one that we do.
type Method struct {
	Name         string
	Notification bool
	Ours         bool // we send it, the peer answers it
	Params       reflect.Type
	Result       reflect.Type // nil for a notification

	// Lane, if set, names a lane for a request or notification: those in one lane begin in the
	// order they were read, each when the one before is over or calls Release. "" is none.
	Lane func(params json.RawMessage) string

	// Arrive, if set, is called when a request was read, before its handler runs or waits for its lane: in the order of the requests.
	// The handler finds what it returns in Request.Arrived. over is called when the request was answered.
	Arrive func(params json.RawMessage) (arrived any, over func())

	First bool // it is answered before anything else is read: for what is quick, and needed to answer the rest

	serve func(context.Context, *Request) (any, error)
}

// Handle makes a method with a result. A field of P without omitempty,
// omitzero or a pointer must be there.
func Handle[P, R any](name string, fn func(context.Context, *Request, P) (R, error)) Method {
	return Method{
		Name: name, Params: reflect.TypeFor[P](), Result: reflect.TypeFor[R](),
		serve: func(ctx context.Context, r *Request) (any, error) {
			var p P
			if err := Decode(r.Params, &p); err != nil {
				return nil, err
			}
			return fn(ctx, r, p)
		},
	}
}

// Listen makes a notification.
func Listen[P any](name string, fn func(context.Context, P)) Method {
	return Method{
		Name: name, Notification: true, Params: reflect.TypeFor[P](),
		serve: func(ctx context.Context, r *Request) (any, error) {
			var p P
			if err := Decode(r.Params, &p); err != nil {
				return nil, err
			}
			fn(ctx, p)
			return nil, nil
		},
	}
}

// Ask describes a request that we make.
func Ask[P, R any](name string) Method {
	return Method{Name: name, Ours: true, Params: reflect.TypeFor[P](), Result: reflect.TypeFor[R]()}
}

// Notification describes a notification that we send.
func Notification[P any](name string) Method {
	return Method{Name: name, Ours: true, Notification: true, Params: reflect.TypeFor[P]()}
}

// InLane returns m with a lane.
func (m Method) InLane(lane func(json.RawMessage) string) Method {
	m.Lane = lane
	return m
}

// Arriving returns m with a function that is called when a request was read.
func (m Method) Arriving(arrive func(json.RawMessage) (any, func())) Method {
	m.Arrive = arrive
	return m
}

// Decode reads params into the struct that to points at. Members that it does not know
// are ignored: clients send more than we ask for. The error is an [*Error].
func Decode(params json.RawMessage, to any) error {
	if len(params) == 0 || bytes.Equal(bytes.TrimSpace(params), null) {
		params = json.RawMessage("{}")
	}
	if err := json.Unmarshal(params, to); err != nil {
		return Errorf(CodeParams, "%s", paramsProblem(err))
	}
	t := reflect.TypeOf(to).Elem()
	if t.Kind() != reflect.Struct {
		return nil
	}
	var given map[string]json.RawMessage
	_ = json.Unmarshal(params, &given) // it was an object
	for _, f := range fields(t) {
		value, ok := given[f.name]
		if f.required && !ok {
			return Errorf(CodeParams, "%s is missing", f.name)
		}
		if err := f.oneOf(value); err != nil {
			return err
		}
	}
	return nil
}

// oneOf checks a value against the tag enum. What need not be given may be empty.
func (f field) oneOf(value json.RawMessage) error {
	enum := f.tag.Get("enum")
	var text string
	if enum == "" || json.Unmarshal(value, &text) != nil || text == "" && !f.required {
		return nil
	}
	if list := strings.Split(enum, ","); !slices.Contains(list, text) {
		return Errorf(CodeParams, "%s: %q is none of %s", f.name, text, strings.Join(list, ", "))
	}
	return nil
}

// paramsProblem says what is wrong without Go's names for it.
func paramsProblem(err error) string {
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) {
		return err.Error()
	}
	name := t.Field
	if name == "" {
		name = "params"
	}
	return name + ": " + t.Value + " does not fit"
}

// Schema describes methods in JSON Schema: for each who sends it (the client, the server, or
// both), its params and, if it has one, its result.
func Schema(methods []Method) map[string]any {
	rows := map[string]any{}
	for _, m := range methods {
		row := map[string]any{"params": SchemaOf(m.Params), "kind": "notification", "from": "client"}
		if m.Ours {
			row["from"] = "server"
		}
		if !m.Notification {
			row["kind"], row["result"] = "request", SchemaOf(m.Result)
		}
		if before, ok := rows[m.Name].(map[string]any); ok && before["from"] != row["from"] {
			row["from"] = "both"
		}
		rows[m.Name] = row
	}
	return map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "methods": rows}
}

package protocol

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// ops lists every op by the name it has in JSON.
var ops = []struct {
	name string
	op   Op
}{
	{"user_turn", UserTurn{}},
	{"user_shell", UserShell{}},
	{"kill_background", KillBackground{}},
	{"interrupt", Interrupt{}},
	{"approve", Approve{}},
	{"answer_elicitation", AnswerElicitation{}},
	{"configure", Configure{}},
	{"try_now", TryNow{}},
	{"compact", Compact{}},
	{"rename", Rename{}},
	{"revert", Revert{}},
	{"undo", Undo{}},
	{"edit_input", EditInput{}},
	{"delete_input", DeleteInput{}},
	{"resolve_returned", ResolveReturned{}},
}

// An OpJSON is an op in the form {"kind", "body"}.
type OpJSON struct {
	Op Op
}

type opJSON struct {
	Kind string          `json:"kind"`
	Body json.RawMessage `json:"body"`
}

// MarshalJSON writes {"kind", "body"}. The op may be a value or a pointer.
func (o OpJSON) MarshalJSON() ([]byte, error) {
	typ := reflect.TypeOf(o.Op)
	if typ != nil && typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	for _, row := range ops {
		if reflect.TypeOf(row.op) == typ {
			body, err := json.Marshal(o.Op)
			if err != nil {
				return nil, err
			}
			return json.Marshal(opJSON{row.name, body})
		}
	}
	return nil, fmt.Errorf("%T is not an op", o.Op)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (o *OpJSON) UnmarshalJSON(data []byte) error {
	var w opJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	for _, row := range ops {
		if row.name != w.Kind {
			continue
		}
		v := reflect.New(reflect.TypeOf(row.op))
		if err := json.Unmarshal(w.Body, v.Interface()); err != nil {
			return fmt.Errorf("decode op %s: %w", w.Kind, err)
		}
		o.Op, _ = v.Elem().Interface().(Op)
		return nil
	}
	return fmt.Errorf("unsupported op %q", w.Kind)
}

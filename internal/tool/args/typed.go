package args

import (
	"cmp"
	"encoding/json"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Typed reads arguments into a Go type, by the schema that is derived from it when it is first needed.
type Typed[In any] struct {
	schema func() (*jsonschema.Resolved, error)
}

// NewTyped returns a Typed for a type.
func NewTyped[In any]() Typed[In] {
	return Typed[In]{sync.OnceValues(func() (*jsonschema.Resolved, error) {
		s, err := jsonschema.For[In](nil)
		if err != nil {
			return nil, err
		}
		return s.Resolve(nil)
	})}
}

// JSON returns the schema.
func (t Typed[In]) JSON() (json.RawMessage, error) {
	s, err := t.schema()
	if err != nil {
		return nil, err
	}
	return json.Marshal(s.Schema())
}

// Decode reads arguments. Those that do not fit the schema are an error.
func (t Typed[In]) Decode(arguments string) (in In, err error) {
	s, err := t.schema()
	if err != nil {
		return in, err
	}
	arguments = cmp.Or(arguments, "{}")
	var value any
	if err := json.Unmarshal([]byte(arguments), &value); err != nil {
		return in, err
	}
	if err := s.Validate(value); err != nil {
		return in, err
	}
	return in, json.Unmarshal([]byte(arguments), &in)
}

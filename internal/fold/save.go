package fold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/history"
)

// revision is part of the form. Raise it when the meaning of something that is
// saved changes although its type does not.
const revision = 2

// saved is a State as it is saved, without the history, which follows.
type saved struct {
	Form  string // how the rest is to be read
	State *State
}

// Save returns the state in a form that Restore reads.
func (s *State) Save() ([]byte, error) {
	hist, err := s.History.Save()
	if err != nil {
		return nil, fmt.Errorf("save the conversation's state: %w", err)
	}
	data, err := json.Marshal(saved{form(), s})
	if err != nil {
		return nil, fmt.Errorf("save the conversation's state: %w", err)
	}
	return slices.Concat(data, []byte("\n"), hist), nil
}

// Restore returns the state that Save wrote. What a version with another form of
// state wrote is an error: the events have to be folded again.
func Restore(data []byte) (*State, error) {
	in := saved{State: New()}
	data, hist, _ := bytes.Cut(data, []byte("\n"))
	err := json.Unmarshal(data, &in)
	if err != nil {
		return nil, fmt.Errorf("restore the conversation's state: %w", err)
	}
	s := in.State
	if in.Form != form() || s == nil {
		return nil, fmt.Errorf("restore the conversation's state: it has form %q, not %q", in.Form, form())
	}
	if s.History, err = history.Restore(hist); err != nil {
		return nil, err
	}
	return s, nil
}

// form names the form in which this version saves a state: it differs if any
// type that is saved does.
var form = sync.OnceValue(func() string {
	var b strings.Builder
	describe(&b, reflect.TypeFor[State]())
	describe(&b, reflect.TypeOf(new(history.History).SavedAs()))
	h := fnv.New64a()
	h.Write([]byte(b.String()))
	return fmt.Sprintf("%d-%x", revision, h.Sum64())
})

// describe writes what JSON sees of a type: the names and types of its fields.
func describe(b *strings.Builder, t reflect.Type) {
	fmt.Fprintf(b, "%s ", t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(b, t.Elem())
	case reflect.Map:
		describe(b, t.Key())
		describe(b, t.Elem())
	case reflect.Struct:
		b.WriteString("{")
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
				continue
			}
			fmt.Fprintf(b, "%s %s ", f.Name, f.Tag.Get("json"))
			describe(b, f.Type)
		}
		b.WriteString("}")
	}
}

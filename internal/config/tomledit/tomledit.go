// Package tomledit changes a TOML text and leaves the rest of it as a person wrote
// it: comments, order, blank lines and the way values are written. [Set] and [Remove]
// are pure functions from text to text.
//
// What they return is decoded and compared with what was asked for before anybody sees
// it; a text that is written in a way that they cannot change gives an error.
package tomledit

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// ErrUnsupported says that a text is written in a way that cannot be edited here, such as an
// array of tables.
var ErrUnsupported = errors.New("this part of the file has to be edited by hand")

// Set returns the text with the value at the path. A value is a string, a bool, an int,
// an int64, a float64, a []string, a []any, or a map[string]any of such, which replaces the
// whole table.
func Set(text string, path []string, value any) (string, error) {
	if len(path) == 0 {
		return "", errors.New("set: the path is empty")
	}
	before, err := decode(text)
	if err != nil {
		return "", err
	}
	plain, err := normalize(value)
	if err != nil {
		return "", fmt.Errorf("set %s: %w", formatKey(path), err)
	}
	after := text
	if table, ok := plain.(map[string]any); ok {
		after, err = setTable(after, before, path, table)
	} else {
		after, err = setValue(after, path, formatValue(plain))
	}
	if err != nil {
		return "", fmt.Errorf("set %s: %w", formatKey(path), err)
	}
	put(before, path, plain)
	return verified("set", after, path, before)
}

// Remove returns the text without the value or the table at the path, and
// whether it was there.
func Remove(text string, path []string) (string, bool, error) {
	if len(path) == 0 {
		return "", false, errors.New("remove: the path is empty")
	}
	before, err := decode(text)
	if err != nil {
		return "", false, err
	}
	if !drop(before, path) {
		return text, false, nil
	}
	after, err := removePath(text, path)
	if err != nil {
		return "", false, fmt.Errorf("remove %s: %w", formatKey(path), err)
	}
	after, err = verified("remove", after, path, before)
	return after, err == nil, err
}

// verified returns the text if it means what it should.
func verified(verb, text string, path []string, want map[string]any) (string, error) {
	got, err := decode(text)
	if err != nil || !reflect.DeepEqual(prune(got), prune(want)) {
		return "", fmt.Errorf("%s %s: %w", verb, formatKey(path), ErrUnsupported)
	}
	return text, nil
}

func decode(text string) (map[string]any, error) {
	m := map[string]any{}
	if err := toml.Unmarshal([]byte(strings.TrimPrefix(text, bom)), &m); err != nil {
		return nil, fmt.Errorf("the file is not TOML: %w", err)
	}
	return m, nil
}

// normalize makes a value what decoding its text gives.
func normalize(value any) (any, error) {
	text := "v = " + formatValue(value)
	m, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("a value of type %T cannot be written", value)
	}
	return m["v"], nil
}

// prune leaves out tables that hold nothing: whether there is a header for one makes
// no difference.
func prune(m map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range m {
		if t, ok := v.(map[string]any); ok {
			if t = prune(t); len(t) == 0 {
				continue
			}
			v = t
		}
		out[name] = v
	}
	return out
}

// put sets a value in a decoded document.
func put(m map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		next, ok := m[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[name] = next
		}
		m = next
	}
	m[path[len(path)-1]] = value
}

// drop removes a value from a decoded document and reports whether it was there.
func drop(m map[string]any, path []string) bool {
	for _, name := range path[:len(path)-1] {
		next, ok := m[name].(map[string]any)
		if !ok {
			return false
		}
		m = next
	}
	_, ok := m[path[len(path)-1]]
	delete(m, path[len(path)-1])
	return ok
}

// get returns what is at a path of a decoded document.
func get(m map[string]any, path []string) any {
	var v any = m
	for _, name := range path {
		t, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = t[name]
	}
	return v
}

// setTable makes the table at the path hold exactly the given values.
func setTable(text string, now map[string]any, path []string, table map[string]any) (string, error) {
	old, there := get(now, path).(map[string]any)
	if !there && get(now, path) != nil { // a value gives way
		var err error
		if text, err = removePath(text, path); err != nil {
			return "", err
		}
	}
	if !there || len(old) == 0 {
		return appendTable(text, path, table)
	}
	var err error
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if _, ok := table[name]; !ok {
			if text, err = removePath(text, below(path, name)); err != nil {
				return "", err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		at := below(path, name)
		if reflect.DeepEqual(old[name], table[name]) {
			continue
		}
		if inner, ok := table[name].(map[string]any); ok {
			text, err = setTable(text, now, at, inner)
		} else {
			if _, ok := old[name].(map[string]any); ok {
				if text, err = removePath(text, at); err != nil {
					return "", err
				}
			}
			text, err = setValue(text, at, formatValue(table[name]))
		}
		if err != nil {
			return "", err
		}
	}
	return text, nil
}

func below(path []string, name string) []string { return append(slices.Clone(path), name) }

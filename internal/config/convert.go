package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/humanize"
)

// A resolver makes paths absolute.
type resolver struct {
	base string // what relative paths are relative to; empty: the working directory
	home string // what ~ stands for
}

func (r resolver) absolute(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~"); ok && r.home != "" && (rest == "" || rest[0] == '/') {
		return filepath.Join(r.home, rest), nil
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	return filepath.Abs(filepath.Join(r.base, path))
}

// convert checks a decoded value and returns it in the key's own type. The
// error says what is wrong with it, not where.
func (k *key) convert(n *node, paths resolver) (any, error) {
	if n.isTable() {
		return nil, fmt.Errorf("must be %s, not a table", k.wants())
	}
	switch v := n.value.(type) {
	case string:
		return k.fromText(v, paths)
	case bool:
		if k.kind == boolKind {
			return v, nil
		}
	case int64:
		if k.kind == wholeKind {
			return k.fromWhole(v)
		}
	case []any:
		if k.kind == boolKind && k.lists {
			return len(v) > 0, nil
		}
		if k.kind == listKind || k.kind == pathsKind {
			return k.fromList(v, paths)
		}
	}
	return nil, fmt.Errorf("must be %s, not %s%s", k.wants(), describe(n.value), k.hint(n.value))
}

func (k *key) fromText(v string, paths resolver) (any, error) {
	switch k.kind {
	case textKind:
		return v, nil
	case secretKind:
		return NewSecret(v), nil
	case enumKind:
		if !slices.Contains(k.allowed, v) {
			if near := humanize.Nearest(v, k.allowed); near != "" && humanize.Distance(v, near) == 1 {
				return nil, fmt.Errorf("must be %s, not %s; did you mean %s?", k.wants(), quote(v), near)
			}
			return nil, fmt.Errorf("must be %s, not %s", k.wants(), quote(v))
		}
		return v, nil
	case pathKind:
		if v == "" {
			return v, nil
		}
		return paths.absolute(v)
	case urlKind:
		return v, checkURL(v)
	}
	return nil, fmt.Errorf("must be %s, not the text %s", k.wants(), quote(shorten(v)))
}

func (k *key) fromWhole(v int64) (any, error) {
	if v < k.min || v > k.max {
		return nil, fmt.Errorf("must be %s, not %d", k.wants(), v)
	}
	if k.cap > 0 {
		v = min(v, k.cap)
	}
	return v, nil
}

func (k *key) fromList(v []any, paths resolver) (any, error) {
	texts := make([]string, len(v))
	for i, e := range v {
		t, ok := e.(string)
		if !ok {
			return nil, fmt.Errorf("must be %s, but element %d is %s", k.wants(), i+1, describe(e))
		}
		if k.kind == pathsKind {
			if t == "" { // which would be the directory that paths are relative to
				return nil, fmt.Errorf("must be %s, but element %d is empty", k.wants(), i+1)
			}
			var err error
			if t, err = paths.absolute(t); err != nil {
				return nil, err
			}
		}
		texts[i] = t
	}
	return texts, nil
}

// checkURL accepts what can be a service. The value is not repeated: it may
// hold a password.
func checkURL(v string) error {
	if v == "" {
		return nil // as if it were not set
	}
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("must be an address that begins with http:// or https://")
	}
	return nil
}

// wants says what a key takes.
func (k *key) wants() string {
	switch k.kind {
	case boolKind:
		return "true or false"
	case wholeKind:
		if k.max == unlimited {
			return fmt.Sprintf("a whole number, at least %d", k.min)
		}
		return fmt.Sprintf("a whole number from %d to %d", k.min, k.max)
	case listKind, pathsKind:
		return "an array of strings"
	case enumKind:
		return "one of " + strings.Join(k.allowed, ", ")
	}
	return "a string"
}

// hint says how to write what was probably meant. A secret is not repeated.
func (k *key) hint(v any) string {
	if k.kind != textKind && k.kind != pathKind {
		return ""
	}
	switch v.(type) {
	case bool, int64:
		return fmt.Sprintf(` (a string is written "%v")`, v)
	}
	return ""
}

// describe names the type of a decoded value.
func describe(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "a whole number"
	case float64:
		return "a fraction"
	case []any:
		return "an array"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseOverride reads one key=value of -c. The key is a dotted path whose parts
// may be quoted; a part that is not may hold spaces. The value is TOML, or else
// text, from which a pair of quotes around it is taken off.
func parseOverride(arg string) ([]string, *node, error) {
	if !utf8.ValidString(arg) {
		return nil, nil, fmt.Errorf("%s: not UTF-8", quote(shorten(arg)))
	}
	path, rest, err := parsePath(arg)
	if err != nil {
		return nil, nil, err
	}
	rest = strings.TrimSpace(rest)
	if v, ok := parseValue(rest); ok {
		return path, v, nil
	}
	return path, &node{value: unquote(rest)}, nil
}

// OverrideKey returns the parts of the key of a key=value, or nil if there is none.
func OverrideKey(arg string) []string {
	path, _, err := parsePath(arg)
	if err != nil {
		return nil
	}
	return path
}

// parsePath reads the key and returns what follows the equals sign.
func parsePath(arg string) ([]string, string, error) {
	var path []string
	for s := arg; ; {
		part, rest, err := parsePart(s)
		if err != nil {
			return nil, "", err
		}
		if part == "" {
			return nil, "", fmt.Errorf("%q: a part of the key is empty", shorten(arg))
		}
		path = append(path, part)
		if rest == "" {
			return nil, "", fmt.Errorf("%q: want key=value", shorten(arg))
		}
		if rest[0] == '=' {
			return path, rest[1:], nil
		}
		s = rest[1:]
	}
}

// parsePart reads one part of a key. The rest is empty or begins with a dot or
// an equals sign.
func parsePart(s string) (part, rest string, err error) {
	s = strings.TrimLeft(s, " \t")
	if s == "" || s[0] != '"' && s[0] != '\'' {
		end := strings.IndexAny(s, ".=")
		if end < 0 {
			end = len(s)
		}
		return strings.TrimSpace(s[:end]), s[end:], nil
	}

	end := 1
	for end < len(s) && s[end] != s[0] {
		if s[0] == '"' && s[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(s) {
		return "", "", fmt.Errorf("%q: a quote in the key is not closed", shorten(s))
	}
	n, f := parse([]byte(s[:end+1] + " = 0"))
	if f != nil {
		return "", "", fmt.Errorf("%q: %s", shorten(s[:end+1]), f.text)
	}
	rest = strings.TrimLeft(s[end+1:], " \t")
	if rest != "" && rest[0] != '.' && rest[0] != '=' {
		return "", "", fmt.Errorf("%q: want a dot or = after a quoted part of the key", shorten(s))
	}
	return n.names[0], rest, nil
}

// parseValue reads one TOML value.
func parseValue(text string) (*node, bool) {
	const name = "value"
	n, f := parse([]byte(name + " = " + text))
	if f != nil || len(n.names) != 1 {
		return nil, false // more names: the text has lines that are keys of their own
	}
	return n.child[name].unplaced(), true
}

// unplaced forgets positions, which would be those in a made-up line.
func (n *node) unplaced() *node {
	n.at, n.begin = position{}, position{}
	for _, c := range n.child {
		c.unplaced()
	}
	return n
}

func unquote(s string) string {
	if n := len(s); n >= 2 && s[0] == s[n-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : n-1]
	}
	return s
}

// set puts v at the path. Tables merge; anything else gives way.
func (n *node) set(path []string, v *node) {
	for _, name := range path[:len(path)-1] {
		c, ok := n.child[name]
		if !ok || !c.isTable() {
			c = &node{}
			n.put(name, c)
		}
		n = c
	}
	last := path[len(path)-1]
	old, ok := n.child[last]
	if !ok || !old.isTable() || !v.isTable() {
		n.put(last, v)
		return
	}
	for _, name := range v.names {
		old.set([]string{name}, v.child[name])
	}
}

// Override writes a key=value for Options.Overrides from a value as JSON gives
// it. The key is taken as the dotted path it is; null becomes an empty text.
func Override(key string, value any) string {
	return key + "=" + formatJSON(value)
}

func formatJSON(value any) string {
	switch v := value.(type) {
	case nil:
		return `""`
	case string:
		return quote(v)
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64) // 3 stays an integer
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = formatJSON(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, formatKey([]string{name})+" = "+formatJSON(v[name]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(value)
}

// shorten keeps a message readable, and most of a mistyped secret out of it.
func shorten(s string) string {
	const most = 40
	for i := range s {
		if i >= most {
			return s[:i] + "…"
		}
	}
	return s
}

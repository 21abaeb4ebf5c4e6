package config

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/internal/config/tomledit"
)

// A Setting is a key with its value, made fit to be shown: what may be a
// secret is masked.
type Setting struct {
	Key    string
	Path   []string // the parts of Key
	Value  any      // string, bool, int64 or []string
	Source Source

	Ineffective bool // there was a warning that it has no effect
}

// All are the keys that have a value, in the order of the documentation.
func (c *Config) All() []Setting {
	sorted := make([]*setting, 0, len(c.settings))
	for _, s := range c.settings {
		if s.value != "" && !(s.source.Kind == FromDefault && s.key.warning != "") {
			sorted = append(sorted, s)
		}
	}
	slices.SortFunc(sorted, func(a, b *setting) int {
		if len(a.names) > 0 && len(b.names) > 0 && a.path[0] == b.path[0] {
			if d := strings.Compare(a.names[0], b.names[0]); d != 0 {
				return d // all of one provider together
			}
		}
		return cmp.Or(cmp.Compare(a.key.order, b.key.order), slices.Compare(a.path, b.path))
	})
	all := make([]Setting, len(sorted))
	for i, s := range sorted {
		all[i] = Setting{Key: formatKey(s.path), Path: s.path, Value: s.visible(), Source: s.source, Ineffective: s.ineffective()}
	}
	return all
}

// Show writes every key with its value and where it came from. But for what is
// masked, the text is a configuration file with the same meaning.
func (c *Config) Show(w io.Writer) error {
	var b strings.Builder
	if c.File == "" {
		fmt.Fprintf(&b, "# there is no %s in %s\n", FileName, oneLine(c.Home))
	} else {
		fmt.Fprintf(&b, "# %s\n", oneLine(c.File))
	}
	if c.Provider == "" {
		b.WriteString("# model_provider is not set: the first that has a key, or a local one\n")
	}
	if c.Model == "" {
		b.WriteString("# model is not set: the provider's default\n")
	}
	for _, s := range c.All() {
		if s.Ineffective {
			b.WriteString("# no effect: ")
		}
		fmt.Fprintf(&b, "%s = %s  # %s\n", s.Key, formatValue(s.Value), oneLine(s.Source.String()))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ineffective reports whether the value has no effect.
func (s *setting) ineffective() bool { return s.key.warns(s.value) }

// visible is the value as it may be shown.
func (s *setting) visible() any {
	last := s.path[len(s.path)-1]
	switch v := s.value.(type) {
	case Secret:
		return mask
	case string:
		if s.key.kind == urlKind {
			return RedactURL(v)
		}
		if s.key.last() == "*" && s.key.path[len(s.key.path)-2] != "env_http_headers" && sensitive(last) {
			return mask
		}
	}
	return s.value
}

// sensitive reports whether something of that name should not be shown.
func sensitive(name string) bool {
	name = strings.ToLower(name)
	return name == "sig" || slices.ContainsFunc(
		[]string{"key", "secret", "token", "passw", "auth", "cred", "cookie", "signature"},
		func(part string) bool { return strings.Contains(name, part) })
}

// RedactURL masks what is secret in an address.
func RedactURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return mask
	}
	if u.User == nil && u.RawQuery == "" {
		return address
	}
	if u.User != nil {
		u.User = url.User("xxx")
	}
	q := u.Query()
	for name := range q {
		if sensitive(name) {
			q.Set(name, "xxx")
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func formatValue(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case []string:
		parts := make([]string, len(v))
		for i, s := range v {
			parts[i] = quote(s)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(v) // bool, int64
}

// formatKey writes a path with dots, parts in quotes where they need them.
func formatKey(path []string) string {
	if len(path) == 1 {
		return formatPart(path[0])
	}
	parts := make([]string, len(path))
	for i, p := range path {
		parts[i] = formatPart(p)
	}
	return strings.Join(parts, ".")
}

func formatPart(s string) string {
	if s == "" || strings.ContainsFunc(s, notBare) {
		return quote(s)
	}
	return s
}

func notBare(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

// quote writes a TOML string.
func quote(s string) string { return tomledit.Quote(s) }

// oneLine keeps a file name with a line break from ending a comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

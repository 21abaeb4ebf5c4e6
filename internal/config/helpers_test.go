package config

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// load is Load of a text, which must go well and without a warning other than
// that a value has no effect.
func load(t testing.TB, text string, o Options) *Config {
	t.Helper()
	if o.Home == "" {
		o.Home = t.TempDir()
	}
	if text != "" {
		write(t, o.Home+"/"+FileName, text)
	}
	c, warnings, err := Load(o)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	for _, w := range warnings {
		if !w.Ineffective && !strings.Contains(w.Text, "a command and a url") {
			t.Errorf("warning: %v", w)
		}
	}
	return c
}

// environment makes a lookup of name, value, name, value.
func environment(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

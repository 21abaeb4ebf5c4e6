package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

func FuzzOverride(f *testing.F) {
	for _, s := range []string{`model=o3`, `x.a b=["one", 2, {k = "v"}]`, `projects."/a.b=c".t="x"`, `"\u00e9".'b'=1979-05-27`, "n=1\nm=2", `"=`, `a="""b`, `t={}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		path, n, err := parseOverride(arg)
		if err != nil {
			return
		}
		if len(path) == 0 || n == nil || n.placed() {
			t.Fatalf("%q: %v %v", arg, path, n)
		}
		for _, p := range path {
			if p == "" {
				t.Fatalf("%q: an empty part in %q", arg, path)
			}
		}
		// Written in full, it is the same.
		again, m, err := parseOverride(formatKey(path) + "=" + formatTree(n))
		if err != nil || !slices.Equal(again, path) || !reflect.DeepEqual(normal(n.plain()), m.plain()) {
			t.Fatalf("%q became %q %v, then %q %v %v", arg, path, n.plain(), again, m, err)
		}
	})
}

// formatTree writes what go-toml decoded, dates excepted.
func formatTree(n *node) string {
	switch v := n.plain().(type) {
	case string, bool, []any, map[string]any:
		return formatJSON(normal(v))
	case int64:
		return formatValue(v)
	}
	return "0"
}

// normal takes out what JSON does not have.
func normal(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = normal(v[name])
		}
	case string, bool, int64:
	default:
		return int64(0)
	}
	return v
}

func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var text, arg string
		for _, part := range a.Files {
			switch part.Name {
			case "config.toml":
				text = string(part.Data)
			case "args":
				arg = strings.TrimPrefix(strings.Split(string(part.Data), "\n")[0], "-c ")
			}
		}
		f.Add(text, arg, "fast")
	}
	home := f.TempDir()
	f.Fuzz(func(t *testing.T, text, override, profile string) {
		write(t, filepath.Join(home, FileName), text)
		o := Options{Home: home, Cwd: "/cwd", Overrides: []string{override}, Profile: profile, Flags: Flags{AddDirs: []string{"x"}}}
		c, warnings, err := Load(o)
		for _, w := range warnings {
			_ = w.String()
		}
		if err != nil {
			_ = err.Error()
			return
		}
		var b strings.Builder
		if err := c.Show(&b); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Choose(nil, nil)
		c.ExecSettings(Choice{}, "/w", "")
		c.Overrides(c.Settings(Choice{}, "/w", ""))
		reread(t, c, b.String())
	})
}

// reread makes sure that what is shown is a configuration with the same meaning.
func reread(t *testing.T, c *Config, shown string) {
	t.Helper()
	home := t.TempDir()
	if c.Profile != "" {
		shown += "[profiles." + formatKey([]string{c.Profile}) + "]\n"
	}
	write(t, filepath.Join(home, FileName), shown)
	d, _, err := Load(Options{Home: home})
	if err != nil {
		t.Fatalf("what is shown cannot be read: %v\n%s", err, shown)
	}
	want, got := slices.DeleteFunc(c.All(), func(s Setting) bool { return s.Ineffective }), d.All() // shown as comments
	for i := range got {
		got[i].Source = Source{}
	}
	for i := range want {
		want[i].Source = Source{}
	}
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("shown %v\nread again %v", want, got)
	}
}

func TestShowCanBeReadAgain(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := Load(readScenario(t, a).options(t))
		if err != nil {
			continue
		}
		read++
		var b strings.Builder
		if err := c.Show(&b); err != nil {
			t.Fatal(err)
		}
		reread(t, c, b.String())
	}
	if read < 5 {
		t.Errorf("only %d archives were read", read)
	}
}

package config

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// A sample is a key of the table, made concrete, with values to tell places apart.
type sample struct {
	key    *key
	name   string // what is written
	own    string // the key that it stands for
	values []any  // as they are stored; different from the default where there is room
	texts  []string
}

// samples are all keys of the table. Which is left out is named.
func samples(t *testing.T) []sample {
	t.Helper()
	var all []sample
	schema().each(func(k *key) {
		if k.name() == "tui" || k.name() == "profile" {
			return // not a value; chooses a profile
		}
		s := sample{key: k, name: strings.ReplaceAll(k.name(), "*", "x")}
		s.own = s.name
		for i := range 3 {
			text, value := s.sample(i)
			if k.alias != nil {
				var path []string
				path, value = k.alias(value)
				s.own = formatKey(path)
			}
			if strings.HasSuffix(k.name(), "_instructions_file") {
				text, value = instructionsFile(t, i)
			}
			s.texts, s.values = append(s.texts, text), append(s.values, value)
		}
		all = append(all, s)
	})
	return all
}

func instructionsFile(t *testing.T, i int) (text string, value any) {
	name := fmt.Sprintf("%s/instructions-%d.md", t.TempDir(), i)
	write(t, name, fmt.Sprintf("instructions %d", i))
	return quote(name), name
}

// sample is a value as it is written and as it is stored.
func (s sample) sample(i int) (string, any) {
	switch k := s.key; k.kind {
	case boolKind:
		on := i%2 == 0
		if k.def == true {
			on = !on
		}
		return fmt.Sprint(on), on
	case wholeKind:
		n := k.min + int64(i) + 6
		return fmt.Sprint(n), n
	case enumKind:
		others := slices.DeleteFunc(slices.Clone(k.allowed), func(v string) bool { return v == k.def })
		v := others[i%len(others)]
		if i > 0 && len(others) == 1 && k.def != nil {
			v = k.def.(string)
		}
		return quote(v), v
	case listKind, pathsKind:
		v := fmt.Sprintf("/list/%d", i)
		return "[" + quote(v) + "]", []string{v}
	case pathKind:
		v := fmt.Sprintf("/path/%d", i)
		return quote(v), v
	case urlKind:
		v := fmt.Sprintf("https://%d.example/v1", i)
		return quote(v), v
	case secretKind:
		v := fmt.Sprintf("hidden %d", i)
		return quote(v), NewSecret(v)
	}
	v := fmt.Sprintf("text %d", i)
	return quote(v), v
}

// A spot is a place that a key can be set in.
type spot struct {
	name  string
	kind  SourceKind
	fits  func(s sample) bool
	place func(in *input, s sample, i int)
}

type input struct {
	top, profile string
	options      Options
	env          map[string]string
}

var environmentKeys = map[string]string{
	"model_providers.openai.base_url":               "OPENAI_BASE_URL",
	"responses_originator_header_internal_override": "CODEX_INTERNAL_ORIGINATOR_OVERRIDE",
}

func flagOf(f *Flags, name string) *string {
	return map[string]*string{
		"model": &f.Model, "model_provider": &f.Provider, "approval_policy": &f.Approval, "sandbox_mode": &f.Sandbox,
	}[name]
}

// spots are in the order of their strength.
func spots() []spot {
	all := func(sample) bool { return true }
	profile := func(s sample) bool { return !s.key.global }
	return []spot{
		{"environment", FromEnvironment, func(s sample) bool { return environmentKeys[s.own] != "" }, func(in *input, s sample, i int) {
			in.env[environmentKeys[s.own]] = s.values[i].(string)
		}},
		{"file", FromFile, all, func(in *input, s sample, i int) { in.top += s.name + " = " + s.texts[i] + "\n" }},
		{"profile", FromProfile, profile, func(in *input, s sample, i int) { in.profile += s.name + " = " + s.texts[i] + "\n" }},
		{"profile with -c", FromProfile, profile, func(in *input, s sample, i int) {
			in.options.Overrides = append(in.options.Overrides, "profiles.p."+s.name+"="+s.texts[i])
		}},
		{"-c", FromOverride, all, func(in *input, s sample, i int) {
			in.options.Overrides = append(in.options.Overrides, s.name+"="+s.texts[i])
		}},
		{"flag", FromFlag, func(s sample) bool { return flagOf(new(Flags), s.name) != nil }, func(in *input, s sample, i int) {
			*flagOf(&in.options.Flags, s.name) = s.values[i].(string)
		}},
	}
}

func (in *input) load(t *testing.T) *Config {
	t.Helper()
	in.options.Home = t.TempDir()
	in.options.Env = func(name string) string { return in.env[name] }
	in.options.Profile = "p"
	write(t, in.options.Home+"/"+FileName, in.top+"[profiles.p]\n"+in.profile)
	c, warnings, err := Load(in.options)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		if !w.Ineffective && !strings.Contains(w.Text, "a command") {
			t.Errorf("warning: %v", w)
		}
	}
	return c
}

func (c *Config) expect(t *testing.T, s sample, at spot, i int) {
	t.Helper()
	got, ok := c.settings[s.own]
	if !ok {
		t.Fatalf("%s has no value", s.own)
	}
	if !cmp.Equal(got.value, s.values[i]) || got.source.Kind != at.kind {
		t.Errorf("%s = %v from %v, want %v from the %s", s.own, got.value, got.source, s.values[i], at.name)
	}
}

func TestStrongerPlaceWins(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			fitting := slices.DeleteFunc(spots(), func(p spot) bool { return !p.fits(s) })
			for i, strong := range fitting {
				alone := &input{env: map[string]string{}}
				strong.place(alone, s, 0)
				alone.load(t).expect(t, s, strong, 0)

				for _, weak := range fitting[i-longtest.Default(i, 1) : i] { // the next weaker one, or all
					in := &input{env: map[string]string{}}
					strong.place(in, s, 0)
					weak.place(in, s, 1)
					in.load(t).expect(t, s, strong, 0)
				}
			}
			all := &input{env: map[string]string{}}
			for i, p := range fitting {
				p.place(all, s, (len(fitting)-1-i)%3)
			}
			all.load(t).expect(t, s, fitting[len(fitting)-1], 0)
		})
	}
}

func TestLaterOverrideWins(t *testing.T) {
	for _, s := range samples(t) {
		c := load(t, "", Options{Overrides: []string{s.name + "=" + s.texts[1], s.name + "=" + s.texts[0], `mcp_servers.x.command="x"`}})
		if s.own != "mcp_servers.x.command" && !cmp.Equal(c.settings[s.own].value, s.values[0]) {
			t.Errorf("%s = %v, want the later %v", s.own, c.settings[s.own].value, s.values[0])
		}
	}
}

func TestDefaults(t *testing.T) {
	c := load(t, "", Options{})
	schema().each(func(k *key) {
		if k.def == nil {
			return
		}
		got := c.settings[k.name()]
		if !reflect.DeepEqual(got.value, k.def) || got.source != (Source{}) {
			t.Errorf("%s = %v from %v, want the default %v", k.name(), got.value, got.source, k.def)
		}
	})
	want := map[string]any{
		"approval_policy": "on-request", "sandbox_mode": "read-only", "command_timeout_ms": int64(120000), "stop_grace_ms": int64(100), "max_parallel_calls": int64(8),
		"project_doc_max_bytes": int64(32768), "shell_environment_policy.inherit": "all", "tools.view_image": true,
		"sandbox_workspace_write.network_access": false, "history.persistence": "save-all",
	}
	for name, v := range want {
		if got := c.settings[name].value; got != v {
			t.Errorf("%s = %v, want %v", name, got, v)
		}
	}
}

// changed collects the paths of fields that differ.
type changed struct {
	path  cmp.Path
	paths map[string]bool
}

func (r *changed) PushStep(s cmp.PathStep) { r.path = append(r.path, s) }
func (r *changed) PopStep()                { r.path = r.path[:len(r.path)-1] }
func (r *changed) Report(res cmp.Result) {
	if !res.Equal() {
		r.paths[r.path.String()] = true
	}
}

// TestEveryKeyHasItsField compares which field each key changes with a list
// that was read by a person: a key that is stored in the wrong place shows in the list.
func TestEveryKeyHasItsField(t *testing.T) {
	const file = "testdata/fields.txt"
	const start = "model_providers.x.name = 'base'\nmcp_servers.x.command = 'base'\n"
	base := (&input{top: start}).load(t)
	var got strings.Builder
	for _, s := range samples(t) {
		in := &input{top: start, options: Options{Overrides: []string{s.name + "=" + s.texts[0]}}}
		r := &changed{paths: map[string]bool{}}
		cmp.Equal(*base, *in.load(t), cmp.AllowUnexported(Config{}, Provider{}), cmp.Reporter(r), cmp.FilterPath(func(p cmp.Path) bool {
			name := p.String()
			return name == "settings" || name == "catalogue" || name == "Home" || name == "File"
		}, cmp.Ignore()))
		fmt.Fprintf(&got, "%s: %s\n", s.name, strings.Join(slices.Sorted(maps.Keys(r.paths)), " "))
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

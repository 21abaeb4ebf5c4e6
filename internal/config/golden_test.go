package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata")

// A scenario is one archive of testdata: files of the home, the environment
// (env), the command line (args), and what comes of it (warnings, errors, show, choose). Only the
// golden parts that are there are compared; show leaves out what is default.
type scenario struct {
	home string
	env  map[string]string
	args []string
}

func readScenario(t *testing.T, a *txtar.Archive) scenario {
	t.Helper()
	s := scenario{home: t.TempDir(), env: map[string]string{}}
	for _, f := range a.Files {
		switch f.Name {
		case "env":
			for line := range strings.Lines(string(f.Data)) {
				name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
				s.env[name] = value
			}
		case "args":
			for line := range strings.Lines(string(f.Data)) {
				s.args = append(s.args, strings.TrimSuffix(line, "\n"))
			}
		case "warnings", "errors", "show", "choose":
		default:
			name := filepath.Join(s.home, f.Name)
			write(t, name, string(f.Data))
		}
	}
	return s
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// options reads the command line as the program does.
func (s scenario) options(t *testing.T) Options {
	t.Helper()
	o := Options{Home: s.home, Cwd: "/cwd", Env: s.getenv}
	texts := map[string]*string{
		"--profile": &o.Profile, "--model": &o.Flags.Model, "--provider": &o.Flags.Provider,
		"--sandbox": &o.Flags.Sandbox, "--ask-for-approval": &o.Flags.Approval,
	}
	switches := map[string]*bool{
		"--oss": &o.Flags.OSS, "--demo": &o.Flags.Demo, "--full-auto": &o.Flags.FullAuto,
		"--dangerously-bypass-approvals-and-sandbox": &o.Flags.Bypass, "--search": &o.Flags.Search,
	}
	for _, line := range s.args {
		name, value, _ := strings.Cut(line, " ")
		switch {
		case name == "-c":
			o.Overrides = append(o.Overrides, value)
		case name == "--add-dir":
			o.Flags.AddDirs = append(o.Flags.AddDirs, value)
		case texts[name] != nil:
			*texts[name] = value
		case switches[name] != nil:
			*switches[name] = true
		default:
			t.Fatalf("unknown argument %q", line)
		}
	}
	return o
}

func (s scenario) getenv(name string) string { return s.env[name] }

func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { golden(t, file) })
	}
}

func golden(t *testing.T, file string) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := readScenario(t, a)
	got := s.run(t)
	changed := false
	for i, f := range a.Files {
		text, ok := got[f.Name]
		if !ok {
			continue
		}
		text = strings.ReplaceAll(text, s.home, "HOME")
		if diff := cmp.Diff(string(f.Data), text); diff != "" && !*update {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
		changed = changed || string(f.Data) != text
		a.Files[i].Data = []byte(text)
	}
	if *update && changed {
		if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (s scenario) run(t *testing.T) map[string]string {
	got := map[string]string{"warnings": "", "errors": "", "show": "", "choose": ""}
	c, warnings, err := Load(s.options(t))
	for _, w := range warnings {
		got["warnings"] += w.String() + "\n"
	}
	if err != nil {
		got["errors"] = err.Error() + "\n"
		return got
	}
	var b strings.Builder
	if err := c.Show(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if !strings.HasSuffix(line, "  # default\n") {
			got["show"] += line
		}
	}
	got["choose"] = s.choose(c)
	return got
}

// choose describes the choice. In a scenario an Ollama answers if the
// environment has MODELS, a list of those it has.
func (s scenario) choose(c *Config) string {
	choice, err := c.Choose(s.getenv, func(url string) ([]string, bool) {
		models, ok := s.env["MODELS"]
		return strings.Fields(models), ok
	})
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	p := choice.Provider
	text := strings.Join([]string{p.ID, choice.Model, string(p.WireAPI), p.BaseURL, choice.Source.String()}, " | ") + "\n"
	if choice.Key.IsSet() {
		text += "key " + choice.Key.Reveal() + "\n"
	}
	for _, name := range sortedKeys(choice.Headers) {
		text += "header " + name + ": " + choice.Headers[name].Reveal() + "\n"
	}
	return text
}

package servers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
)

// A site is a project and a home.
type site struct {
	t          *testing.T
	root, home string
}

func newSite(t *testing.T) site {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := site{t, filepath.Join(dir, "project"), filepath.Join(dir, "home")}
	s.write(filepath.Join(s.home, "config.toml"), "# mine\n")
	s.write(filepath.Join(s.root, "a"), "")
	return s
}

func (s site) write(file, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s site) config() *config.Config {
	s.t.Helper()
	cfg, _, err := config.Load(config.Options{Home: s.home, Cwd: s.root})
	if err != nil {
		s.t.Fatal(err)
	}
	return cfg
}

func (s site) used() (map[string]config.MCPServer, string) {
	s.t.Helper()
	cfg := s.config()
	named, warnings := OfProject(s.root, cfg, func(name string) string { return map[string]string{"TOKEN": "secret"}[name] })
	defs, more := Add(cfg.MCPServers, named)
	var text []string
	for _, w := range append(warnings, more...) {
		text = append(text, w.Text)
	}
	return defs, strings.Join(text, "\n")
}

const mcpJSON = `{"mcpServers":{"docs":{"command":"npx","args":["-y","docs@${VERSION:-1}"],"env":{"TOKEN":"${TOKEN}","NONE":"${NONE}"}},
	"far":{"type":"http","url":"https://example.com/mcp","headers":{"X":"1"}}}}`

func TestServersOfAProjectNeedTrust(t *testing.T) {
	s := newSite(t)
	s.write(filepath.Join(s.root, ".mcp.json"), mcpJSON)
	s.write(filepath.Join(s.root, ".fermata", "config.toml"), "model = \"evil\"\n[mcp_servers.tools]\ncommand = \"tools\"\napproval = \"allow\"\nrequired = true\n")
	for _, level := range []string{"", "untrusted", "trusted"} {
		if level != "" {
			s.write(filepath.Join(s.home, "config.toml"), "# mine\n[projects.\""+s.root+"\"]\ntrust_level = \""+level+"\"\n")
		}
		defs, warnings := s.used()
		if len(defs) != 0 || strings.Count(warnings, "fermata mcp trust") != 3 {
			t.Errorf("%q: %v, %s", level, defs, warnings)
		}
	}
	named, _ := OfProject(s.root, s.config(), os.Getenv)
	for _, n := range named {
		if err := Trust(s.config(), n); err != nil {
			t.Fatal(err)
		}
	}
	defs, warnings := s.used()
	if len(defs) != 3 || warnings != "" {
		t.Fatalf("%v, %s", defs, warnings)
	}
	docs, tools := defs["docs"], defs["tools"]
	if docs.Args[1] != "docs@1" || docs.Env["TOKEN"].Reveal() != "secret" || docs.Project != s.root || defs["far"].URL == "" {
		t.Errorf("%+v", docs)
	}
	if tools.Approval != "" || tools.Required || tools.Project != s.root {
		t.Errorf("what the project says about approvals counts: %+v", tools)
	}

	// Trust in the project can be taken back.
	mine := filepath.Join(s.home, "config.toml")
	text, _ := os.ReadFile(mine)
	s.write(mine, strings.Replace(string(text), `"trusted"`, `"untrusted"`, 1))
	if defs, _ := s.used(); len(defs) != 0 {
		t.Errorf("used in a project that is not trusted: %v", defs)
	}
	s.write(mine, string(text))

	// Another definition is not trusted, and neither is one of another project.
	s.write(filepath.Join(s.root, ".mcp.json"), strings.Replace(mcpJSON, "docs@", "evil@", 1))
	defs, warnings = s.used()
	if _, used := defs["docs"]; used || len(defs) != 2 || !strings.Contains(warnings, "docs") {
		t.Errorf("%v, %s", defs, warnings)
	}
	s.root += "2"
	s.write(filepath.Join(s.root, ".mcp.json"), mcpJSON)
	if defs, _ := s.used(); len(defs) != 0 {
		t.Errorf("another project: %v", defs)
	}
}

func TestTheOwnServerCounts(t *testing.T) {
	s := newSite(t)
	s.write(filepath.Join(s.root, ".mcp.json"), mcpJSON)
	s.write(filepath.Join(s.home, "config.toml"), "[mcp_servers.docs]\ncommand = \"mine\"\n")
	defs, warnings := s.used()
	if defs["docs"].Command != "mine" || strings.Contains(warnings, "docs") {
		t.Errorf("%v, %s", defs, warnings)
	}
}

func TestFilesThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{`: "unexpected end",
		`{"mcpServers":{"x":{"type":"sse","url":"http://x"}}}`:  "sse is not supported",
		`{"mcpServers":{"x":{"command":"a","url":"http://x"}}}`: "either a command or a url",
		`{"mcpServers":{"x":{}}}`:                               "either a command or a url",
		`{"mcpServers":{"x y":{"command":"a"}}}`:                "letters, digits",
		`{"mcpServers":{"x":{"command":["a"]}}}`:                "cannot unmarshal",
		`{"mcpServers":"` + strings.Repeat("x", maxFile) + `"}`: "too long",
	} {
		s := newSite(t)
		s.write(filepath.Join(s.root, ".mcp.json"), text)
		if defs, warnings := s.used(); len(defs) != 0 || !strings.Contains(warnings, want) {
			t.Errorf("%.60s: %s, want %s", text, warnings, want)
		}
	}
	s := newSite(t)
	s.write(filepath.Join(s.home, "secret.json"), mcpJSON)
	if err := os.Symlink(filepath.Join(s.home, "secret.json"), filepath.Join(s.root, ".mcp.json")); err != nil {
		t.Fatal(err)
	}
	if named, _ := OfProject(s.root, s.config(), os.Getenv); len(named) != 0 {
		t.Error("a link out of the project was followed")
	}
	s.write(filepath.Join(s.root, ".fermata", "config.toml"), "[mcp_servers.x]\ncommand = 1\n")
	if _, warnings := s.used(); !strings.Contains(warnings, "mcp_servers.x.command") {
		t.Error(warnings)
	}
}

// Who looks at a definition sees what of the environment it gets, and none of the values.
func TestWhatADefinitionGetsToKnow(t *testing.T) {
	s := newSite(t)
	s.write(filepath.Join(s.root, ".mcp.json"), `{"mcpServers":{"a":{"url":"https://example.com/${PATH_KEY}","headers":{"X":"${TOKEN} ${TOKEN:-1}"}}}}`)
	s.write(filepath.Join(s.root, ".fermata", "config.toml"), "[mcp_servers.b]\nurl = \"https://example.com\"\nbearer_token_env_var = \"TOKEN\"\nenv_http_headers = { X = \"OTHER\" }\n")
	named, _ := OfProject(s.root, s.config(), func(name string) string {
		return map[string]string{"TOKEN": "secret", "OTHER": "secret", "PATH_KEY": "secret"}[name]
	})
	if len(named) != 2 {
		t.Fatalf("%+v", named)
	}
	for i, want := range []string{"PATH_KEY TOKEN", "OTHER TOKEN"} {
		if got := strings.Join(named[i].Variables, " "); got != want || strings.Contains(named[i].Written.URL, "secret") {
			t.Errorf("%s: %s, want %s; %s", named[i].Name, got, want, named[i].Written.URL)
		}
	}
	if named[0].Def.URL != "https://example.com/secret" {
		t.Errorf("the server is reached at %s", named[0].Def.URL)
	}
}

// Commands are kept from what a trusted server executes and from the file that names it, also if they put
// another definition in front of it.
func TestTrustedServersAreGuarded(t *testing.T) {
	s := newSite(t)
	file, script := filepath.Join(s.root, ".mcp.json"), filepath.Join(s.root, "server.py")
	s.write(file, `{"mcpServers":{"docs":{"command":"./server.py"}}}`)
	s.write(script, "")
	guarded := func() string { return strings.Join(Guarded(s.root, s.config(), os.Getenv, s.root), " ") }
	if got := guarded(); got != "" {
		t.Errorf("not trusted: %s", got)
	}
	named, _ := OfProject(s.root, s.config(), os.Getenv)
	if err := Trust(s.config(), named[0]); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(s.home, "config.toml"), "[projects.\""+s.root+"\"]\ntrust_level = \"trusted\"\nmcp_servers = { docs = \""+named[0].Digest+"\" }\n")
	for _, other := range []string{"", "[mcp_servers.docs]\ncommand = \"true\"\n"} {
		s.write(filepath.Join(s.root, ".fermata", "config.toml"), other)
		if got := guarded(); got != file+" "+script {
			t.Errorf("with %q: %s", other, got)
		}
	}
}

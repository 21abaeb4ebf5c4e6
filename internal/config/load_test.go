package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnEmptyAddressIsNotSet(t *testing.T) {
	const address = "model_providers.openai.base_url"
	env := environment("OPENAI_BASE_URL", "http://env.example/v1")
	c := load(t, "openai_base_url = ''", Options{Env: env, Overrides: []string{"model_providers.openai.base_url="}})
	if got := c.Source(address); got.Kind != FromEnvironment || c.providers["openai"].BaseURL != "http://env.example/v1" {
		t.Errorf("%s from %s", c.providers["openai"].BaseURL, got)
	}
	c = load(t, "openai_base_url = ''", Options{})
	if got := c.providers["openai"].BaseURL; got != "https://api.openai.com/v1" {
		t.Errorf("got %s", got)
	}
}

func TestAnEmptyProfileIsNone(t *testing.T) {
	const text = "profile = 'p'\nmodel = 'file'\n[profiles.p]\nmodel = 'profile'\n"
	if c := load(t, text, Options{}); c.Profile != "p" || c.Model != "profile" {
		t.Errorf("got %q %q", c.Profile, c.Model)
	}
	if c := load(t, text, Options{Overrides: []string{"profile="}}); c.Profile != "" || c.Model != "file" {
		t.Errorf("got %q %q", c.Profile, c.Model)
	}
}

func TestPathsAreMadeAbsolute(t *testing.T) {
	for name, c := range map[string]struct {
		in   resolver
		path string
		want string
	}{
		"relative":         {resolver{base: "/base"}, "a/../b", "/base/b"},
		"absolute":         {resolver{base: "/base"}, "/x//y/", "/x/y"},
		"home":             {resolver{base: "/base", home: "/h"}, "~/x", "/h/x"},
		"home itself":      {resolver{base: "/base", home: "/h"}, "~", "/h"},
		"somebody's home":  {resolver{base: "/base", home: "/h"}, "~bob/x", "/base/~bob/x"},
		"home not known":   {resolver{base: "/base"}, "~/x", "/base/~/x"},
		"a tilde later on": {resolver{base: "/base", home: "/h"}, "a~", "/base/a~"},
	} {
		if got, err := c.in.absolute(c.path); err != nil || got != c.want {
			t.Errorf("%s: %s %v, want %s", name, got, err, c.want)
		}
	}
}

// Where a path is relative to depends on where it is written.
func TestRelativePathsOfFileAndCommandLine(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	const text = "sandbox_workspace_write.writable_roots = ['in-file']\n"
	c := load(t, text, Options{})
	if want := []string{filepath.Join(c.Home, "in-file")}; !slices.Equal(c.WorkspaceWrite.WritableRoots, want) {
		t.Errorf("file: %v", c.WorkspaceWrite.WritableRoots)
	}
	o := Options{Overrides: []string{"sandbox_workspace_write.writable_roots=['x']"}, Flags: Flags{AddDirs: []string{"y", "/z"}}}
	if c := load(t, text, o); !slices.Equal(c.WorkspaceWrite.WritableRoots, []string{dir + "/x", dir + "/y", "/z"}) {
		t.Errorf("command line: %v", c.WorkspaceWrite.WritableRoots)
	}
	o.Cwd = "/given"
	if c := load(t, text, o); !slices.Equal(c.WorkspaceWrite.WritableRoots, []string{"/given/x", "/given/y", "/z"}) {
		t.Errorf("command line in a directory: %v", c.WorkspaceWrite.WritableRoots)
	}
	for _, o := range []Options{{Flags: Flags{AddDirs: []string{""}}}, {Overrides: []string{"sandbox_workspace_write.writable_roots=['']"}}} {
		o.Home = dir
		if _, _, err := Load(o); err == nil || !strings.Contains(err.Error(), "is empty") {
			t.Errorf("an empty directory: %v", err)
		}
	}
}

func TestInstructionsFileIsRelativeToTheFile(t *testing.T) {
	home, cwd := t.TempDir(), t.TempDir()
	write(t, home+"/i.md", "home")
	write(t, cwd+"/i.md", "cwd \xff")
	if c := load(t, "experimental_instructions_file = 'i.md'", Options{Home: home, Cwd: cwd}); c.Instructions != "home" {
		t.Errorf("got %q", c.Instructions)
	}
	if c := load(t, "", Options{Home: home, Cwd: cwd, Overrides: []string{"experimental_instructions_file=i.md"}}); c.Instructions != "cwd \uFFFD" {
		t.Errorf("got %q", c.Instructions)
	}
	if c := load(t, "experimental_instructions_file = ''", Options{}); c.Instructions != "" {
		t.Errorf("got %q", c.Instructions)
	}
}

func TestTablesMergeAndArraysReplace(t *testing.T) {
	c := load(t, `
notify = ["file"]
[shell_environment_policy]
exclude = ["A", "B"]
set = { ONE = "file", TWO = "file" }
[profiles.p]
notify = []
shell_environment_policy = { exclude = ["C"], set = { TWO = "profile", THREE = "profile" } }
`, Options{Profile: "p", Overrides: []string{"shell_environment_policy.set={THREE='c', FOUR='c'}"}})
	want := ShellEnvironment{
		Inherit: "all", Exclude: []string{"C"}, Set: map[string]string{"ONE": "file", "TWO": "profile", "THREE": "c", "FOUR": "c"}, IncludeOnly: []string{},
	}
	if diff := cmp.Diff(want, c.ShellEnvironment); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(c.Notify) != 0 {
		t.Errorf("notify %v", c.Notify)
	}
}

func TestServersThatCannotBeStartedAreLeftOut(t *testing.T) {
	home := homeWith(t, "[mcp_servers.b]\nargs = ['x']\n[mcp_servers.a]\ncommand = ''\n[mcp_servers.ok]\ncommand = 'ok'\n[mcp_servers.'no name']\ncommand = 'x'\n[mcp_servers.both]\ncommand = 'x'\nurl = 'http://x.example'\n[mcp_servers.http]\nurl = 'http://x.example'\n")
	c, warnings, err := Load(Options{Home: home, Overrides: []string{"mcp_servers.c.args=[]"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sortedKeys(c.MCPServers), []string{"both", "http", "ok"}) {
		t.Errorf("servers %v", sortedKeys(c.MCPServers))
	}
	var got []string
	for _, w := range warnings {
		got = append(got, fmt.Sprintf("%d %s", w.Source.Line, w.Key))
	}
	if diff := cmp.Diff([]string{"2 mcp_servers.b", "4 mcp_servers.a", `8 mcp_servers."no name"`, "10 mcp_servers.both", "0 mcp_servers.c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is said of the whole program does not change with a profile.
func TestSomeKeysHaveNoEffectInAProfile(t *testing.T) {
	home := homeWith(t, `
[profiles.p]
profile = "q"
model_providers.x.base_url = "http://x.example"
mcp_servers.x.command = "x"
projects."/x".trust_level = "trusted"
`)
	c, warnings, err := Load(Options{Home: home, Profile: "p", Overrides: []string{"profiles.p.mcp_servers.y.command=y"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, fmt.Sprintf("%d %s %s", w.Source.Line, w.Key, w.Text))
	}
	want := []string{
		"3 profiles.p.profile has no effect in a profile",
		"4 profiles.p.model_providers.x.base_url has no effect in a profile",
		"5 profiles.p.mcp_servers.x.command has no effect in a profile",
		`6 profiles.p.projects."/x".trust_level has no effect in a profile`,
		"0 profiles.p.mcp_servers.y.command has no effect in a profile",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Profile != "p" || len(c.MCPServers) != 0 || c.TrustLevel("/x") != "" || slices.Contains(c.Providers(), "x") {
		t.Errorf("it had an effect: %v %v %v", c.Profile, c.MCPServers, c.Projects)
	}
}

func TestBadAddresses(t *testing.T) {
	for _, address := range []string{"http:///path", "http://", "example.com", "localhost:1234/v1", "file:///etc/passwd", "http://[::1", "://", "http://a b/"} {
		_, _, err := Load(Options{Home: t.TempDir(), Overrides: []string{Override("openai_base_url", address)}})
		if err == nil || !strings.Contains(err.Error(), "openai_base_url: must be an address") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestBadPorts(t *testing.T) {
	for _, port := range []string{"0", "65536", "-1", "x", " 80", "1.5"} {
		_, _, err := Load(Options{Home: t.TempDir(), Env: environment("CODEX_OSS_PORT", port)})
		if err == nil || !strings.Contains(err.Error(), "environment CODEX_OSS_PORT: must be a port") {
			t.Errorf("%q: %v", port, err)
		}
	}
}

func TestWarningsComeWithErrors(t *testing.T) {
	home := homeWith(t, "modle = 'x'\napproval_policy = 'x'\n")
	c, warnings, err := Load(Options{Home: home})
	if c != nil || err == nil || len(warnings) != 1 || warnings[0].Key != "modle" {
		t.Errorf("got %v %v %v", c, warnings, err)
	}
}

func TestOverridesMustBeUTF8(t *testing.T) {
	_, _, err := Load(Options{Home: t.TempDir(), Overrides: []string{"model=\xff"}})
	if err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("got %v", err)
	}
}

func TestSourceOfAKey(t *testing.T) {
	c := load(t, "\n model = 'x'", Options{Overrides: []string{"approval_policy=never"}})
	file := filepath.Join(c.Home, FileName)
	for key, want := range map[string]string{
		"model": file + ":2", "approval_policy": "-c", "sandbox_mode": "default", "no such key": "default", "model_context_window": "default",
	} {
		if got := c.Source(key).String(); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

// A file name can hold anything; a line of show stays a line.
func TestShowWithAnOddHome(t *testing.T) {
	home := filepath.Join(t.TempDir(), "odd\nmodel = 'evil'\xff")
	c := load(t, "model = 'good'", Options{Home: home})
	var b strings.Builder
	if err := c.Show(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "model = 'evil'") {
			t.Errorf("a line of its own: %q", line)
		}
	}
	if c.String() != c.File || load(t, "", Options{}).String() != "defaults" {
		t.Errorf("String %q", c.String())
	}
}

func TestHeadersOnlyFromTheEnvironment(t *testing.T) {
	env := environment("V", "v", "OPENAI_API_KEY", "k")
	c := load(t, "model_providers.openai.env_http_headers = { H = 'V' }", Options{Env: env})
	choice, err := c.Choose(env, nil)
	if err != nil || choice.Headers["H"].Reveal() != "v" || len(choice.Headers) != 1 {
		t.Errorf("%v %v", choice.Headers, err)
	}
}

// The table of keys must not say the same thing twice.
func TestTableOfKeys(t *testing.T) {
	seen := map[string]bool{}
	schema().each(func(k *key) {
		if seen[k.name()] {
			t.Errorf("%s is there twice", k.name())
		}
		seen[k.name()] = true
		if k.put == nil && k.alias == nil {
			t.Errorf("%s is stored nowhere", k.name())
		}
		if k.kind == enumKind && k.def != nil && !slices.Contains(k.allowed, k.def.(string)) {
			t.Errorf("the default %v of %s is not allowed", k.def, k.name())
		}
		if k.def != nil && k.last() == "*" {
			t.Errorf("%s cannot have a default", k.name())
		}
	})
	if n := len(modelKeys()) + len(commandKeys()) + len(serverKeys()) + len(storeKeys()) + len(otherKeys()); n != len(seen) {
		t.Errorf("%d keys in the tables, %d in the tree", n, len(seen))
	}
}

// The keys that people have in their files must stay known.
func TestKnownKeys(t *testing.T) {
	for _, name := range strings.Fields(`
		model model_provider model_context_window model_max_output_tokens model_reasoning_effort model_reasoning_summary model_verbosity
		model_supports_reasoning_summaries approval_policy sandbox_mode profile notify disable_response_storage hide_agent_reasoning
		show_raw_agent_reasoning project_doc_max_bytes experimental_resume experimental_instructions_file experimental_use_exec_command_tool
		preferred_auth_method chatgpt_base_url responses_originator_header_internal_override file_opener tui.notifications disable_paste_burst instructions
		command_timeout_ms stop_grace_ms max_parallel_calls pid_namespace snapshots openai_base_url web_search tools.web_search tools.web_search_request tools.view_image
		history.persistence history.max_bytes projects.x.trust_level projects.x.allowed_commands mcp_servers.x.command mcp_servers.x.args mcp_servers.x.env.X
		mcp_servers.x.env_vars mcp_servers.x.cwd mcp_servers.x.url mcp_servers.x.bearer_token_env_var mcp_servers.x.http_headers.X mcp_servers.x.env_http_headers.X
		mcp_servers.x.startup_timeout_sec mcp_servers.x.startup_timeout_ms mcp_servers.x.tool_timeout_sec mcp_servers.x.enabled
		mcp_servers.x.enabled_tools mcp_servers.x.disabled_tools mcp_servers.x.required mcp_servers.x.approval mcp_servers.x.tools.x.approval
		sandbox_workspace_write.writable_roots sandbox_workspace_write.network_access sandbox_workspace_write.exclude_tmpdir_env_var
		sandbox_workspace_write.exclude_slash_tmp shell_environment_policy.inherit shell_environment_policy.ignore_default_excludes
		shell_environment_policy.exclude shell_environment_policy.set.X shell_environment_policy.include_only
		shell_environment_policy.experimental_use_profile model_providers.x.name model_providers.x.base_url model_providers.x.env_key
		model_providers.x.env_key_instructions model_providers.x.wire_api model_providers.x.query_params.a model_providers.x.http_headers.a
		model_providers.x.env_http_headers.a model_providers.x.request_max_retries model_providers.x.stream_max_retries
		model_providers.x.stream_idle_timeout_ms model_providers.x.requires_openai_auth`) {
		b := schema()
		for _, part := range strings.Split(name, ".") {
			if b = b.down(part); b == nil {
				t.Errorf("%s is not known", name)
				break
			}
		}
	}
}

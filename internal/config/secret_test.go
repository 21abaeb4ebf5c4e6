package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

func TestSecretIsNeverPrinted(t *testing.T) {
	const text = "sk-very-secret"
	s := NewSecret(text)
	type inside struct{ hidden Secret }
	values := []any{
		s, &s,
		inside{s},
		&inside{s},
		[]Secret{s},
		map[string]Secret{"a": s},
		struct{ S *Secret }{&s},
		[1]any{s},
		fmt.Errorf("wrapped: %v", s), errors.Join(fmt.Errorf("%s", s)),
	}
	var out bytes.Buffer
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%10.2s", "%t", "%c", "%U", "%e"} {
			fmt.Fprintf(&out, verb, v)
		}
		fmt.Fprint(&out, v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("m", "v", v)
		if b, err := json.Marshal(v); err == nil {
			out.Write(b)
		}
	}
	b, err := toml.Marshal(map[string]Secret{"a": s})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	hex := fmt.Sprintf("%x", text)
	for _, leak := range []string{text, text[3:8], hex, strings.ToUpper(hex)} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q is in the output", leak)
		}
	}
}

func TestSecretPrintsAMask(t *testing.T) {
	s := NewSecret("x")
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{s.String(), s.GoString(), fmt.Sprintf("%v", s), fmt.Sprintf("%#v", s), fmt.Sprintf("%q", s), strings.Trim(string(b), `"`)} {
		if got != "•••" {
			t.Errorf("got %s", got)
		}
	}
	if s.Reveal() != "x" || !s.IsSet() || !s.Equal(NewSecret("x")) || s.Equal(Secret{}) {
		t.Error("the text is not kept")
	}
	if (Secret{}).IsSet() || (Secret{}).Reveal() != "" || NewSecret("").IsSet() {
		t.Error("an empty secret is set")
	}
}

func TestConfigAndChoiceDoNotPrintSecrets(t *testing.T) {
	c := load(t, `
model_provider = "x"
model_providers.x.base_url = "https://example.com/v1"
model_providers.x.env_key = "X_KEY"
model_providers.x.http_headers.A = "secret-header"
mcp_servers.m = { command = "m", env = { T = "secret-env" } }
shell_environment_policy.set.MY_TOKEN = "secret-set"
model_providers.x.wire_api = "responses"
`, Options{})
	choice, err := c.Choose(environment("X_KEY", "secret-key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if choice.Key.Reveal() != "secret-key" || choice.Headers["A"].Reveal() != "secret-header" || c.MCPServers["m"].Env["T"].Reveal() != "secret-env" {
		t.Errorf("the secrets did not arrive: %q", choice.Key.Reveal())
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%v %+v %#v %v %+v %#v %+v", c, c, c, choice, choice, choice, c.MCPServers)
	if err := c.Show(&out); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal([]any{choice, c.All(), c.MCPServers})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	if strings.Contains(out.String(), "secret-") {
		t.Errorf("a secret is in the output:\n%s", out.String())
	}
}

func TestRedactURL(t *testing.T) {
	for address, want := range map[string]string{
		"https://example.com/v1":                "https://example.com/v1",
		"https://example.com/v1?api-version=1":  "https://example.com/v1?api-version=1",
		"https://u:p@example.com":               "https://xxx@example.com",
		"https://tok@example.com/?sig=a&b=c":    "https://xxx@example.com/?b=c&sig=xxx",
		"https://example.com/?API_KEY=a&Auth=b": "https://example.com/?API_KEY=xxx&Auth=xxx",
		"http://[::1":                           "•••",
	} {
		if got := RedactURL(address); got != want {
			t.Errorf("RedactURL(%q) = %q, want %q", address, got, want)
		}
	}
}

// A key that names a file with a secret is marked, so that the file is hidden from commands.
func TestKeysOfSecretFilesAreMarked(t *testing.T) {
	marked := 0
	for _, k := range slices.Concat(modelKeys(), providerKeys(), commandKeys(), otherKeys(), serverKeys(), storeKeys()) {
		looks := slices.ContainsFunc([]string{"key", "creds", "token", "secret", "password", "seed"}, func(word string) bool { return strings.Contains(k.last(), word) })
		if k.kind == pathKind && looks && !k.secretFile {
			t.Errorf("%s: a file with a secret: use secretFile", k.name())
		}
		if k.secretFile {
			marked++
		}
	}
	if marked < 3 {
		t.Errorf("only %d keys are marked", marked)
	}
}

// The files that commands must not read: those with keys, and the configuration if there is a secret in it.
func TestSecretFiles(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, FileName)
	for text, want := range map[string][]string{
		"model = 'm'":                                                    nil,
		"[store]\ncreds = '/a'\nkey = '/b'":                              {"/a", "/b"},
		"[store]\nnkey = '/c'\npassword = 'pw'":                          {"/c", file},
		"[store]\nurl = 'nats://u:pw@host'":                              {file},
		"[store]\nurl = 'nats://host'":                                   nil,
		"[mcp_servers.s]\ncommand = 'x'\nenv = { KEY = 'v' }":            {file},
		"[model_providers.p]\nbase_url = 'http://h/v1'\nenv_key = 'KEY'": nil,
	} {
		c := load(t, text, Options{Home: home})
		got := c.SecretFiles()
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	c := load(t, "model = 'm'", Options{Home: home, Overrides: []string{"store.password=pw", "store.key=/k"}})
	if got := c.SecretFiles(); !slices.Equal(got, []string{"/k"}) {
		t.Errorf("from the command line: %q", got)
	}
}

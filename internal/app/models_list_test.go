package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
)

// usable are the models that can be used with a configuration, as provider/model.
func usable(t *testing.T, file string, keys ...string) []string {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, config.FileName), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string {
		if slices.Contains(keys, name) {
			return "x"
		}
		return map[string]string{"HOME": home, "FERMATA_HOME": home}[name]
	}
	o := config.Options{Env: env}
	cfg, _, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := (&Models{load: o, config: cfg, env: env}).Usable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.Provider+"/"+r.Model)
		if r.Provider == "local" && r.Model == "other" && r.Note != "on this machine" {
			t.Errorf("%s is %q", r.Model, r.Note)
		}
	}
	return got
}

// The configured model is that of the configured provider; of others their own is listed.
func TestUsableModels(t *testing.T) {
	got := usable(t, "model = \"gpt-5-mini\"\n", "OPENAI_API_KEY", "ANTHROPIC_API_KEY")
	for _, want := range []string{"demo/demo", "openai/gpt-5-mini"} {
		if !slices.Contains(got, want) {
			t.Errorf("%v, without %s", got, want)
		}
	}
	own := func(row string) bool { return strings.HasPrefix(row, "anthropic/") && row != "anthropic/gpt-5-mini" }
	if !slices.ContainsFunc(got, own) {
		t.Errorf("%v, without a model of anthropic", got)
	}
}

// The configured model of a server without a key is listed also if the server does not list it, or
// does not answer.
func TestConfiguredLocalModelIsUsable(t *testing.T) {
	for name, tc := range map[string]struct {
		served string
		want   []string
	}{
		"listed":     {`{"data":[{"id":"mine"},{"id":"other"}]}`, []string{"local/mine", "local/other"}},
		"not listed": {`{"data":[{"id":"other"}]}`, []string{"local/mine", "local/other"}},
		"no answer":  {"", []string{"local/mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tc.served == "" {
					w.WriteHeader(http.StatusNotFound)
				}
				_, _ = w.Write([]byte(tc.served))
			}))
			defer server.Close()
			got := usable(t, "model = \"mine\"\nmodel_provider = \"local\"\n[model_providers.local]\nname = \"Local\"\nbase_url = \""+server.URL+"\"\nwire_api = \"chat\"\n")
			got = slices.DeleteFunc(got, func(row string) bool { return !strings.HasPrefix(row, "local/") })
			if !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// Only what is served here is on this machine.
func TestPlaceOfModels(t *testing.T) {
	for address, want := range map[string]string{
		"http://localhost:1/v1": "on this machine", "http://127.0.0.1:1": "on this machine", "http://[::1]:1": "on this machine",
		"http://models.example.com/v1": "Mine", "http://10.0.0.1:1": "Mine", "http://localhost.example.com": "Mine",
	} {
		if got := place(config.Provider{ID: "mine", Name: "Mine", BaseURL: address}); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	if got := place(config.Provider{ID: "mine", BaseURL: "http://10.0.0.1"}); got != "mine" {
		t.Errorf("without a name: %q", got)
	}
}

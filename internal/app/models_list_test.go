package app

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
)

// The configured model is that of the configured provider; of others their own is listed.
func TestUsableModels(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, config.FileName), []byte("model = \"gpt-5-mini\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string {
		return map[string]string{"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "y", "HOME": home, "FERMATA_HOME": home}[name]
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
	}
	for _, want := range []string{"demo/demo", "openai/gpt-5-mini"} {
		if !slices.Contains(got, want) {
			t.Errorf("%v, without %s", got, want)
		}
	}
	if !slices.ContainsFunc(rows, func(r ModelRow) bool { return r.Provider == "anthropic" && r.Model != "gpt-5-mini" }) {
		t.Errorf("%v, without a model of anthropic", got)
	}
}

package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config/codex"
)

// Keys of Codex are noted, not warned of, in every place; what only looks like one is an unknown key.
func TestCodexKeys(t *testing.T) {
	home := t.TempDir()
	write(t, home+"/"+FileName, `
check_for_update_on_startup = false
analytic = 1
[analytics]
enabled = false
[feedback]
enabled = true
[model_providers.x]
base_url = "http://127.0.0.1:1"
supports_websockets = true
supports_everything = true
[profiles.p]
personality = "friendly"
`)
	_, warnings, err := Load(Options{Home: home, Overrides: []string{"features.x=true"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.Level()+" "+w.Key)
	}
	want := []string{
		"note check_for_update_on_startup", "warning analytic", "note analytics", "note feedback",
		"note model_providers.x.supports_websockets", "warning model_providers.x.supports_everything",
		"note profiles.p.personality", "note features",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A key that fermata knows is not one that it ignores.
func TestCodexKeysAreUnknown(t *testing.T) {
	for _, name := range codex.Keys {
		schema().each(func(k *key) {
			if k.name() == name || strings.HasPrefix(k.name(), name+".") {
				t.Errorf("%s is a setting of fermata: take %s out of the table", k.name(), name)
			}
		})
	}
}

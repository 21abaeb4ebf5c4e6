package config

import (
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/protocol"
)

func TestEveryProviderOfTheCatalogueNeedsItsKeyOnly(t *testing.T) {
	for _, p := range catalogue.Providers() {
		for _, key := range p.EnvKeys {
			env := environment(key, "k", "AZURE_RESOURCE_NAME", "res")
			got, err := load(t, "model = '"+p.ID+"/some/model'", Options{Env: env}).Choose(env, nil)
			if err != nil {
				t.Errorf("%s: %v", p.ID, err)
				continue
			}
			if got.Provider.ID != p.ID || got.Model != "some/model" || got.Key.Reveal() != "k" || string(got.Provider.WireAPI) != p.Wire {
				t.Errorf("%s: %s, wire %s", p.ID, chosen(got), got.Provider.WireAPI)
			}
			if strings.Contains(got.Provider.BaseURL, "{") || !strings.HasPrefix(got.Provider.BaseURL, "https://") {
				t.Errorf("%s: address %s", p.ID, got.Provider.BaseURL)
			}
		}
	}
}

func TestProviderInTheModelsName(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		env  []string
		want string
	}{
		"split":                   {"model = 'groq/openai/gpt-oss-20b'", []string{"GROQ_API_KEY", "g"}, "groq openai/gpt-oss-20b g HOME:1"},
		"before a key":            {"model = 'groq/x'", []string{"GROQ_API_KEY", "g", "OPENAI_API_KEY", "a"}, "groq x g HOME:1"},
		"a provider of one's own": {"model = 'mine/x'\n[model_providers.mine]\nbase_url = 'http://x.example/v1'", nil, "mine x  HOME:1"},
		"not when one is set":     {"model = 'openai/gpt-5'\nmodel_provider = 'openrouter'", []string{"OPENROUTER_API_KEY", "r"}, "openrouter openai/gpt-5 r HOME:2"},
		"not with an address":     {"model = 'anthropic/x'\nopenai_base_url = 'http://x.example/v1'", []string{"OPENAI_API_KEY", "a"}, "openai anthropic/x a HOME:2"},
		"not with a proxy":        {"model = 'anthropic/x'", []string{"OPENAI_API_KEY", "a", "OPENAI_BASE_URL", "http://x.example/v1"}, "openai anthropic/x a environment OPENAI_API_KEY"},
		"not a provider":          {"model = 'nobody/x'", []string{"OPENAI_API_KEY", "a"}, "openai nobody/x a environment OPENAI_API_KEY"},
		"part of its settings":    {"model = 'groq/x'\n[model_providers.groq]\nstream_max_retries = 1", []string{"GROQ_API_KEY", "g"}, "groq x g HOME:1"},
	} {
		t.Run(name, func(t *testing.T) {
			env := environment(tt.env...)
			c := load(t, tt.text, Options{Env: env})
			got, err := c.Choose(env, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s := strings.ReplaceAll(chosen(got), c.File, "HOME"); s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
	if _, err := load(t, "model = 'azure/x'", Options{}).Choose(environment("AZURE_API_KEY", "k"), nil); err == nil || !strings.Contains(err.Error(), "AZURE_RESOURCE_NAME") {
		t.Errorf("azure without its resource: %v", err)
	}
	if _, err := load(t, "model = 'groq/x'", Options{}).Choose(nil, nil); err == nil || !strings.Contains(err.Error(), "GROQ_API_KEY") {
		t.Errorf("groq without its key: %v", err)
	}
}

func TestProviderInTheModelOfAResume(t *testing.T) {
	for _, tt := range []struct{ now, model, provider, want string }{
		{"openai", "groq/x", "groq", "x"},
		{"openai", "gpt-5.5", "", "gpt-5.5"},
		{"openrouter", "openai/gpt-5", "", "openai/gpt-5"},
		{"mine", "openai/gpt-5", "", "openai/gpt-5"},
	} {
		o := load(t, "", Options{Flags: Flags{Model: tt.model}}).Overrides(protocol.Settings{Provider: tt.now})
		provider := ""
		if o.Provider != nil {
			provider = *o.Provider
		}
		if provider != tt.provider || *o.Model != tt.want {
			t.Errorf("%+v: %q %q", tt, provider, *o.Model)
		}
	}
}

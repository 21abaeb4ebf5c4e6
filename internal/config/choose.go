package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
)

// ErrNoProvider means that nothing says which model to use.
var ErrNoProvider = errors.New("no model provider is configured")

// A MissingKeyError means that the variable with a provider's key is not set.
type MissingKeyError struct {
	Provider     string
	Variables    []string // any of them would do
	Instructions string   // how to get a key, if there are any
	Source       Source   // of env_key
}

func (e *MissingKeyError) Error() string {
	text := fmt.Sprintf("provider %s needs a key: set %s, or run fermata login %s", e.Provider, strings.Join(e.Variables, " or "), e.Provider)
	if e.Source.Kind != FromDefault {
		text += fmt.Sprintf(" (env_key in %s)", e.Source)
	}
	if e.Instructions != "" {
		text += ": " + e.Instructions
	}
	return text
}

// A Choice is the model that turns are run with.
type Choice struct {
	Provider Provider
	Model    string
	Key      Secret            // not set if none is needed
	Headers  map[string]Secret // added to every request
	Source   Source            // what decided on the provider
}

// ModelBeside returns the model to offer where another choice is the one that is configured: the
// provider's own, as the configured one is that of the other provider.
func (c Choice) ModelBeside(configured Choice) string {
	if own := c.Provider.defaultModel(); own != "" && c.Provider.ID != configured.Provider.ID {
		return own
	}
	return c.Model
}

// A Probe asks a local server, by its base URL, which models it has. It says
// false if there is no answer.
type Probe func(baseURL string) (models []string, ok bool)

// Choose decides which provider and model to use. If none is configured, the
// first of these is taken: OpenAI if its address is set, the provider that the
// model's name begins with (provider/id), OpenAI if its key is set, Anthropic if its key is set, an Ollama on this machine that answers. Only then, and when a local
// server's models are not known, is probe called; it may be nil.
func (c *Config) Choose(env func(string) string, probe Probe) (Choice, error) {
	if env == nil {
		env = func(string) string { return "" }
	}
	if probe == nil {
		probe = func(string) ([]string, bool) { return nil, false }
	}
	probe = once(probe)

	c = c.withProviderOfModel(env)
	p, source, err := c.pick(env, probe)
	if err != nil {
		return Choice{}, err
	}
	choice := Choice{Provider: *p, Source: source, Headers: p.requestHeaders(env)}
	if choice.Key, err = c.keyOf(p, env); err != nil {
		return Choice{}, err
	}
	if p.BaseURL == "" && p.ID != Demo {
		return Choice{}, fmt.Errorf("provider %s has no address: set %s", p.ID, formatKey([]string{"model_providers", p.ID, "base_url"}))
	}
	if choice.Provider.BaseURL, err = p.address(env); err != nil {
		return Choice{}, err
	}
	choice.Model, err = c.modelOf(p, probe)
	return choice, err
}

// once asks each server one time only.
func once(probe Probe) Probe {
	type answer struct {
		models []string
		ok     bool
	}
	known := map[string]answer{}
	return func(url string) ([]string, bool) {
		a, ok := known[url]
		if !ok {
			a.models, a.ok = probe(url)
			known[url] = a
		}
		return a.models, a.ok
	}
}

// withProviderOfModel is the configuration with a model called provider/id taken
// apart. Whoever names a provider or an address means the name as it is: services
// that pass requests on have such names themselves.
func (c *Config) withProviderOfModel(env func(string) string) *Config {
	provider, model, ok := c.splitModel(c.Model)
	if !ok || c.Provider != "" || c.hasOwnAddress() {
		return c
	}
	if _, key := firstSet(env, c.providers["openai"].EnvKeys); key && c.Source("model_providers.openai.base_url").Kind != FromDefault {
		return c
	}
	split := *c
	split.Provider, split.Model, split.providerSource = provider, model, c.Source("model")
	return &split
}

// hasOwnAddress reports whether the user set where OpenAI's wire is spoken. A variable
// with the address may be there for other programs: without a key it counts only if none is needed.
func (c *Config) hasOwnAddress() bool {
	address := c.Source("model_providers.openai.base_url")
	return address.Kind > FromEnvironment || address.Kind == FromEnvironment && c.providers["openai"].IsLocal()
}

func (c *Config) pick(env func(string) string, probe Probe) (*Provider, Source, error) {
	if c.Provider != "" {
		p, ok := c.find(c.Provider)
		if !ok {
			return nil, Source{}, c.unknownProvider()
		}
		return p, cmp.Or(c.providerSource, c.Source("model_provider")), nil
	}

	openai, anthropic, ollama := c.providers["openai"], c.providers["anthropic"], c.providers["ollama"]
	if c.hasOwnAddress() {
		return openai, c.Source("model_providers.openai.base_url"), nil
	}
	for _, p := range []*Provider{openai, anthropic} {
		if name, ok := firstSet(env, p.EnvKeys); ok {
			return p, Source{Kind: FromEnvironment, Name: name}, nil
		}
	}
	if ollama.IsLocal() {
		if _, ok := probe(ollama.BaseURL); ok {
			return ollama, Source{}, nil
		}
	}
	return nil, Source{}, fmt.Errorf("%w: run fermata login, or set %s, or %s; or start Ollama (%s); or name one in %s with model_provider; or try --demo, which needs nothing",
		ErrNoProvider, strings.Join(openai.EnvKeys, " or "), strings.Join(anthropic.EnvKeys, " or "), RedactURL(ollama.BaseURL), FileName)
}

func (c *Config) unknownProvider() error {
	known := c.Providers()
	for _, p := range catalogue.Providers() {
		if !slices.Contains(known, p.ID) {
			known = append(known, p.ID)
		}
	}
	text := "; there are " + strings.Join(known, ", ")
	if near := humanize.Nearest(c.Provider, known); near != "" {
		text = fmt.Sprintf("; did you mean %s?", near)
	}
	return &Error{Problem{
		Source: c.Source("model_provider"), Key: "model_provider",
		Text: fmt.Sprintf("there is no provider %s%s", quote(c.Provider), text),
	}}
}

func firstSet(env func(string) string, names []string) (string, bool) {
	i := slices.IndexFunc(names, func(n string) bool { return strings.TrimSpace(env(n)) != "" })
	if i < 0 {
		return "", false
	}
	return names[i], true
}

func (c *Config) keyOf(p *Provider, env func(string) string) (Secret, error) {
	if name, ok := firstSet(env, p.EnvKeys); ok {
		return NewSecret(strings.TrimSpace(env(name))), nil
	}
	// A stand-in for a service, running on this machine, seldom wants the
	// service's key; but what the user asked for by env_key has to be there.
	if len(p.EnvKeys) == 0 || p.IsLocal() && !p.ownKey {
		return Secret{}, nil
	}
	return Secret{}, &MissingKeyError{
		Provider: p.ID, Variables: p.EnvKeys, Instructions: p.EnvKeyInstructions,
		Source: c.Source(formatKey([]string{"model_providers", p.ID, "env_key"})),
	}
}

func (c *Config) modelOf(p *Provider, probe Probe) (string, error) {
	if c.Model != "" {
		return c.Model, nil
	}
	model := p.defaultModel()
	if p.hasLocalModels() {
		if models, ok := probe(p.BaseURL); ok && len(models) > 0 && !slices.Contains(models, model) {
			model = models[0]
		}
	}
	if model == "" {
		return "", fmt.Errorf("provider %s has no default model: name one with --model or model in %s", p.ID, FileName)
	}
	return model, nil
}

// requestHeaders are the fixed headers and those whose value is in a variable.
func (p *Provider) requestHeaders(env func(string) string) map[string]Secret {
	h := maps.Clone(p.headers)
	for name, variable := range p.envHeaders {
		v := strings.TrimSpace(env(variable))
		if v == "" {
			continue
		}
		if h == nil {
			h = map[string]Secret{}
		}
		h[name] = NewSecret(v)
	}
	return h
}

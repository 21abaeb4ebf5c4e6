package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/model/catalogue"
)

// Demo is the provider that is built in: it has no address, needs no key and
// opens no connection.
const Demo = "demo"

// A WireAPI is the protocol that a provider speaks.
type WireAPI string

// The protocols.
const (
	WireResponses WireAPI = "responses"
	WireChat      WireAPI = "chat"
	WireAnthropic WireAPI = "anthropic"
)

// What a provider gets unless it says otherwise.
const (
	defaultRequestRetries = 4
	defaultStreamRetries  = 5
	maxRetries            = 100
	defaultIdleTimeout    = 300 * time.Second
)

const openAIAddress = "https://api.openai.com/v1"

// A Provider is a service that runs models.
type Provider struct {
	ID      string
	Name    string // for people
	BaseURL string // to which the wire adds its own last element; empty for Demo
	WireAPI WireAPI

	// EnvKeys are the variables that may hold the key, the first one that is set
	// counts; none means that no key is needed.
	EnvKeys            []string
	EnvKeyInstructions string // how to get a key
	RequiresOpenAIAuth bool

	QueryParams       map[string]string
	RequestMaxRetries int
	StreamMaxRetries  int
	StreamIdleTimeout time.Duration

	envKey     string
	ownKey     bool // the user asked for the key in envKey
	headers    map[string]Secret
	envHeaders map[string]string // header to variable
}

// provider returns the provider that is being put together.
func (c *Config) provider(id string) *Provider {
	p, ok := c.providers[id]
	if !ok {
		p = newProvider(id)
		c.providers[id] = p
	}
	return p
}

func newProvider(id string) *Provider {
	return &Provider{
		ID: id, RequestMaxRetries: defaultRequestRetries, StreamMaxRetries: defaultStreamRetries, StreamIdleTimeout: defaultIdleTimeout,
	}
}

// complete fills in what follows from the rest. The setting is that of env_key, if any.
func (p *Provider) complete(envKey *setting) {
	p.fillFromCatalogue(envKey == nil)
	if p.Name == "" {
		p.Name = p.ID
	}
	if p.WireAPI == "" {
		p.WireAPI = WireChat
	}
	if p.RequiresOpenAIAuth && p.BaseURL == "" {
		p.BaseURL = openAIAddress
	}
	p.ownKey = envKey != nil && envKey.source.Kind != FromDefault
	switch {
	case p.envKey != "" && (p.ownKey || p.ID != "openai"):
		p.EnvKeys = []string{p.envKey}
	case p.ID == "openai" && !p.ownKey, p.RequiresOpenAIAuth:
		p.EnvKeys = openAIKeys()
	}
}

// fillFromCatalogue adds what is known of a well-known service; its keys only if
// none was named.
func (p *Provider) fillFromCatalogue(keys bool) {
	known, ok := catalogue.FindProvider(p.ID)
	if !ok {
		return
	}
	if p.Name == "" {
		p.Name = known.Name
	}
	if p.BaseURL == "" {
		p.BaseURL = known.BaseURL
	}
	if p.WireAPI == "" {
		p.WireAPI = WireAPI(known.Wire)
	}
	if keys {
		p.EnvKeys = known.EnvKeys
	}
}

// find returns a provider that is configured, built in, or in the catalogue.
func (c *Config) find(id string) (*Provider, bool) {
	if p, ok := c.providers[id]; ok {
		return p, true
	}
	if _, ok := catalogue.FindProvider(id); !ok {
		return nil, false
	}
	p := newProvider(id)
	p.complete(nil)
	return p, true
}

// splitModel takes provider/id apart, if that is what the model's name is.
func (c *Config) splitModel(name string) (provider, model string, ok bool) {
	provider, model, ok = strings.Cut(name, "/")
	if !ok || model == "" {
		return "", "", false
	}
	_, ok = c.find(provider)
	return provider, model, ok
}

// address is the base URL with the variable that it names filled in.
func (p *Provider) address(env func(string) string) (string, error) {
	before, name, after, ok := catalogue.SplitAddress(p.BaseURL)
	if !ok {
		return p.BaseURL, nil
	}
	value := strings.TrimSpace(env(name))
	if value == "" {
		return "", fmt.Errorf("provider %s needs a part of its address: set %s, or %s", p.ID, name, formatKey([]string{"model_providers", p.ID, "base_url"}))
	}
	return before + url.PathEscape(value) + after, nil
}

// openAIKeys are the variables with a key of OpenAI. Whoever starts us for one
// run sets the first; the second may be there for everybody.
func openAIKeys() []string { return []string{"CODEX_API_KEY", "OPENAI_API_KEY"} }

type builtin struct{ id, field, value string }

// builtins are the providers that need no configuration. Each field can be
// overridden.
func builtins() []builtin {
	return []builtin{
		{"openai", "name", "OpenAI"},
		{"openai", "base_url", openAIAddress},
		{"openai", "wire_api", string(WireResponses)},
		{"openai", "env_key", "OPENAI_API_KEY"},
		{"anthropic", "name", "Anthropic"},
		{"anthropic", "base_url", "https://api.anthropic.com/v1"},
		{"anthropic", "wire_api", string(WireAnthropic)},
		{"anthropic", "env_key", "ANTHROPIC_API_KEY"},
		{"openrouter", "name", "OpenRouter"},
		{"openrouter", "base_url", "https://openrouter.ai/api/v1"},
		{"openrouter", "wire_api", string(WireChat)},
		{"openrouter", "env_key", "OPENROUTER_API_KEY"},
		{"ollama", "name", "Ollama"},
		{"ollama", "base_url", "http://localhost:11434/v1"},
		{"ollama", "wire_api", string(WireChat)},
		{"lmstudio", "name", "LM Studio"},
		{"lmstudio", "base_url", "http://localhost:1234/v1"},
		{"lmstudio", "wire_api", string(WireChat)},
		{Demo, "name", "Demo"},
		{Demo, "wire_api", string(WireResponses)},
	}
}

// defaultModel is the model that is used unless one is named. Of a provider
// that is not built in nothing is known but the wire; a chat server could have any model.
func (p *Provider) defaultModel() string {
	switch p.ID {
	case "openrouter":
		return "openai/gpt-5"
	case "ollama", "oss":
		return "gpt-oss:20b"
	case "lmstudio":
		return "openai/gpt-oss-20b"
	case Demo:
		return "demo"
	}
	switch p.WireAPI {
	case WireResponses:
		return "gpt-5"
	case WireAnthropic:
		return "claude-sonnet-4-6"
	}
	return ""
}

// IsLocal reports whether the provider is on this machine.
func (p *Provider) IsLocal() bool {
	u, err := url.Parse(p.BaseURL)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// hasLocalModels reports whether which models there are depends on what this
// machine's owner has downloaded.
func (p *Provider) hasLocalModels() bool {
	return p.IsLocal() && (p.ID == "ollama" || p.ID == "oss" || p.ID == "lmstudio" || p.defaultModel() == "")
}

// StorePassword and StoreToken are the variables with the key to the servers of [store].
const (
	StorePassword = "FERMATA_STORE_PASSWORD"
	StoreToken    = "FERMATA_STORE_TOKEN"
)

// KeyVariables returns the names of all variables that may hold a key: those
// of the providers that are configured and of those that are known, of MCP servers
// and of the store.
func (c *Config) KeyVariables() []string {
	names := []string{StorePassword, StoreToken}
	for _, s := range c.MCPServers {
		names = append(names, s.TokenVariables()...)
	}
	for _, p := range c.providers {
		names = append(names, p.KeyVariables()...)
	}
	for _, p := range catalogue.Providers() {
		names = append(names, p.EnvKeys...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ProviderVariables returns the names of the variables that say where model providers are: those
// that are set in place of a base URL, and those that a base URL names.
func (c *Config) ProviderVariables() []string {
	var names []string
	for _, s := range c.settings {
		if s.path[0] == "model_providers" && s.source.Kind == FromEnvironment {
			names = append(names, s.source.Name)
		}
	}
	for _, p := range c.providers {
		names = append(names, catalogue.AddressVariables(p.BaseURL)...)
	}
	names = append(names, catalogue.AddressVariables(catalogue.Addresses()...)...)
	slices.Sort(names)
	return slices.Compact(names)
}

// KeyVariables returns the names of the variables that a provider's keys and
// headers are read from.
func (p *Provider) KeyVariables() []string {
	names := slices.Clone(p.EnvKeys)
	if p.envKey != "" {
		names = append(names, p.envKey)
	}
	return slices.AppendSeq(names, maps.Values(p.envHeaders))
}

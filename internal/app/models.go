package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/hint"
	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/provider"
	"github.com/fermata-agent/fermata/provider/anthropic"
	"github.com/fermata-agent/fermata/provider/chat"
	"github.com/fermata-agent/fermata/provider/demo"
	"github.com/fermata-agent/fermata/provider/openai"
)

// Models makes the clients of model providers, one for each.
type Models struct {
	load    config.Options
	config  *config.Config
	version string              // of this program
	env     func(string) string // variables, and keys that are saved

	mu      sync.Mutex
	clients map[string]*provided // by the provider's name in settings; guarded by mu
}

// A provided is a provider with its model.
type provided struct {
	choice config.Choice
	model  engine.Model
}

// Choose picks the provider: the named one, or what the configuration says.
func (m *Models) Choose(provider string) (config.Choice, error) {
	return m.chooseFor(p.Settings{Provider: provider})
}

// chooseFor picks the provider of a conversation. One that has a model needs no default.
func (m *Models) chooseFor(s p.Settings) (config.Choice, error) {
	cfg, provider := m.config, s.Provider
	if provider != "" && provider != cfg.Provider {
		id, values, err := m.defined(provider)
		if err != nil {
			return config.Choice{}, err
		}
		o := m.load
		o.Flags = config.Flags{Provider: id, Model: m.load.Flags.Model}
		o.Overrides = append(slices.Clone(o.Overrides), values...)
		if cfg, _, err = config.Load(o); err != nil {
			return config.Choice{}, err
		}
	}
	if s.Model != "" {
		own := *cfg
		own.Model = s.Model
		cfg = &own
	}
	return cfg.Choose(m.env, Probe)
}

// get returns the provider for the settings of a turn. What a provider's name stands for
// does not change while we run.
func (m *Models) get(s p.Settings) (*provided, error) {
	if c := m.known(s.Provider, nil); c != nil {
		return c, nil
	}
	choice, err := m.chooseFor(s)
	if err != nil {
		return nil, &p.Error{Kind: p.ErrorAuth, Message: err.Error()}
	}
	c, err := m.newModel(choice)
	if err != nil {
		return nil, err
	}
	return m.known(s.Provider, &provided{choice, c}), nil
}

// known returns the provider with a name. If there is none, it is made, unless that is nil.
func (m *Models) known(name string, made *provided) *provided {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clients[name] == nil && made != nil {
		if m.clients == nil {
			m.clients = map[string]*provided{}
		}
		m.clients[name] = made
	}
	return m.clients[name]
}

// keyVariables are the variables of keys of the providers that clients defined
// and that were used so far.
func (m *Models) keyVariables() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, c := range m.clients {
		names = append(names, c.choice.Provider.KeyVariables()...)
	}
	return names
}

// retries returns how often the provider's requests are made again.
func (m *Models) retries(s p.Settings) (request, stream int) {
	c, err := m.get(s)
	if err != nil {
		return 0, 0
	}
	return c.choice.Provider.RequestMaxRetries, c.choice.Provider.StreamMaxRetries
}

// model returns the model for the settings of a turn.
func (m *Models) model(s p.Settings) (engine.Model, error) {
	c, err := m.get(s)
	if err != nil {
		return nil, err
	}
	return hint.OfModel(c.model, s.Model, func() []string { return m.modelsOf(s.Provider) }), nil
}

// modelsOf are the models of a provider that the catalogue has.
func (m *Models) modelsOf(provider string) []string {
	return m.config.Catalogue().IDs(provider)
}

// outputLimit is how much a model can write in one response, as far as the catalogue knows it.
func (m *Models) outputLimit(provider, name string) int64 {
	found, _ := m.config.Catalogue().Find(provider, name)
	return found.OutputLimit
}

func (m *Models) newModel(c config.Choice) (engine.Model, error) {
	headers := map[string]string{}
	for name, value := range c.Headers {
		headers[name] = value.Reveal()
	}
	pr := c.Provider
	service := provider.Service{
		BaseURL: pr.BaseURL, Key: c.Key.Reveal(), Headers: headers, Query: pr.QueryParams, IdleTimeout: pr.StreamIdleTimeout,
		UserAgent: "fermata/" + m.version, MaxTokens: m.config.MaxOutputTokens, OutputLimit: func(name string) int64 { return m.outputLimit(pr.ID, name) },
		Originator: m.config.Originator, Version: m.version, RawThought: m.config.ShowRawReasoning,
	}
	switch {
	case pr.ID == config.Demo:
		return demo.New(), nil
	case pr.WireAPI == config.WireResponses:
		return openai.New(service), nil
	case pr.WireAPI == config.WireChat:
		return chat.New(service), nil
	case pr.WireAPI == config.WireAnthropic:
		return anthropic.New(service), nil
	}
	return nil, &p.Error{Kind: p.ErrorInternal, Message: fmt.Sprintf("provider %s: wire_api %q is not supported", pr.ID, pr.WireAPI)}
}

// probeTime is how long a server that needs no key may take to say that it is there.
const probeTime = 300 * time.Millisecond

// Probe asks a server that needs no key which models it has.
func Probe(baseURL string) ([]string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(baseURL, "/")+"/models", nil)
	if err != nil {
		return nil, false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(&list) != nil {
		return nil, false
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names, true
}

// A ModelRow is a model that can be chosen.
type ModelRow struct {
	Provider, Model, Note string
}

// Usable returns the models that could be used now. The configured one is always among them, whatever its
// server answers.
func (m *Models) Usable(context.Context) ([]ModelRow, error) {
	var rows []ModelRow
	configured, _ := m.Choose("") // if there is none, each provider has its own
	for _, id := range m.config.Providers() {
		choice, err := m.Choose(id)
		if err != nil {
			continue // it has no key
		}
		row := ModelRow{Provider: id, Model: choice.ModelBeside(configured), Note: choice.Provider.Name}
		lists := len(choice.Provider.EnvKeys) == 0 && choice.Provider.BaseURL != "" // without a key
		if !lists {
			rows = append(rows, row)
			continue
		}
		names, _ := Probe(choice.Provider.BaseURL)
		if id == configured.Provider.ID && !slices.Contains(names, row.Model) {
			row.Note = "configured"
			rows = append(rows, row)
		}
		for _, name := range names {
			rows = append(rows, ModelRow{Provider: id, Model: name, Note: place(choice.Provider)})
		}
	}
	return rows, nil
}

// place says where the models are that a provider lists.
func place(pr config.Provider) string {
	if pr.IsLocal() {
		return "on this machine"
	}
	return cmp.Or(pr.Name, pr.ID)
}

// ProbeOllama says which models an Ollama on this machine has.
func (m *Models) ProbeOllama() (string, bool) {
	choice, err := m.Choose("ollama")
	if err != nil {
		return "", false
	}
	list, ok := Probe(choice.Provider.BaseURL)
	if !ok {
		return "", false
	}
	if len(list) == 0 {
		return "it has no model yet: ollama pull " + choice.Model, true
	}
	return strings.Join(list, ", "), true
}

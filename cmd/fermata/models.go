package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/anthropic"
	"github.com/fermata-agent/fermata/internal/model/chat"
	"github.com/fermata-agent/fermata/internal/model/demo"
	"github.com/fermata-agent/fermata/internal/model/responses"
	p "github.com/fermata-agent/fermata/protocol"
)

// models makes the clients of model providers, one for each.
type models struct {
	load    config.Options
	config  *config.Config
	clients sync.Map // provider id to model.Client
}

// choose picks the provider: the named one, or what the configuration says.
func (m *models) choose(provider string) (config.Choice, error) {
	cfg := m.config
	if provider != "" && provider != cfg.Provider {
		o := m.load
		o.Flags = config.Flags{Provider: provider, Model: m.load.Flags.Model}
		var err error
		if cfg, _, err = config.Load(o); err != nil {
			return config.Choice{}, err
		}
	}
	return cfg.Choose(os.Getenv, probe)
}

// retries returns how often the provider's requests are made again.
func (m *models) retries(s p.Settings) (request, stream int) {
	choice, err := m.choose(s.Provider)
	if err != nil {
		return 0, 0
	}
	return choice.Provider.RequestMaxRetries, choice.Provider.StreamMaxRetries
}

// client returns the client for the settings of a turn.
func (m *models) client(s p.Settings) (model.Client, error) {
	if c, ok := m.clients.Load(s.Provider); ok {
		return c.(model.Client), nil
	}
	choice, err := m.choose(s.Provider)
	if err != nil {
		return nil, &p.Error{Kind: p.ErrorAuth, Message: err.Error()}
	}
	c, err := newClient(choice, m.config.Originator)
	if err != nil {
		return nil, err
	}
	m.clients.Store(s.Provider, c)
	return c, nil
}

func newClient(c config.Choice, originator string) (model.Client, error) {
	headers := map[string]string{}
	for name, value := range c.Headers {
		headers[name] = value.Reveal()
	}
	pr, key := c.Provider, c.Key.Reveal()
	agent := "fermata/" + version()
	switch {
	case pr.ID == config.Demo:
		return demo.New(), nil
	case pr.WireAPI == config.WireResponses:
		return responses.New(responses.Options{
			BaseURL: pr.BaseURL, Key: key, Headers: headers, Query: pr.QueryParams,
			Originator: originator, Version: version(), IdleTimeout: pr.StreamIdleTimeout,
		}), nil
	case pr.WireAPI == config.WireChat:
		return chat.New(chat.Options{
			BaseURL: pr.BaseURL, Key: key, Headers: headers, Query: pr.QueryParams, UserAgent: agent, IdleTimeout: pr.StreamIdleTimeout,
		}), nil
	case pr.WireAPI == config.WireAnthropic:
		return anthropic.New(anthropic.Options{
			BaseURL: pr.BaseURL, Key: key, Headers: headers, Query: pr.QueryParams, UserAgent: agent, IdleTimeout: pr.StreamIdleTimeout,
		}), nil
	}
	return nil, &p.Error{Kind: p.ErrorInternal, Message: fmt.Sprintf("provider %s speaks %q, which nobody understands", pr.ID, pr.WireAPI)}
}

// probeTime is how long a server on this machine may take to say that it is there.
const probeTime = 300 * time.Millisecond

// probe asks a local server which models it has.
func probe(baseURL string) ([]string, bool) {
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

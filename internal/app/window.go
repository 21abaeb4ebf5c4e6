package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	p "github.com/fermata-agent/fermata/protocol"
)

// defaultWindow is how many tokens a model is taken to accept of which nothing is known.
// If it accepts less, that is learnt from the service's refusal.
const defaultWindow = 128_000

// window returns how many tokens the model of some settings takes: what is configured,
// what its server says if that is on this machine, what the catalogue says, what any other server says. It is
// 0 if nobody knows.
func (m *Models) window(s p.Settings) int64 {
	if m.config.ContextWindow > 0 || s.Provider == config.Demo {
		return m.config.ContextWindow
	}
	known := m.config.Window(s.Provider, s.Model)
	_, service := catalogue.FindProvider(s.Provider)
	choice, err := m.chooseFor(s)
	if err != nil || service || choice.Provider.BaseURL == "" {
		return known
	}
	if !onThisMachine(choice.Provider.BaseURL) && known > 0 {
		return known
	}
	if said := m.saidWindow(choice.Provider.BaseURL, choice.Key.Reveal(), s.Model); said > 0 {
		return said
	}
	return known
}

// A windowAnswer is what a server said, kept in a file so that not every start
// asks again.
type windowAnswer struct {
	Window int64     `json:"window"`
	Asked  time.Time `json:"asked"`
}

// askAgain is how long an answer is believed: servers are started anew with other
// windows, and a refusal corrects one that is too large.
const askAgain = time.Hour

// saidWindow returns what a server says, or said within the hour.
func (m *Models) saidWindow(baseURL, key, model string) int64 {
	sum := sha256.Sum256([]byte(baseURL + "\x00" + model))
	file := filepath.Join(m.config.Home, "cache", "windows", hex.EncodeToString(sum[:8])+".json")
	var kept windowAnswer
	if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &kept) == nil {
		if age := time.Since(kept.Asked); age >= 0 && age < askAgain {
			return kept.Window
		}
	}
	said, answered := askWindow(baseURL, key, model)
	if answered {
		data, _ := json.Marshal(windowAnswer{said, time.Now()}) // of a number and a time
		if os.MkdirAll(filepath.Dir(file), 0o700) == nil {
			_ = os.WriteFile(file, data, 0o600) // half of it is asked for again
		}
	}
	return said
}

func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// askWindow asks a server for the window of a model, in the ways of llama.cpp, LM Studio,
// Ollama and vLLM. It is 0 if the server does not say. It reports whether there is
// a server.
func askWindow(baseURL, key, model string) (window int64, answered bool) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	base := strings.TrimSuffix(baseURL, "/")
	root := strings.TrimSuffix(base, "/v1")
	ask := func(method, address string, body any, into any) bool {
		data, _ := json.Marshal(body) // of strings
		req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(data))
		if err != nil {
			return false
		}
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		answered = true
		return resp.StatusCode == http.StatusOK && json.NewDecoder(resp.Body).Decode(into) == nil
	}

	if window = askList(ask, base+"/models", model); window == 0 { // vLLM
		window = askOthers(ask, root, model)
	}
	return window, answered
}

type asker func(method, address string, body, into any) bool

func askList(ask asker, address, model string) int64 {
	var list struct {
		Data []modelAnswer `json:"data"`
	}
	if !ask(http.MethodGet, address, nil, &list) {
		return 0
	}
	return windowOf(list.Data, model)
}

func askOthers(ask asker, root, model string) int64 {
	var props struct {
		Settings struct {
			Context int64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if ask(http.MethodGet, root+"/props", nil, &props) && props.Settings.Context > 0 { // llama.cpp
		return props.Settings.Context
	}
	if n := askList(ask, root+"/api/v0/models", model); n > 0 { // LM Studio
		return n
	}
	return askOllama(ask, root, model)
}

// A modelAnswer is what servers say of a model.
type modelAnswer struct {
	ID     string `json:"id"`
	Max    int64  `json:"max_model_len"`
	Loaded int64  `json:"loaded_context_length"`
}

func windowOf(list []modelAnswer, model string) int64 {
	for _, a := range list {
		if a.ID == model {
			return max(a.Max, a.Loaded)
		}
	}
	return 0
}

// askOllama takes the context that a model runs with, else the parameter of the model. What
// a model could do says nothing: Ollama uses a part of it.
func askOllama(ask asker, root, model string) int64 {
	var running struct {
		Models []struct {
			Name    string `json:"name"`
			Context int64  `json:"context_length"`
		} `json:"models"`
	}
	if ask(http.MethodGet, root+"/api/ps", nil, &running) {
		for _, m := range running.Models {
			if m.Name == model && m.Context > 0 {
				return m.Context
			}
		}
	}
	var show struct {
		Parameters string `json:"parameters"`
	}
	if !ask(http.MethodPost, root+"/api/show", map[string]string{"model": model}, &show) {
		return 0
	}
	for line := range strings.Lines(show.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			var n int64
			_ = json.Unmarshal([]byte(f[1]), &n) // 0 if it is not a number
			return n
		}
	}
	return 0
}

// warnOfUnknown warns, once for each model, that its window is not known.
func (a *App) warnOfUnknown(s p.Settings) {
	if a.warn == nil || s.ContextWindow > 0 || s.Provider == config.Demo {
		return
	}
	if _, told := a.unknown.LoadOrStore([2]string{s.Provider, s.Model}, true); told {
		return
	}
	text := fmt.Sprintf("how many tokens model %q takes is not known; assuming %d: set model_context_window", s.Model, defaultWindow)
	var known []string
	for m := range a.Models.config.Catalogue().All() {
		if m.Provider == s.Provider {
			known = append(known, m.ID)
		}
	}
	if near := config.Suggest(s.Model, known); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	a.warn(config.Warning{Problem: config.Problem{Text: text}})
}

// effort is the reasoning effort to ask for when nobody chose one in the conversation.
func (m *Models) effort(s p.Settings) string {
	if m.config.Effort != "" {
		return m.config.Effort
	}
	known, _ := m.config.Catalogue().Find(s.Provider, s.Model)
	return known.DefaultEffort()
}

// Cost is what some usage of a model costs in US dollars. Its second result is false if the price is
// not known.
func (m *Models) Cost(s p.Settings, u p.Usage) (float64, bool) {
	known, ok := m.config.Catalogue().Find(s.Provider, s.Model)
	if !ok {
		return 0, false
	}
	return known.Cost(u)
}

// Package window asks the servers of models how many tokens a model takes.
package window

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/regular"
)

// probeTime is how long a server may take to answer.
const probeTime = 300 * time.Millisecond

// An answer is what a server said, kept in a file so that not every start
// asks again.
type answer struct {
	Window int64     `json:"window"`
	Asked  time.Time `json:"asked"`
	Failed bool      `json:"failed,omitempty"` // there was no answer, or an error
}

// How long an answer is believed: servers are started anew with other windows, and
// a refusal corrects one that is too large. A failure is remembered for a shorter
// time: the server may be about to start, or be busy.
const (
	askAgain            = time.Hour
	askAgainAfterFailed = time.Minute
)

func (a answer) isFresh() bool {
	age, limit := time.Since(a.Asked), askAgain
	if a.Failed {
		limit = askAgainAfterFailed
	}
	return age >= 0 && age < limit
}

// Of returns the window of a model as its server says, or said within the hour. Answers are kept in dir. It is 0
// if the server does not say.
func Of(dir, baseURL, key, model string) int64 {
	sum := sha256.Sum256([]byte(baseURL + "\x00" + model))
	file := filepath.Join(dir, hex.EncodeToString(sum[:8])+".json")
	var kept answer
	if data, err := regular.ReadFile(file); err == nil && json.Unmarshal(data, &kept) == nil && kept.isFresh() {
		return kept.Window
	}
	said, answered := ask(baseURL, key, model)
	data, _ := json.Marshal(answer{said, time.Now(), !answered}) // of a number, a time and a truth value
	if os.MkdirAll(filepath.Dir(file), 0o700) == nil {
		_ = regular.WriteFile(file, data, 0o600) // half of it is asked for again
	}
	return said
}

// ask asks a server for the window of a model, in the ways of llama.cpp, LM Studio,
// Ollama and vLLM. It is 0 if the server does not say. It reports whether the server
// answered with a list of models, which all of these have: any other server is asked nothing more.
func ask(baseURL, key, model string) (window int64, answered bool) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	base := strings.TrimSuffix(baseURL, "/")
	root := strings.TrimSuffix(base, "/v1")
	get := func(method, address string, body any, into any) bool {
		req, err := newRequest(ctx, method, address, body)
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
		return resp.StatusCode == http.StatusOK && json.NewDecoder(resp.Body).Decode(into) == nil
	}

	window, answered = askList(get, base+"/models", model) // vLLM
	if window == 0 && answered {
		window = askOthers(get, root, model)
	}
	return window, answered
}

// newRequest makes a request. One without a body has none at all: strict proxies refuse a GET that has one.
func newRequest(ctx context.Context, method, address string, body any) (*http.Request, error) {
	if body == nil {
		return http.NewRequestWithContext(ctx, method, address, nil)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(data))
	if err == nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, err
}

// A request asks a server for something, and reports whether it got it.
type request func(method, address string, body, into any) bool

// askList reads the window of a model from a list of models. It reports whether there is such a list.
func askList(get request, address, model string) (window int64, listed bool) {
	var list struct {
		Data []modelAnswer `json:"data"`
	}
	if !get(http.MethodGet, address, nil, &list) {
		return 0, false
	}
	return windowOf(list.Data, model), true
}

func askOthers(get request, root, model string) int64 {
	var props struct {
		Settings struct {
			Context int64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if get(http.MethodGet, root+"/props", nil, &props) && props.Settings.Context > 0 { // llama.cpp
		return props.Settings.Context
	}
	if n, _ := askList(get, root+"/api/v0/models", model); n > 0 { // LM Studio
		return n
	}
	return askOllama(get, root, model)
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
func askOllama(get request, root, model string) int64 {
	var running struct {
		Models []struct {
			Name    string `json:"name"`
			Context int64  `json:"context_length"`
		} `json:"models"`
	}
	if get(http.MethodGet, root+"/api/ps", nil, &running) {
		for _, m := range running.Models {
			if m.Name == model && m.Context > 0 {
				return m.Context
			}
		}
	}
	var show struct {
		Parameters string `json:"parameters"`
	}
	if !get(http.MethodPost, root+"/api/show", map[string]string{"model": model}, &show) {
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

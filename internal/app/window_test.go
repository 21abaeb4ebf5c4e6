package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// Of a model of which nothing is known people are warned once.
func TestWarnOfUnknown(t *testing.T) {
	var said []string
	a := &App{warn: func(w config.Warning) { said = append(said, w.String()) }}
	for _, s := range []p.Settings{
		{Provider: "mine", Model: "llama"},
		{Provider: "mine", Model: "llama"},
		{Provider: "mine", Model: "known", ContextWindow: 1000},
		{Provider: config.Demo},
	} {
		a.warnOfUnknown(s)
	}
	if len(said) != 1 || !strings.Contains(said[0], `"llama"`) || !strings.Contains(said[0], "model_context_window") {
		t.Errorf("%q", said)
	}
}

func TestAskWindow(t *testing.T) {
	for name, tt := range map[string]struct {
		answers map[string]string
		want    int64
	}{
		"vLLM":             {map[string]string{"/v1/models": `{"data":[{"id":"other","max_model_len":1},{"id":"m","max_model_len":32768}]}`}, 32768},
		"llama.cpp":        {map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/props": `{"default_generation_settings":{"n_ctx":8192}}`}, 8192},
		"LM Studio":        {map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/api/v0/models": `{"data":[{"id":"m","max_context_length":131072,"loaded_context_length":4096}]}`}, 4096},
		"Ollama, running":  {map[string]string{"/api/ps": `{"models":[{"name":"m","context_length":16384}]}`}, 16384},
		"Ollama, its file": {map[string]string{"/api/ps": `{"models":[]}`, "/api/show": `{"parameters":"stop x\nnum_ctx                        8000\n"}`}, 8000},
		"nobody knows":     {map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/api/show": `{}`}, 0},
		"nonsense":         {map[string]string{"/v1/models": `<html>`, "/props": `[]`}, 0},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer, ok := tt.answers[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, answer)
		}))
		if got := askWindow(srv.URL+"/v1", "", "m"); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
		srv.Close()
	}
	if got := askWindow("http://127.0.0.1:1/v1", "", "m"); got != 0 {
		t.Errorf("nobody answers: %d", got)
	}
}

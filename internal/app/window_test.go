package app

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// Of a model of which nothing is known people are warned once.
func TestWarnOfUnknown(t *testing.T) {
	var said []string
	a := &App{Models: &Models{config: &config.Config{Home: t.TempDir()}}, warn: func(w config.Warning) { said = append(said, w.String()) }}
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
		if got, answered := askWindow(srv.URL+"/v1", "", "m"); got != tt.want || !answered {
			t.Errorf("%s: %d, %v, want %d", name, got, answered, tt.want)
		}
		srv.Close()
	}
	if got, answered := askWindow("http://127.0.0.1:1/v1", "", "m"); got != 0 || answered {
		t.Errorf("nobody answers: %d, %v", got, answered)
	}
}

// A server is asked once an hour, and again while nobody answers.
func TestWindowIsKept(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = io.WriteString(w, `{"data":[{"id":"m","max_model_len":32768}]}`)
	}))
	defer srv.Close()
	home := t.TempDir()
	window := func(address, model string) int64 {
		return (&Models{config: &config.Config{Home: home}}).saidWindow(address, "", model)
	}
	for range 3 {
		if got := window(srv.URL, "m"); got != 32768 {
			t.Errorf("it is %d", got)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
	if window(srv.URL, "other"); asked < 2 {
		t.Error("another model was not asked for")
	}
	if got := window("http://127.0.0.1:1", "m"); got != 0 {
		t.Errorf("nobody answers: %d", got)
	}
	if files, err := filepath.Glob(filepath.Join(home, "cache", "windows", "*")); err != nil || len(files) != 2 {
		t.Errorf("kept are %q, %v: want the two answers", files, err)
	}
	old := windowAnswer{1, time.Now().Add(-2 * time.Hour)}
	files, _ := filepath.Glob(filepath.Join(home, "cache", "windows", "*"))
	for _, name := range files {
		data, _ := json.Marshal(old)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := window(srv.URL, "m"); got != 32768 {
		t.Errorf("after two hours it is still %d", got)
	}
}

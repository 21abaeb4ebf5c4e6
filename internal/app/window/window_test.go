package window

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestAskWindow(t *testing.T) {
	const list = `{"data":[{"id":"m"}]}`
	for name, tt := range map[string]struct {
		answers map[string]string
		want    int64
	}{
		"vLLM":             {map[string]string{"/v1/models": `{"data":[{"id":"other","max_model_len":1},{"id":"m","max_model_len":32768}]}`}, 32768},
		"llama.cpp":        {map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/props": `{"default_generation_settings":{"n_ctx":8192}}`}, 8192},
		"LM Studio":        {map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/api/v0/models": `{"data":[{"id":"m","max_context_length":131072,"loaded_context_length":4096}]}`}, 4096},
		"Ollama, running":  {map[string]string{"/v1/models": list, "/api/ps": `{"models":[{"name":"m","context_length":16384}]}`}, 16384},
		"Ollama, its file": {map[string]string{"/v1/models": list, "/api/ps": `{"models":[]}`, "/api/show": `{"parameters":"stop x\nnum_ctx                        8000\n"}`}, 8000},
		"nobody knows":     {map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/api/show": `{}`}, 0},
		"nonsense":         {map[string]string{"/v1/models": list, "/props": `[]`}, 0},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer, ok := tt.answers[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, answer)
		}))
		if got, answered := ask(srv.URL+"/v1", "", "m"); got != tt.want || !answered {
			t.Errorf("%s: %d, %v, want %d", name, got, answered, tt.want)
		}
		srv.Close()
	}
	if got, answered := ask("http://127.0.0.1:1/v1", "", "m"); got != 0 || answered {
		t.Errorf("nobody answers: %d, %v", got, answered)
	}
}

// A server without a list of models is asked one thing, once: not again within a minute, whatever
// it answers. No GET has a body.
func TestOneProbe(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a limit":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"an error":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"no list":     http.NotFound,
		"nonsense":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"it hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		var got []string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got = append(got, fmt.Sprintf("%s %s %d %q", r.Method, r.URL.Path, r.ContentLength, body))
			answer(w, r)
		}))
		dir := t.TempDir()
		for range 3 {
			if window := Of(dir, srv.URL+"/v1", "", "m"); window != 0 {
				t.Errorf("%s: %d", name, window)
			}
		}
		srv.Close()
		if want := []string{`GET /v1/models 0 ""`}; !slices.Equal(got, want) {
			t.Errorf("%s: requests %q, want %q", name, got, want)
		}
	}
}

// A server is asked once an hour, and one that did not answer once a minute.
func TestWindowIsKept(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = io.WriteString(w, `{"data":[{"id":"m","max_model_len":32768}]}`)
	}))
	defer srv.Close()
	dir := filepath.Join(t.TempDir(), "windows")
	window := func(address, model string) int64 {
		return Of(dir, address, "", model)
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
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 3 {
		t.Errorf("kept are %q, %v: want the two answers and the failure", files, err)
	}
	if (answer{Failed: true, Asked: time.Now().Add(-2 * time.Minute)}).isFresh() || !(answer{Asked: time.Now().Add(-2 * time.Minute)}).isFresh() {
		t.Error("after two minutes an answer counts and a failure does not")
	}
	old := answer{1, time.Now().Add(-2 * time.Hour), false}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
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

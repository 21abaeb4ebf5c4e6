package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// ollama is a handler that speaks what Ollama documents of its OpenAI-compatible
// side: the list of models, and chat completions under /v1.
func ollama(srv *modeltest.Server) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": []map[string]any{
			{"id": "qwen3-coder:30b", "object": "model", "created": 1754000000, "owned_by": "library"},
			{"id": "llama3.2:latest", "object": "model", "created": 1750000000, "owned_by": "library"},
		}})
	})
	mux.Handle("POST /v1/chat/completions", srv)
	return mux
}

// worksWithNothingConfigured runs a turn with a command in it and a second one.
func worksWithNothingConfigured(t *testing.T, pl *place, srv *modeltest.Server, flags ...string) {
	t.Helper()
	srv.Add(
		modeltest.Respond(shell("call_1", "cat notes")),
		modeltest.Respond(modeltest.Say("It says ", "hello."), modeltest.NoUsage()),
		modeltest.Respond(modeltest.Say("As I said.")))
	pl.file("notes", "hello\n")
	if out := pl.must(append([]string{"exec", "what does notes say?"}, flags...)...); out != "It says hello.\n" {
		t.Errorf("answer %q", out)
	}
	if out := pl.must("exec", "resume", "--last", "again?"); out != "As I said.\n" {
		t.Errorf("answer %q", out)
	}
	for _, r := range srv.Requests() {
		if r.Body()["model"] != "qwen3-coder:30b" {
			t.Errorf("request %d asks for %v, which is not there", r.Number, r.Body()["model"])
		}
		if key := r.Header.Get("Authorization"); key != "" {
			t.Errorf("a key was sent: %q", key)
		}
	}
	matches(t, "end of the last request", tail(srv.Wait(3), 5),
		`user  what does notes say\?`, `call call_1 .*cat notes.*`, `output call_1 .*hello.*`, `assistant  It says hello\.`, `user  again\?`)
}

// It runs alone: while it does, other tests would find a model where they expect none.
func TestLocalServerNeedsNoConfiguration(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:11434")
	if err != nil {
		t.Skipf("Ollama's address is taken: %v", err)
	}
	srv := modeltest.New(t)
	hs := &httptest.Server{Listener: l, Config: &http.Server{Handler: ollama(srv)}}
	hs.Start()
	defer hs.Close()
	worksWithNothingConfigured(t, newPlace(t), srv)
}

func TestLocalServerOnAnotherPort(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	hs := httptest.NewServer(ollama(srv))
	defer hs.Close()
	u, _ := url.Parse(hs.URL)
	pl := newPlace(t)
	pl.env = append(pl.env, "CODEX_OSS_PORT="+u.Port())
	worksWithNothingConfigured(t, pl, srv, "--oss")
}

func TestNothingConfiguredAndNobodyThere(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "localhost:0") // a port that was free a moment ago
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	pl := newPlace(t)
	nobody := "model_providers.ollama.base_url=http://localhost:" + port + "/v1"
	out, errs, code := pl.run("exec", "-c", nobody, "hello")
	if code != 1 || out != "" {
		t.Errorf("exit code %d, stdout %q", code, out)
	}
	contains(t, "stderr", errs, "no model provider is configured", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "Ollama", "--demo")
	if n := len(pl.conversations()); n != 0 {
		t.Errorf("%d conversations were begun", n)
	}

	out, _, code = pl.run("exec", "--json", "-c", nobody, "hello")
	if code != 1 || strings.Count(out, "\n") != 1 {
		t.Errorf("--json: exit code %d, stdout %q", code, out)
	}
	contains(t, "--json", out, `{"type":"error","message":"no model provider is configured`)
}

// Where OpenAI's address and key are taken from the environment.
func TestOpenAIFromTheEnvironment(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t, modeltest.Respond(modeltest.Say("one")), modeltest.Respond(modeltest.Say("two")))
	pl := newPlace(t)
	pl.env = append(pl.env, "OPENAI_API_KEY="+mockKey)
	if out := pl.must("exec", "-c", `openai_base_url="`+srv.URL()+`"`, "hi"); out != "one\n" {
		t.Errorf("answer %q", out)
	}
	pl.env = append(pl.env, "OPENAI_BASE_URL="+srv.URL(), "CODEX_API_KEY=sk-for-this-run-only")
	if out := pl.must("exec", "resume", "--last", "hi"); out != "two\n" {
		t.Errorf("answer %q", out)
	}
	for i, want := range []string{mockKey, "sk-for-this-run-only"} {
		if got := srv.Wait(i + 1).Header.Get("Authorization"); got != "Bearer "+want {
			t.Errorf("request %d: key %q, want %q", i+1, got, want)
		}
	}
	if path := srv.Wait(1).Path; path != "/v1/responses" {
		t.Errorf("path %s", path)
	}
}

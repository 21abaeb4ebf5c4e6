// Package demo is a stand-in for a model: small, deterministic, without a key and
// without a network, so that everything around a model can be tried.
//
// It speaks the real Responses wire. [New] reaches it inside the process, through
// the same adapter that real services use; [Handler] serves it over HTTP. It judges
// what it is sent as the real service does, and everything it says begins with
// [Label]. [Help] lists what it understands.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/emit"
	"github.com/fermata-agent/fermata/internal/model/inproc"
	"github.com/fermata-agent/fermata/internal/model/responses"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	"github.com/fermata-agent/fermata/protocol"
)

// Label begins everything that the demo model says.
const Label = "[demo] "

// Model is its name.
const Model = "demo"

// perWord is how long it takes for a word of "talk N".
const perWord = 50 * time.Millisecond

// Help says what the demo model understands.
const Help = `run: COMMAND — runs a command and says what it printed
write PATH: TEXT — writes a file
plan: a; b; c — makes a plan and carries it out; a step may be "run: …" or "write …"
start: COMMAND — starts a command in the background, if exec_command is offered
type N: TEXT — types a line to background command N and says what it printed
view: PATH — looks at an image
call: TOOL {"name":"value"} — calls a tool, such as one of an MCP server
talk N — says N words, slowly
wait N — says nothing for N seconds
what happened? — reports what the last turn did, and what was interrupted`

// New returns a client of the demo model.
func New() model.Client {
	return responses.New(responses.Options{BaseURL: "http://demo.invalid/v1", HTTP: inproc.Transport(Handler())})
}

// Handler serves POST /v1/responses and GET /v1/models.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", respond)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, emit.Object{"object": "list", "data": []emit.Object{
			{"id": Model, "object": "model", "created": 0, "owned_by": "fermata"},
		}})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("the demo model does not serve %s %s", r.Method, r.URL.Path))
	})
	return mux
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, emit.Marshal(v)+"\n")
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, emit.Object{"error": emit.Object{"message": message, "type": "invalid_request_error", "param": nil, "code": nil}})
}

// A request is what the demo model looks at.
type request struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Tools  []struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tools"`

	items []wirecheck.Item
	size  int // bytes
}

// tool returns the type of an offered tool, or "".
func (r request) tool(name string) string {
	for _, t := range r.Tools {
		if t.Name == name {
			return t.Type
		}
	}
	return ""
}

func respond(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has left
	}
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		refuse(w, http.StatusBadRequest, "not a request: "+err.Error())
		return
	}
	req.size = len(body)
	req.items, err = wirecheck.Parse(wirecheck.Responses, body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if fault := wirecheck.Check(req.items); fault != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		w.Write(fault.Body(wirecheck.Responses))
		return
	}

	said := decide(req)
	enc := &emit.Encoder{Number: len(req.items), Model: req.Model}
	if !req.Stream {
		enc.Start()
		said.events(enc)
		answer(w, http.StatusOK, enc.Response(req.usage(said)))
		return
	}
	stream(r.Context(), w, enc, req, said)
}

// A turnout is what the demo model does in one response.
type turnout struct {
	wait time.Duration // before it says anything
	pace time.Duration // for each word
	text string        // without the label
	call *emit.Call
}

func (t turnout) events(enc *emit.Encoder) []string {
	var events []string
	if t.text != "" {
		events = enc.Say(words(Label+t.text), true)
	}
	if t.call != nil {
		events = append(events, enc.Calls([]emit.Call{*t.call}, true)...)
	}
	return events
}

// words cuts a text behind its spaces.
func words(s string) []string { return strings.SplitAfter(s, " ") }

func stream(ctx context.Context, w http.ResponseWriter, enc *emit.Encoder, req request, said turnout) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flush := http.NewResponseController(w).Flush
	put := func(event string) bool {
		if _, err := io.WriteString(w, event); err != nil {
			return false
		}
		return flush() == nil && ctx.Err() == nil
	}
	for _, e := range enc.Start() {
		if !put(e) {
			return
		}
	}
	if !pause(ctx, said.wait) {
		return
	}
	for _, e := range said.events(enc) {
		if strings.HasPrefix(e, "event: response.output_text.delta\n") && !pause(ctx, said.pace) {
			return
		}
		if !put(e) {
			return
		}
	}
	for _, e := range enc.End(req.usage(said)) {
		put(e)
	}
}

// pause waits, and reports false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// usage counts four bytes as a token. What came before the last message was
// there in an earlier request, so it counts as cached.
func (r request) usage(t turnout) *protocol.Usage {
	old := 0
	for _, it := range r.items[:max(0, len(r.items)-1)] {
		old += len(it.Text) + len(it.Name) + 20
	}
	u := protocol.Usage{Input: int64(r.size/4 + 1), Output: int64(len(t.text)/4 + 3)}
	if t.call != nil {
		u.Output += int64(len(t.call.Arguments)/4 + 5)
	}
	u.Cached = min(int64(old/4/64*64), u.Input)
	u.Total = u.Input + u.Output
	return &u
}

// Package modeltest is a model service for tests: a server that speaks the real
// wires and answers from a script.
//
// A script is a list of [Reply] values, one for each request; most are made by
// [Respond] from steps such as [Say], [Call], [Pause], [Stall] and [Drop]. The
// server is reached by its URL or, without a network, by its Transport. It
// records what it was asked, knows when a client hung up, and refuses an invalid history as
// the real services do. [Conform] is the suite that every adapter passes.
package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/model/inproc"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
)

// patience is how long a wait may take before the test is given up.
const patience = 30 * time.Second

// A Server is a scripted model service. Its methods may be used from any goroutine.
type Server struct {
	tb    testing.TB
	state chan *state // holds the one state; whoever takes it puts it back
	start sync.Once
	http  *httptest.Server
}

type state struct {
	script     []Reply
	last       *Reply // answers when the script is over
	requests   []*Request
	remembered []string
	refusalsOK bool
	limits     *Limits
	changed    chan struct{} // closed and replaced with every request
}

// New returns a server that answers the n-th request with the n-th reply. The
// test fails if the server refuses a history, unless ExpectRefusals was called, or if
// it is asked more often than the script says.
func New(tb testing.TB, script ...Reply) *Server {
	s := &Server{tb: tb, state: make(chan *state, 1)}
	s.state <- &state{script: script, changed: make(chan struct{})}
	tb.Cleanup(func() {
		if s.http != nil {
			s.http.CloseClientConnections()
			s.http.Close()
		}
		for _, r := range s.Requests() {
			if r.Fault != nil && !s.refusalsOK() {
				tb.Errorf("modeltest: request %d was refused: %v", r.Number, r.Fault)
			}
		}
	})
	return s
}

// with runs f on the state.
func (s *Server) with(f func(*state)) {
	st := <-s.state
	defer func() { s.state <- st }()
	f(st)
}

// URL is the base address, such as http://127.0.0.1:4711/v1. The server listens
// from the first call on.
func (s *Server) URL() string {
	s.start.Do(func() { s.http = httptest.NewServer(s) })
	return s.http.URL + "/v1"
}

// Transport reaches the server without a network, by whatever host name. It
// works inside a synctest bubble.
func (s *Server) Transport() http.RoundTripper { return inproc.Transport(s) }

// Add appends replies to the script.
func (s *Server) Add(replies ...Reply) {
	s.with(func(st *state) { st.script = append(st.script, replies...) })
}

// Otherwise sets the reply for every request after the end of the script.
func (s *Server) Otherwise(r Reply) {
	s.with(func(st *state) { st.last = &r })
}

// Remember makes the server believe that the given calls happened: it refuses
// every history that has no output for them.
func (s *Server) Remember(ids ...string) {
	s.with(func(st *state) { st.remembered = append(st.remembered, ids...) })
}

// Forget undoes Remember.
func (s *Server) Forget() {
	s.with(func(st *state) { st.remembered = nil })
}

// ExpectRefusals says that a refused history is part of the test.
func (s *Server) ExpectRefusals() {
	s.with(func(st *state) { st.refusalsOK = true })
}

func (s *Server) refusalsOK() (ok bool) {
	s.with(func(st *state) { ok = st.refusalsOK })
	return ok
}

// Requests returns what was asked so far.
func (s *Server) Requests() (all []*Request) {
	s.with(func(st *state) { all = slices.Clone(st.requests) })
	return all
}

// Wait waits for the n-th request, counted from 1, and returns it.
func (s *Server) Wait(n int) *Request {
	s.tb.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		var req *Request
		var changed chan struct{}
		s.with(func(st *state) {
			changed = st.changed
			if len(st.requests) >= n {
				req = st.requests[n-1]
			}
		})
		if req != nil {
			return req
		}
		select {
		case <-changed:
		case <-timeout.C:
			s.tb.Fatalf("modeltest: no request %d after %v", n, patience)
		}
	}
}

// A Request is what a client asked.
type Request struct {
	Number int // 1 for the first
	Wire   wirecheck.Wire
	Path   string
	Query  url.Values
	Header http.Header
	Raw    []byte
	Items  []wirecheck.Item // the history
	Fault  *wirecheck.Fault // why it was refused, if it was

	TooLong bool // it was refused for its length

	body     func() map[string]any // decoded when it is looked at: it may be long
	head     head
	gone     chan struct{}
	finished chan struct{}
}

// A head is what the server itself looks at in the body of a request.
type head struct {
	Model     any `json:"model"`
	MaxTokens any `json:"max_tokens"`
}

// Body is the body of the request, decoded.
func (r *Request) Body() map[string]any { return r.body() }

// Gone is closed when the client hung up before it was answered in full.
func (r *Request) Gone() <-chan struct{} { return r.gone }

// Finished is closed when the server has nothing more to do for the request.
func (r *Request) Finished() <-chan struct{} { return r.finished }

// List returns the member of the body with the given name as a list of objects,
// for example input, messages or tools.
func (r *Request) List(name string) []map[string]any {
	list, _ := r.Body()[name].([]any)
	var out []map[string]any
	for _, v := range list {
		m, _ := v.(map[string]any)
		out = append(out, m)
	}
	return out
}

// Wait waits for a channel to be closed.
func Wait(tb testing.TB, what string, ch <-chan struct{}) {
	tb.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-ch:
	case <-timeout.C:
		tb.Fatalf("modeltest: still waiting for %s after %v", what, patience)
	}
}

// ServeHTTP answers POST …/responses, …/chat/completions and …/messages from the script, and GET …/models.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models") {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"object":"list","data":[{"id":"test-model","object":"model","created":0,"owned_by":"modeltest"}]}`)
		return
	}
	wire, ok := wireOf(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}

	req := &Request{
		Wire: wire, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(), Raw: raw,
		gone: make(chan struct{}), finished: make(chan struct{}),
	}
	defer close(req.finished)
	reply := s.take(req)
	for reply.from != nil {
		reply = reply.from(req)
	}
	play(w, r, req, reply)
}

func wireOf(r *http.Request) (wirecheck.Wire, bool) {
	if r.Method != http.MethodPost {
		return "", false
	}
	for suffix, wire := range map[string]wirecheck.Wire{
		"/responses": wirecheck.Responses, "/chat/completions": wirecheck.Chat, "/messages": wirecheck.Anthropic,
	} {
		if strings.HasSuffix(r.URL.Path, suffix) {
			return wire, true
		}
	}
	return "", false
}

// take records a request, judges it and picks its reply.
func (s *Server) take(req *Request) (reply Reply) {
	bad := json.Unmarshal(req.Raw, &req.head)
	req.body = sync.OnceValue(func() (body map[string]any) {
		_ = json.Unmarshal(req.Raw, &body)
		return body
	})
	items, err := wirecheck.Parse(req.Wire, req.Raw)
	req.Items = items
	var limits *Limits
	s.with(func(st *state) {
		st.requests = append(st.requests, req)
		req.Number = len(st.requests)
		defer func() {
			close(st.changed)
			st.changed = make(chan struct{})
		}()
		if bad != nil || err != nil {
			reply = Status(http.StatusBadRequest, fmt.Sprintf(`{"error":{"message":"not a request: %v %v","type":"invalid_request_error"}}`, bad, err))
			return
		}
		if req.Fault = wirecheck.CheckWire(req.Wire, items, st.remembered...); req.Fault != nil {
			reply = Status(http.StatusBadRequest, string(req.Fault.Body(req.Wire)))
			return
		}
		if st.limits == nil {
			reply = s.next(st, req.Number)
			return
		}
		limited, ok := st.limits.limited(req)
		if ok {
			reply = limited
			return
		}
		reply = s.next(st, req.Number)
		limits = st.limits
	})
	for reply.from != nil {
		reply = reply.from(req)
	}
	if limits != nil {
		reply = limits.count(req, reply)
	}
	return reply
}

func (s *Server) next(st *state, number int) Reply {
	if len(st.script) > 0 {
		reply := st.script[0]
		st.script = st.script[1:]
		return reply
	}
	if st.last != nil {
		return *st.last
	}
	s.tb.Errorf("modeltest: request %d is more than the script says", number)
	return Status(http.StatusNotImplemented, `{"error":{"message":"the script is over"}}`)
}

package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/surface/web/access"
	p "github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/store/memory"
)

// A rig is a server over an engine in memory, whose model does what the message says.
type rig struct {
	t       *testing.T
	engine  *engine.Local
	access  *access.Store
	server  *Server
	http    *httptest.Server
	session access.Credentials
	gates   chan struct{} // each "wait" in a message takes one
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, access: access.Open(t.TempDir()), gates: make(chan struct{})}
	e, err := engine.Open(t.Context(), engine.Config{
		Store: memory.New(), Model: engine.ModelFunc(r.model), Tools: []engine.Tool{tool{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.engine = e
	t.Cleanup(func() { _ = e.Shutdown(context.Background()) })
	r.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.server.ServeHTTP(w, q) }))
	r.http.Start()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); r.http.Close() })
	key, err := r.access.Key()
	if err != nil {
		t.Fatal(err)
	}
	r.server = New(ctx, Options{
		Engine: e, Access: r.access, Key: key, Origins: []string{r.http.URL}, Version: "test", Dir: "/w",
		Settings: func(q app.SettingsRequest) (p.Settings, []string, error) {
			if q.Model == "wrong" {
				return p.Settings{}, nil, errors.New("there is no model wrong")
			}
			return p.Settings{Cwd: q.Cwd, Model: q.Model}, nil, nil
		},
		Undo: func(context.Context, p.ConversationID, p.TurnID) (*app.Undo, error) {
			return nil, errors.New("there is no turn whose changes to files can be undone")
		},
	})
	r.session = r.login(access.Everything)
	return r
}

// login opens a session of a program.
func (r *rig) login(rights access.Rights) access.Credentials {
	r.t.Helper()
	code, err := r.access.NewLink(rights)
	if err != nil {
		r.t.Fatal(err)
	}
	c, err := r.access.Login(code, access.Client{Name: "test"})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// model says the words of the message; "wait" waits for the test, "work" calls the tool.
func (r *rig) model(ctx context.Context, q engine.Request, reply *engine.Reply) error {
	if len(q.Items) > 0 && q.Items[len(q.Items)-1].Kind == p.PromptOutput {
		reply.Text("done")
		return nil
	}
	for _, word := range strings.Fields(q.LastMessage()) {
		switch word {
		case "wait":
			select {
			case <-r.gates:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		case "work":
			reply.Call("c1", "work", `{"x":"<b>"}`)
		default:
			reply.Text(word + " ")
		}
	}
	return nil
}

type tool struct{}

func (tool) Spec() engine.ToolSpec {
	return engine.ToolSpec{Name: "work", Description: "works", Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (tool) Run(_ context.Context, c engine.Call) (engine.Output, error) {
	if c.Decision == "" {
		return engine.Output{}, &engine.ApprovalError{Command: []string{"rm", "-rf", "<script>alert(1)</script>"}, Reason: "it is unknown"}
	}
	return engine.Output{Text: "worked"}, nil
}

// do makes a request with the token of the session, unless set says otherwise.
func (r *rig) do(method, path, body string, set func(*http.Request)) (int, string, http.Header) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), method, r.http.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+r.session.Token)
	if method == http.MethodPost {
		q.Header.Set("Content-Type", "application/json")
	}
	if set != nil {
		set(q)
	}
	res, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	data, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(data), res.Header
}

// must makes a request that succeeds, and reads its answer.
func (r *rig) must(method, path, body string, into any) {
	r.t.Helper()
	status, text, _ := r.do(method, path, body, nil)
	if status/100 != 2 {
		r.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			r.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
}

func (r *rig) begin(prompt string) p.ConversationID {
	r.t.Helper()
	var c createAnswer
	body, _ := json.Marshal(map[string]string{"prompt": prompt, "cwd": "/w"})
	r.must("POST", "/api/v1/conversations", string(body), &c)
	return c.ID
}

func (r *rig) op(id p.ConversationID, op p.Op) p.Receipt {
	r.t.Helper()
	body, err := json.Marshal(p.OpJSON{Op: op})
	if err != nil {
		r.t.Fatal(err)
	}
	var receipt p.Receipt
	r.must("POST", "/api/v1/conversations/"+string(id)+"/ops", string(body), &receipt)
	return receipt
}

// A reader reads the messages of a stream.
type reader struct {
	t      *testing.T
	lines  *bufio.Reader
	cancel func()
}

type received struct {
	event, id string
	data      []byte
}

func (r *rig) stream(method, path, body string) *reader {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	q, err := http.NewRequestWithContext(ctx, method, r.http.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+r.session.Token)
	q.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		r.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(res.Body)
		r.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, data)
	}
	end := func() { cancel(); res.Body.Close() }
	r.t.Cleanup(end)
	return &reader{r.t, bufio.NewReaderSize(res.Body, 1<<20), end}
}

// next returns the next message; false at the end of the stream.
func (s *reader) next() (received, bool) {
	s.t.Helper()
	var m received
	for {
		line, err := s.lines.ReadBytes('\n')
		if err != nil {
			return m, false
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		switch name, value, _ := bytes.Cut(line, []byte(": ")); string(name) {
		case "event":
			m.event = string(value)
		case "id":
			m.id = string(value)
		case "data":
			m.data = bytes.Clone(value)
		case "":
			if m.data != nil {
				return m, true
			}
		}
	}
}

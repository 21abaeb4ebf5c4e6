package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A client is the other end of a server, played by the test.
type client struct {
	t     *testing.T
	e     *enginetest.Engine
	in    *io.PipeWriter
	lines chan string
	ended chan error
	stop  context.CancelCauseFunc
	back  []string        // read too early
	last  string          // the answer that take has found
	taken map[string]bool // all of those
	id    string          // of the first conversation it hears of; C in what is compared
	local fakeLocal
}

// puppetSettings is a configuration with three models: puppet, o3 and, with something to
// remark, odd.
func puppetSettings(w app.SettingsRequest) (p.Settings, []string, error) {
	if w.Model == "bad" {
		return p.Settings{}, nil, errors.New("there is no model bad")
	}
	if w.Model == "" {
		w.Model = "puppet"
	}
	settings := p.Settings{Cwd: w.Cwd, Model: w.Model, Instructions: w.BaseInstructions}
	switch w.Model {
	case "o3":
		settings.ContextWindow = 200_000
	case "odd":
		return settings, []string{"odd is odd"}, nil
	}
	return settings, nil, nil
}

func puppetChange(now p.Settings, w app.SettingsRequest) (p.Overrides, []string, error) {
	var o p.Overrides
	switch {
	case w.Model == "bad":
		return o, nil, errors.New("there is no model bad")
	case w.Model != "":
		o.Model = &w.Model
	}
	if w.Cwd != "" && !filepath.IsAbs(w.Cwd) {
		w.Cwd = filepath.Join("/server", w.Cwd)
	}
	if w.Cwd != "" {
		o.Cwd = &w.Cwd
	}
	if w.ApprovalPolicy != "" {
		o.Approval = new(p.ApprovalPolicy(w.ApprovalPolicy))
	}
	if w.Sandbox != "" {
		o.Sandbox = &p.SandboxPolicy{Mode: p.SandboxMode(w.Sandbox)}
	}
	if effort, ok := w.Config["model_reasoning_effort"].(string); ok {
		o.Effort = &effort
	}
	return o, nil, nil
}

// A fakeLocal is a machine with a key and nothing else.
type fakeLocal struct {
	Local
	key string
}

func (l *fakeLocal) Key() (string, bool) { return l.key, l.key != "" }

// connect starts a server in a bubble. The client says what it can do.
func connect(t *testing.T, capabilities string) *client {
	t.Helper()
	c := attach(t, enginetest.New(t, enginetest.Options{}))
	if capabilities != "" {
		c.send(`{"id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, capabilities)
		c.skip("init")
	}
	return c
}

// attach starts a server for one more client of an engine.
func attach(t *testing.T, e *enginetest.Engine) *client {
	t.Helper()
	return attachTo(t, e, e)
}

// attachTo starts a server that sees the engine as another one.
func attachTo(t *testing.T, e *enginetest.Engine, seen engine.Engine) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancelCause(t.Context())
	c := &client{t: t, e: e, in: inW, lines: make(chan string, 10000), ended: make(chan error, 1), stop: stop, taken: map[string]bool{}}
	s := New(ctx, Options{Engine: seen, Version: "1.2.3", Settings: puppetSettings, Change: puppetChange, Local: &c.local, Panicked: c.panicked})
	go func() {
		c.ended <- s.Serve(ctx, inR, outW)
		outW.Close()
	}()
	go func() {
		defer close(c.lines)
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			c.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(func() { stop(nil); inW.Close(); outR.Close() })
	return c
}

// panicked fails the test.
func (c *client) panicked(value any, stack []byte) { c.t.Errorf("%v\n%s", value, stack) }

// send writes a line; C in it stands for the conversation.
func (c *client) send(format string, args ...any) {
	c.t.Helper()
	line := strings.ReplaceAll(fmt.Sprintf(format, args...), `"C"`, `"`+c.id+`"`)
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// A heard is a line that the server sent.
type heard struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ID  string         `json:"id"`
		Msg map[string]any `json:"msg"`
	} `json:"params"`
	Result struct {
		Structured     map[string]any `json:"structuredContent"`
		ConversationID string         `json:"conversationId"`
	} `json:"result"`
}

// next is the next line, and what is in it.
func (c *client) next() (string, heard) {
	c.t.Helper()
	if len(c.back) > 0 {
		line := c.back[0]
		c.back = c.back[1:]
		return c.read(line)
	}
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the stream has ended")
		}
		return c.read(line)
	case <-time.After(time.Hour):
		c.t.Fatal("nothing comes")
	}
	return "", heard{}
}

// take reads up to the answer to a request and keeps what came before, for
// events and answers are in no order.
func (c *client) take(id string) {
	c.t.Helper()
	var before []string
	for {
		line, h := c.next()
		if h.Method == "" && bare(h.ID) == id {
			c.back, c.last = append(before, c.back...), line
			c.taken[line] = true
			return
		}
		before = append(before, line)
	}
}

func (c *client) read(line string) (string, heard) {
	c.t.Helper()
	var h heard
	if err := json.Unmarshal([]byte(line), &h); err != nil {
		c.t.Fatalf("%v: %s", err, line)
	}
	for _, id := range []any{h.Params.Msg["session_id"], h.Result.Structured["conversation_id"], h.Result.ConversationID} {
		if id, ok := id.(string); ok && id != "" && c.id == "" {
			c.id = id
		}
	}
	if c.id != "" {
		line = strings.ReplaceAll(line, c.id, "C")
	}
	return line, h
}

// want compares the next lines, as JSON.
func (c *client) want(lines ...string) {
	c.t.Helper()
	for _, want := range lines {
		got, _ := c.next()
		if d := cmp.Diff(decoded(c.t, want), decoded(c.t, got)); d != "" {
			c.t.Fatalf("got %s\n(-want +got):\n%s", got, d)
		}
	}
}

// skip reads up to the answer to a request and returns that.
func (c *client) skip(id string) string {
	c.t.Helper()
	for {
		line, h := c.next()
		if h.Method == "" && bare(h.ID) == id {
			return line
		}
	}
}

// hear reads until the last of the kinds has come, and compares all kinds in short: the
// method, the event's type and its turn. Bare copies and token counts are left out.
func (c *client) hear(want ...string) {
	c.t.Helper()
	var got []string
	for len(got) < len(want) {
		_, h := c.next()
		kind, _ := h.Params.Msg["type"].(string)
		switch {
		case h.Method == kind && kind != "", kind == "token_count":
			continue
		case h.Method == "":
			got = append(got, "answer "+bare(h.ID))
		case kind == "":
			got = append(got, h.Method)
		default:
			got = append(got, strings.TrimSpace(kind+" "+h.Params.ID))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		c.t.Fatalf("(-want +got):\n%s", d)
	}
}

// nothing fails the test if something comes without anybody doing anything.
func (c *client) nothing() {
	c.t.Helper()
	synctest.Wait()
	if len(c.back) > 0 {
		c.t.Fatalf("unexpected %s", c.back[0])
	}
	select {
	case line := <-c.lines:
		c.t.Fatalf("unexpected %s", line)
	default:
	}
}

// drain forgets what has come.
func (c *client) drain() {
	synctest.Wait()
	for c.back = nil; len(c.lines) > 0; {
		<-c.lines
	}
}

func (c *client) cancel(id string) {
	c.t.Helper()
	c.send(`{"method":"notifications/cancelled","params":{"requestId":%s}}`, id)
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

package appserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/oneoff"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	p "github.com/fermata-agent/fermata/protocol"
)

// A site is a server with an engine that is played by the test.
type site struct {
	t testing.TB
	e *enginetest.Engine
	s *Server

	defect bool // a panic is expected

	mu       sync.Mutex
	allowed  []string // what may run unasked; guarded by mu
	cantSave error    // if nothing more can be allowed; guarded by mu
}

// allow is the server's Options.Allow.
func (x *site) allow(perm project.Permission) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cantSave == nil {
		x.allowed = append(x.allowed, perm.String()+" in "+perm.Dir)
	}
	return x.cantSave
}

// panicked fails the test, unless it expects a panic.
func (x *site) panicked(value any, stack []byte) {
	if !x.defect {
		x.t.Errorf("%v\n%s", value, stack)
	}
}

func newSite(t *testing.T) *site { return newSiteWith(t, enginetest.New(t, enginetest.Options{})) }

func newSiteWith(t testing.TB, e *enginetest.Engine) *site {
	t.Helper()
	x := &site{t: t, e: e}
	x.s = New(t.Context(), Options{Engine: e, Version: "1.2.3", Home: t.TempDir(), Cwd: "/w", Settings: puppetSettings, Change: puppetChange, Allow: x.allow, Local: fakeLocal{}, Panicked: x.panicked})
	t.Cleanup(x.s.Close)
	return x
}

func puppetSettings(w app.SettingsRequest) (p.Settings, []string, error) {
	if w.Model == "bad" {
		return p.Settings{}, nil, errors.New("there is no model bad")
	}
	s := p.Settings{Cwd: "/w", Model: "puppet", Provider: "test", Approval: p.ApprovalOnRequest, Sandbox: p.SandboxPolicy{Mode: p.SandboxMode(w.Sandbox)}}
	if w.Model != "" {
		s.Model = w.Model
	}
	if w.Cwd != "" {
		s.Cwd = w.Cwd
	}
	return s, nil, nil
}

func puppetChange(_ p.Settings, w app.SettingsRequest) (p.Overrides, []string, error) {
	var o p.Overrides
	if w.Model != "" {
		o.Model = &w.Model
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
	return o, nil, nil
}

// A fakeLocal is a machine with a key and one model.
type fakeLocal struct{}

func (fakeLocal) RunOnce(_ context.Context, command oneoff.Command) (oneoff.Result, error) {
	out := oneoff.Result{ExitCode: 3, Stdout: strings.Join(command.Argv, " ")}
	for _, name := range slices.Sorted(maps.Keys(command.Env)) {
		value := "unset"
		if v := command.Env[name]; v != nil {
			value = *v
		}
		out.Stdout += " " + name + "=" + value
	}
	if command.Timeout < 0 {
		out.Stderr = "a negative time limit"
	}
	return out, nil
}

func (fakeLocal) Choices(context.Context) ([]app.ModelChoice, error) {
	return []app.ModelChoice{{Provider: "test", Model: "puppet", Efforts: []string{"low", "high"}, Default: true}}, nil
}
func (fakeLocal) SkillList(string) []app.Skill { return nil }
func (fakeLocal) Key() (string, bool)          { return "", true }
func (fakeLocal) MCPStatus() []app.MCPStatus   { return nil }

func (fakeLocal) ViewConfig(string) (app.ConfigView, error) {
	return app.ConfigView{File: "/h/config.toml"}, nil
}
func (fakeLocal) SaveConfig(...app.ConfigEdit) (string, error)   { return "", nil }
func (fakeLocal) Allowed() ([]p.SandboxMode, []p.ApprovalPolicy) { return nil, nil }

// A client is the other end of a connection, played by the test.
type client struct {
	t     testing.TB
	x     *site
	in    *io.PipeWriter
	out   *io.PipeReader
	lines chan string
	ended chan error
	back  []map[string]any // read too early
	n     int              // requests
	last  map[string]any   // the last message that was read
	id    p.ConversationID // the thread it is about
}

// connect makes a connection that is initialized.
func (x *site) connect() *client {
	c := x.dial(Shared)
	c.result("initialize", `{"clientInfo":{"name":"t","version":"1"}}`)
	c.send(`{"method":"initialized"}`)
	return c
}

func (x *site) dial(kind Kind) *client {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t: x.t, x: x, in: inW, out: outR, lines: make(chan string, 100000), ended: make(chan error, 1)}
	ctx, stop := context.WithCancel(x.t.Context())
	go func() {
		c.ended <- x.s.Serve(ctx, kind, inR, outW)
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
			c.lines <- line
		}
	}()
	x.t.Cleanup(func() { stop(); inW.Close(); outR.Close() })
	return c
}

func (c *client) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

// ask sends a request; T in its params stands for the thread, U1, U2 … for its turns.
func (c *client) ask(method, params string) (id int) {
	c.t.Helper()
	c.n++
	params = strings.ReplaceAll(params, `"T"`, `"`+string(c.id)+`"`)
	for n := 1; n < 10; n++ {
		params = strings.ReplaceAll(params, fmt.Sprintf(`"U%d"`, n), `"`+items.TurnName(c.id, p.TurnID(n))+`"`)
	}
	c.send(`{"id":%d,"method":%q,"params":%s}`, c.n, method, params)
	return c.n
}

// turnName is the id of a turn of the thread.
func (c *client) turnName(n p.TurnID) string { return items.TurnName(c.id, n) }

// next reads the next message.
func (c *client) next() map[string]any {
	c.t.Helper()
	if len(c.back) > 0 {
		c.last, c.back = c.back[0], c.back[1:]
		return c.last
	}
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the stream has ended")
		}
		c.last = nil
		if err := json.Unmarshal([]byte(line), &c.last); err != nil {
			c.t.Fatalf("%v: %s", err, line)
		}
		return c.last
	case <-time.After(time.Hour):
		c.t.Fatal("nothing comes")
	}
	return nil
}

// response waits for the answer to a request and keeps what came before it.
func (c *client) response(id int) map[string]any {
	c.t.Helper()
	var before []map[string]any
	for {
		m := c.next()
		if m["method"] == nil && m["id"] == float64(id) {
			c.back = append(before, c.back...)
			return m
		}
		before = append(before, m)
	}
}

// result makes a request and returns its result.
func (c *client) result(method, params string) map[string]any {
	c.t.Helper()
	m := c.response(c.ask(method, params))
	if m["error"] != nil {
		c.t.Fatalf("%s: %v", method, m["error"])
	}
	r, _ := m["result"].(map[string]any)
	return r
}

// refused makes a request and returns its error in short.
func (c *client) refused(method, params string) string {
	c.t.Helper()
	m := c.response(c.ask(method, params))
	e, ok := m["error"].(map[string]any)
	if !ok {
		c.t.Fatalf("%s is answered: %v", method, m)
	}
	return c.shorten(fmt.Sprintf("%v %v", e["code"], e["message"]))
}

// start begins a thread.
func (c *client) start() {
	c.t.Helper()
	r := c.result("thread/start", `{}`)
	c.id = p.ConversationID(at(r, "thread", "id").(string))
	c.want("thread/started")
}

// say starts a turn.
func (c *client) say(text string) int {
	return c.ask("turn/start", fmt.Sprintf(`{"threadId":"T","input":[{"type":"text","text":%q}],"clientUserMessageId":"c-%s"}`, text, text))
}

// at looks into a value.
func at(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// shorten replaces ids by T, U1, U2 ….
func (c *client) shorten(s string) string {
	if c.id == "" {
		return s
	}
	for n := 1; n < 10; n++ {
		s = strings.ReplaceAll(s, items.TurnName(c.id, p.TurnID(n)), fmt.Sprintf("U%d", n))
	}
	return strings.ReplaceAll(s, string(c.id), "T")
}

// short is a message in one line.
func (c *client) short(m map[string]any) string {
	params := m["params"]
	method, _ := m["method"].(string)
	part := func(path ...string) string {
		switch v := at(params, path...).(type) {
		case nil:
			return "-"
		case string:
			return v
		default:
			b, _ := json.Marshal(v)
			return string(b)
		}
	}
	line := method
	switch method {
	case "":
		line = fmt.Sprintf("answer %v", m["id"])
		if e := m["error"]; e != nil {
			line += fmt.Sprintf(" error %v %v", at(e, "code"), at(e, "message"))
		}
	case "thread/status/changed":
		line = "status " + part("status", "type")
		if f := part("status", "activeFlags"); f != "-" {
			line += " " + f
		}
	case "turn/started", "turn/completed":
		line += " " + part("turn", "id") + " " + part("turn", "status")
		if a := part("turn", "abortReason"); a != "-" {
			line += " " + a
		}
	case "item/started", "item/completed":
		line += " " + part("item", "type") + " " + part("item", "id")
		for _, name := range []string{"clientId", "text", "command", "status", "aggregatedOutput", "exitCode", "tool"} {
			if v := part("item", name); v != "-" && v != "" {
				line += " " + v
			}
		}
	case "item/agentMessage/delta", "item/commandExecution/outputDelta", "item/reasoning/summaryTextDelta":
		line = "delta " + part("itemId") + " " + part("delta")
	case "serverRequest/resolved":
		line = "resolved " + part("requestId")
	case "item/commandExecution/requestApproval":
		line = "ask " + part("itemId") + " " + part("command")
	case "error":
		line += " " + part("error", "message") + " " + part("willRetry")
	case "warning":
		line += " " + part("message")
	}
	return c.shorten(line)
}

// want reads messages and compares them in short. Token counts are left out.
func (c *client) want(lines ...string) {
	c.t.Helper()
	var got []string
	for len(got) < len(lines) {
		if m := c.next(); m["method"] != "thread/tokenUsage/updated" && m["method"] != "thread/settings/updated" {
			got = append(got, c.short(m))
		}
	}
	if d := cmp.Diff(lines, got); d != "" {
		c.t.Fatalf("(-want +got):\n%s", d)
	}
}

// until reads up to a message that begins so, and returns what was read in short.
func (c *client) until(prefix string) []string {
	c.t.Helper()
	var got []string
	for {
		line := c.short(c.next())
		got = append(got, line)
		if strings.HasPrefix(line, prefix) {
			return got
		}
	}
}

// nothing fails the test if something comes without anybody doing anything.
func (c *client) nothing() {
	c.t.Helper()
	synctest.Wait()
	if len(c.back) > 0 || len(c.lines) > 0 {
		c.t.Fatalf("unexpected %s", c.short(c.next()))
	}
}

// turns are those of an answer, in short: their status and items.
func (c *client) turns(thread any) []string {
	c.t.Helper()
	list, _ := at(thread, "turns").([]any)
	var got []string
	for _, t := range list {
		line := fmt.Sprint(at(t, "id"), " ", at(t, "status"))
		if a := at(t, "abortReason"); a != nil {
			line += fmt.Sprint(" ", a)
		}
		all, _ := at(t, "items").([]any)
		for _, it := range all {
			line += fmt.Sprint("; ", at(it, "type"))
			for _, name := range []string{"text", "status", "aggregatedOutput"} {
				if v := at(it, name); v != nil && v != "" {
					line += fmt.Sprint(" ", v)
				}
			}
		}
		got = append(got, c.shorten(line))
	}
	return got
}

func same(t *testing.T, want, got []string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

// inBubble runs a test in a bubble of its own.
func inBubble(t *testing.T, f func(t *testing.T, x *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newSite(t)) })
}

var _ engine.Engine = (*enginetest.Engine)(nil)

package acp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/clienttools"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/config/skills"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/tool/openfile"
	p "github.com/fermata-agent/fermata/protocol"
)

// A site is a server with an engine that is played by the test.
type site struct {
	t   testing.TB
	e   *enginetest.Engine
	s   *Server
	dir string

	noKey bool

	mu      sync.Mutex
	allowed []string // what may run unasked; guarded by mu
}

func newSite(t testing.TB) *site { return newSiteWith(t, enginetest.Options{}) }

func newSiteWith(t testing.TB, o enginetest.Options) *site {
	t.Helper()
	x := &site{t: t, e: enginetest.New(t, o), dir: t.TempDir()}
	x.s = New(Options{Engine: x.e, Version: "1.2.3", Settings: x.settings, Change: x.change, Allow: x.allow, Local: fakeLocal{}, Panicked: func(value any, stack []byte) { t.Errorf("%v\n%s", value, stack) }})
	return x
}

func (x *site) allow(perm project.Permission) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.allowed = append(x.allowed, perm.String())
	return nil
}

func (x *site) settings(w app.SettingsRequest) (p.Settings, []string, error) {
	if x.noKey {
		return p.Settings{}, nil, &config.MissingKeyError{Provider: "test", Variables: []string{"TEST_KEY"}}
	}
	return p.Settings{Cwd: w.Cwd, Model: "puppet", Provider: "test", Approval: p.ApprovalOnRequest, Sandbox: p.SandboxPolicy{Mode: p.SandboxWorkspaceWrite}, ContextWindow: 1000}, nil, nil
}

func (x *site) change(_ p.Settings, w app.SettingsRequest) (p.Overrides, []string, error) {
	var o p.Overrides
	if w.Model == "bad" {
		return o, nil, errors.New("there is no model bad")
	}
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
	if effort, ok := w.Config["model_reasoning_effort"].(string); ok {
		o.Effort = &effort
	}
	return o, nil, nil
}

// A fakeLocal is a machine with two models.
type fakeLocal struct{}

func (fakeLocal) Choices(context.Context) ([]app.ModelChoice, error) {
	return []app.ModelChoice{{Provider: "test", Model: "puppet", Efforts: []string{"low", "high"}, Default: true}, {Provider: "test", Model: "other"}}, nil
}

func (fakeLocal) Allows(s p.Settings) error {
	if s.Sandbox.Mode == p.SandboxFullAccess {
		return errors.New("danger-full-access is not allowed here")
	}
	return nil
}

func (fakeLocal) Prompts(string) []skills.Prompt {
	return []skills.Prompt{{Name: "greet", Description: "greets", Arguments: "NAME", Text: "Say hello to $1.", File: "greet.md"}}
}

func (fakeLocal) OpenClientTools(_ string, defs map[string]config.MCPServer, open openfile.Buffers) (*clienttools.Set, []config.Warning) {
	if len(defs) > 0 {
		return &clienttools.Set{Buffers: open}, []config.Warning{{Problem: config.Problem{Text: "no servers here"}}}
	}
	return &clienttools.Set{Buffers: open}, nil
}

func (fakeLocal) Undo(context.Context, p.ConversationID, p.TurnID) (*app.Undo, error) {
	return &app.Undo{Turn: 1, Files: 2, Do: func(context.Context) error { return nil }}, nil
}
func (fakeLocal) ContextWindow(s p.Settings) int64         { return s.ContextWindow }
func (fakeLocal) Cost(p.Settings, p.Usage) (float64, bool) { return 0.5, true }

// A client is the other end of a connection, played by the test.
type client struct {
	t     testing.TB
	x     *site
	in    *io.PipeWriter
	out   *io.PipeReader
	lines chan string
	ended chan error
	judge *judge

	stalled atomic.Bool      // it does not read
	resume  chan struct{}    // closed when it reads again
	back    []map[string]any // read too early
	n       int              // requests
	last    map[string]any   // the last message that was read
	id      string           // the session it is about
}

// everything is what a client can offer.
const everything = `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":true},"elicitation":{"form":{},"url":{}},"session":{"notices":{},"compaction":{},"configOptions":{"boolean":{}}},"_meta":{"terminal_output":true}}`

// connect makes a connection that is initialized.
func (x *site) connect(capabilities ...string) *client {
	x.t.Helper()
	c := x.dial()
	c.result("initialize", fmt.Sprintf(`{"protocolVersion":1,"clientCapabilities":%s}`, cmp.Or(strings.Join(capabilities, ""), "{}")))
	return c
}

func (x *site) dial() *client {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t: x.t, x: x, in: inW, out: outR, lines: make(chan string, 100000), ended: make(chan error, 1), resume: make(chan struct{}), judge: &judge{t: x.t, asks: map[string]string{}, seen: map[string]int{}}}
	ctx, stop := context.WithCancel(x.t.Context())
	go func() {
		c.ended <- x.s.Serve(ctx, inR, outW)
		outW.Close()
	}()
	go func() {
		defer close(c.lines)
		r := bufio.NewReader(outR)
		for {
			if c.stalled.Load() {
				<-c.resume
			}
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			c.judge.look(fromAgent, []byte(line))
			c.lines <- line
		}
	}()
	x.t.Cleanup(func() { stop(); inW.Close(); outR.Close() })
	return c
}

// send sends a line; "S" in it stands for the session.
func (c *client) send(format string, args ...any) {
	c.t.Helper()
	line := strings.ReplaceAll(fmt.Sprintf(format, args...), `"S"`, `"`+c.id+`"`)
	c.judge.look(fromClient, []byte(line))
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// wrong is what client sends next is wrong on purpose.
func (c *client) wrong() {
	c.judge.mu.Lock()
	defer c.judge.mu.Unlock()
	c.judge.bad = true
}

// ask sends a request.
func (c *client) ask(method, params string) (id int) {
	c.t.Helper()
	c.n++
	c.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.n, method, params)
	return c.n
}

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

// refusal makes a request and returns its error in short.
func (c *client) refused(method, params string) string {
	c.t.Helper()
	m := c.response(c.ask(method, params))
	e, ok := m["error"].(map[string]any)
	if !ok {
		c.t.Fatalf("%s is answered: %v", method, m)
	}
	return c.shorten(fmt.Sprintf("%v %v", e["code"], e["message"]))
}

// start begins a session, and leaves out what comes with it.
func (c *client) start() {
	c.t.Helper()
	r := c.result("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, c.x.dir))
	c.id = r["sessionId"].(string)
	synctest.Wait()
	c.back = nil
	for len(c.lines) > 0 {
		<-c.lines
	}
}

// open opens the session of another client, by session/load or session/resume.
func (c *client) open(method string, other *client) int {
	c.t.Helper()
	c.id = other.id
	return c.ask(method, fmt.Sprintf(`{"sessionId":"S","cwd":%q,"mcpServers":[]}`, c.x.dir))
}

// say sends a prompt.
func (c *client) say(text string) int {
	c.t.Helper()
	return c.ask("session/prompt", fmt.Sprintf(`{"sessionId":"S","prompt":[{"type":"text","text":%q}]}`, text))
}

func (c *client) cancel() {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"S"}}`)
}

// at looks into a value.
func at(v any, path ...string) any {
	for _, name := range path {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			var n int
			if _, err := fmt.Sscan(name, &n); err != nil || n >= len(in) {
				return nil
			}
			v = in[n]
		default:
			return nil
		}
	}
	return v
}

func (c *client) shorten(s string) string {
	if c.id != "" {
		s = strings.ReplaceAll(s, c.id, "S")
	}
	return strings.ReplaceAll(s, c.x.dir, "/w")
}

// short is a message in one line.
func (c *client) short(m map[string]any) string {
	method, _ := m["method"].(string)
	params := m["params"]
	switch method {
	case "":
		if e := m["error"]; e != nil {
			return c.shorten(fmt.Sprintf("answer %v error %v %v", m["id"], at(e, "code"), at(e, "message")))
		}
		return c.shorten(fmt.Sprintf("answer %v %v", m["id"], cmp.Or[any](at(m, "result", "stopReason"), "ok")))
	case "session/update":
		return c.shorten(shortUpdate(at(params, "update")))
	case "session/request_permission":
		line := fmt.Sprint("permission ", at(params, "toolCall", "toolCallId"), " ", at(params, "toolCall", "title"), ":")
		for _, o := range at(params, "options").([]any) {
			line += fmt.Sprint(" ", at(o, "optionId"))
		}
		return c.shorten(line)
	case "elicitation/create":
		return c.shorten(fmt.Sprint("elicit ", at(params, "mode"), " ", at(params, "message")))
	case "$/cancel_request":
		return fmt.Sprint("withdrawn ", at(params, "requestId"))
	}
	return c.shorten(fmt.Sprint(method, " ", params))
}

func shortUpdate(u any) string {
	kind, _ := at(u, "sessionUpdate").(string)
	switch kind {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		return strings.TrimSuffix(kind, "_chunk") + fmt.Sprintf(" %v %v", at(u, "messageId"), cmp.Or[any](at(u, "content", "text"), at(u, "content", "type")))
	case "tool_call", "tool_call_update":
		line := kind + fmt.Sprint(" ", at(u, "toolCallId"))
		for _, name := range []string{"title", "kind", "status"} {
			if v := at(u, name); v != nil {
				line += fmt.Sprint(" ", v)
			}
		}
		list, _ := at(u, "content").([]any)
		for _, c := range list {
			switch at(c, "type") {
			case "content":
				line += fmt.Sprintf(" %q", at(c, "content", "text"))
			case "diff":
				line += fmt.Sprintf(" diff(%v %q→%q)", at(c, "path"), at(c, "oldText"), at(c, "newText"))
			default:
				line += fmt.Sprint(" ", at(c, "type"))
			}
		}
		if meta, ok := at(u, "_meta").(map[string]any); ok {
			text, _ := json.Marshal(meta)
			line += " " + string(text)
		}
		return line
	case "notice":
		return fmt.Sprint("notice ", at(u, "severity"), " ", at(u, "title"))
	case "usage_update":
		return fmt.Sprint("usage ", at(u, "used"), "/", at(u, "size"), " ", at(u, "cost", "amount"))
	case "session_info_update":
		return fmt.Sprint("title ", at(u, "title"))
	case "current_mode_update":
		return fmt.Sprint("mode ", at(u, "currentModeId"))
	case "plan":
		line := "plan"
		for _, e := range at(u, "entries").([]any) {
			line += fmt.Sprint("; ", at(e, "content"), " ", at(e, "status"))
		}
		return line
	}
	return kind
}

// beside reports whether a message is one of those that most tests do not look at.
func beside(line string) bool {
	return strings.HasPrefix(line, "usage ") || strings.HasPrefix(line, "title ") || strings.HasPrefix(line, "available_commands")
}

// want reads messages and compares them in short, but for those beside the turn.
func (c *client) want(lines ...string) {
	c.t.Helper()
	var got []string
	for len(got) < len(lines) {
		if line := c.short(c.next()); !beside(line) {
			got = append(got, line)
		}
	}
	if d := gocmp.Diff(lines, got); d != "" {
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
	for len(c.back)+len(c.lines) > 0 {
		if line := c.short(c.next()); !beside(line) {
			c.t.Fatalf("unexpected %s", line)
		}
	}
}

func same(t testing.TB, want, got []string) {
	t.Helper()
	if d := gocmp.Diff(want, got); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

// inBubble runs a test in a bubble of its own.
func inBubble(t *testing.T, f func(t *testing.T, x *site)) {
	t.Helper()
	if _, err := published(); err != nil { // read outside of the bubble
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { f(t, newSite(t)) })
}

// command has the model call a tool that runs a command, which the test plays.
func (x *site) command(argv ...string) *enginetest.Run {
	x.t.Helper()
	r := x.e.Request()
	r.Call("w", "work", `{"n":1}`)
	r.End()
	run := x.e.Run()
	if len(argv) > 0 {
		if err := run.Call.Host.Record(run.Ctx, &p.CommandStarted{Call: run.Call.ID, Command: argv, Cwd: x.dir}); err != nil {
			x.t.Fatal(err)
		}
	}
	return run
}

// elicit has the tool of a run ask the user something.
func elicit(run *enginetest.Run, q p.ElicitationRequested) (p.ElicitationResolved, error) {
	return run.Call.Host.(tool.Elicitor).Elicit(run.Ctx, q)
}

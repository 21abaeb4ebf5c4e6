package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// codexWith calls codex with some configuration and returns the answer's text and the conversation.
func (c *mcpClient) codexWith(id int, config map[string]any) (text, conversation string) {
	c.t.Helper()
	args, err := json.Marshal(map[string]any{"prompt": "hi", "config": config})
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"codex","arguments":%s}}`, id, args)
	return c.textOf(id)
}

func (c *mcpClient) replyTo(id int, conversation string) string {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"more"}}}`, id, conversation)
	text, _ := c.textOf(id)
	return text
}

// textOf is the text of an answer to tools/call.
func (c *mcpClient) textOf(id int) (text, conversation string) {
	c.t.Helper()
	var got struct {
		Content           []struct{ Text string }
		StructuredContent struct{ ThreadID string }
	}
	if err := json.Unmarshal([]byte(c.answer(float64(id))), &got); err != nil || len(got.Content) == 0 {
		c.t.Fatalf("answer %+v, %v", got, err)
	}
	return got.Content[0].Text, got.StructuredContent.ThreadID
}

// A call brings its own provider. Others may call theirs the same, and the configured one
// stays what it is, in this process and the next.
func TestMCPProviderOfAConversation(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(modeltest.Say("configured")), modeltest.Respond(modeltest.Say("configured again")))
	one := modeltest.New(t, modeltest.Respond(modeltest.Say("one")), modeltest.Respond(modeltest.Say("one again")), modeltest.Respond(modeltest.Say("one for the last time")))
	two := modeltest.New(t, modeltest.Respond(modeltest.Say("two")), modeltest.Respond(modeltest.Say("two again")))
	c := s.connect()
	provider := func(id string, srv *modeltest.Server) map[string]any {
		return map[string]any{"model_provider": id, "model_providers." + id: map[string]any{
			"name": "own", "base_url": srv.URL(), "wire_api": "chat", "request_max_retries": 0, "stream_max_retries": 0,
			"http_headers": map[string]any{"X-Own": "secret-header"},
		}}
	}
	for i, x := range []struct {
		want   string
		config map[string]any
	}{{"one", provider("own", one)}, {"two", provider("own", two)}, {"configured", nil}} {
		text, id := c.codexWith(10+i, x.config)
		if text != x.want {
			t.Errorf("codex: %q, want %q", text, x.want)
		}
		if got := c.replyTo(20+i, id); got != x.want+" again" {
			t.Errorf("codex-reply: %q, want %q", got, x.want+" again")
		}
		if i > 0 {
			continue
		}
		c.in.Close()
		c.code()
		c = s.connect()
		if got := c.replyTo(30, id); got != "one for the last time" {
			t.Errorf("codex-reply to another process: %q", got)
		}
		s.fsck(id)
	}
	if got := one.Wait(1).Header.Get("X-Own"); got != "secret-header" {
		t.Errorf("header %q", got)
	}
	s.secret("secret-header")
}

// secret checks that only we can read the files that hold a text, and that no journal does.
func (s *mcpSite) secret(text string) {
	s.t.Helper()
	found := 0
	home := filepath.Join(s.dir, "home", "fermata")
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(b), text) {
			return err
		}
		found++
		info, err := d.Info()
		if err == nil && (info.Mode().Perm() != 0o600 || strings.HasSuffix(path, ".jsonl")) {
			s.t.Errorf("%s (%v) holds %q", path, info.Mode(), text)
		}
		return err
	})
	if err != nil || found == 0 {
		s.t.Errorf("%d files hold it, %v", found, err)
	}
}

// unlisted is the address of a server that does not tell which models it has.
func unlisted(t *testing.T, srv *modeltest.Server) string {
	t.Helper()
	target, err := url.Parse(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host }}
	mux := http.NewServeMux()
	mux.Handle("POST /", proxy)
	front := httptest.NewServer(mux)
	t.Cleanup(front.Close)
	return front.URL + target.Path
}

// A provider that has no default model runs a conversation that names one, also where no other is
// configured, and when it is changed later.
func TestMCPProviderWithoutADefaultModel(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	if err := os.Remove(filepath.Join(s.dir, "home", "fermata", "config.toml")); err != nil {
		t.Fatal(err)
	}
	one := modeltest.New(t, modeltest.Respond(modeltest.Say("one")), modeltest.Respond(modeltest.Say("one again")))
	two := modeltest.New(t, modeltest.Respond(modeltest.Say("two")))
	c := s.connect()
	text, id := c.codexWith(1, map[string]any{
		"model": "m", "model_provider": "own", "model_providers.own": map[string]any{"name": "own", "base_url": unlisted(t, one), "wire_api": "chat"},
	})
	if text != "one" {
		t.Errorf("answer %q", text)
	}
	c.in.Close()
	c.code()
	c = s.connect()
	if got := c.replyTo(2, id); got != "one again" {
		t.Errorf("answer to another process: %q", got)
	}
	c.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"conversationSendMessage","arguments":{"conversation_id":%q,`+
		`"content":[{"type":"text","text":"x"}],"config":{"model_providers.own.base_url":%q}}}}`, id, unlisted(t, two))
	if text, _ := c.textOf(3); text != `{"status":"ok"}` {
		t.Errorf("answer %q", text)
	}
	two.Wait(1)
}

// A part of a provider is enough: the rest is what the configuration says.
func TestMCPPartOfAProvider(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	other := modeltest.New(t, modeltest.Respond(modeltest.Say("elsewhere")), modeltest.Respond(modeltest.Say("elsewhere too")))
	c := s.connect()
	text, id := c.codexWith(1, map[string]any{"model_providers.mock_provider.base_url": other.URL()})
	if text != "elsewhere" {
		t.Errorf("answer %q", text)
	}
	if got := c.replyTo(2, id); got != "elsewhere too" {
		t.Errorf("answer %q", got)
	}
	if text, _ = c.codexWith(3, map[string]any{"model_providers.mock_provider.wire_api": "telegraph"}); !strings.Contains(text, "wire_api") {
		t.Errorf("a bad definition: %q", text)
	}
	if text, _ = c.codexWith(4, map[string]any{"model_provider": "nobody"}); !strings.Contains(text, "nobody") {
		t.Errorf("an unknown provider: %q", text)
	}
	if err := os.RemoveAll(filepath.Join(s.dir, "home", "fermata", "providers")); err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	c.code()
	contains(t, "without the definition", s.connect().replyTo(1, id), "provider mock_provider was defined by the client")
}

// A conversation that there is already is changed by what is named, and by nothing else.
func TestMCPChangeOfAConversation(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(modeltest.Say("a")), modeltest.Respond(modeltest.Say("b")), modeltest.Respond(modeltest.Say("c")))
	s.configure("\n[profiles.quick]\nmodel = \"small\"\n")
	other := modeltest.New(t, modeltest.Respond(modeltest.Say("elsewhere")))
	c := s.connect("-c", `model="by-flag"`)
	c.send(`{"id":1,"method":"tools/call","params":{"name":"conversationCreate","arguments":{"prompt":"","cwd":%q}}}`, s.work)
	var made struct {
		StructuredContent struct {
			ID    string `json:"conversation_id"`
			Model string
		}
	}
	if err := json.Unmarshal([]byte(c.answer(1)), &made); err != nil || made.StructuredContent.Model != "by-flag" {
		t.Fatalf("%+v, %v", made, err)
	}
	id := made.StructuredContent.ID
	c.send(`{"id":2,"method":"tools/call","params":{"name":"conversationStream","arguments":{"conversation_id":%q}}}`, id)
	say := func(request int, more string) {
		c.send(`{"id":%d,"method":"tools/call","params":{"name":"conversationSendMessage","arguments":{"conversation_id":%q,"content":[{"type":"text","text":"hi"}]%s}}}`, request, id, more)
	}
	turn := func(request int, more string) { // its answer and its events are in no order
		say(request, more)
		accepted, over := false, false
		c.await("an answer and the end of its turn", func(m map[string]any) bool {
			if m["id"] == float64(request) {
				b, _ := json.Marshal(m["result"])
				contains(t, "answer", string(b), `"status":"ok"`)
				accepted = true
			}
			over = over || m["method"] == "task_complete"
			return accepted && over
		})
	}
	for i, x := range []struct{ more, model string }{
		{"", "by-flag"},
		{`,"profile":"quick"`, "small"},
		{fmt.Sprintf(`,"config":{"model":"by-config","model_reasoning_effort":"high"},"cwd":%q`, s.work), "by-config"},
	} {
		turn(10+i, x.more)
		if got := s.srv.Wait(i + 1).Body()["model"]; got != x.model {
			t.Errorf("%s: the model is %v, want %s", x.more, got, x.model)
		}
	}
	turn(20, fmt.Sprintf(`,"config":{"model_providers.mock_provider.base_url":%q}`, other.URL()))
	if got := other.Wait(1).Body()["model"]; got != "by-config" {
		t.Errorf("at the other provider the model is %v", got)
	}
	for more, want := range map[string]string{
		`,"base_instructions":"be brief"`:             "instructions",
		`,"parent_message_id":"m1"`:                   "parent_message_id",
		`,"profile":"none"`:                           "none",
		`,"config":{"approval_policy":"perhaps"}`:     "perhaps",
		`,"config":{"model_provider":"nobody"}`:       "nobody",
		`,"sandbox":7`:                                "sandbox",
		`,"config":{"model_providers.x.wire_api":""}`: "wire_api",
	} {
		say(30, more)
		contains(t, more, c.answer(30), `"isError":true`, want)
	}
}

// What of a call's configuration has no effect is said: what is the server's own, and what nobody
// knows. What the server was started with is not the call's.
func TestMCPConfigThatHasNoEffect(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(modeltest.Say("ok")), modeltest.Respond(modeltest.Say("ok")))
	c := s.connect("-c", "mistyped=1")
	heard := func(request, name, arguments string) (remarks []string) {
		c.send(`{"id":%s,"method":"tools/call","params":{"name":%q,"arguments":{%s}}}`, request, name, arguments)
		c.await("an answer", func(m map[string]any) bool {
			if m["method"] == "notifications/message" {
				got, _ := json.Marshal(m["params"])
				remarks = append(remarks, string(got))
			}
			return fmt.Sprint(m["id"]) == request
		})
		return remarks
	}
	remark := func(text string) string {
		return `{"data":"config: ` + text + `","level":"warning","logger":"fermata"}`
	}
	want := []string{
		remark("mcp_servers has no effect here: set it where the server is started, with -c"),
		remark("shell_environment_policy.inherit has no effect here: set it where the server is started, with -c"),
		remark("approval_polcy: unknown key; did you mean approval_policy?"),
		remark("model_providers.x.bse_url: unknown key; did you mean model_providers.x.base_url?"),
	}
	config := `"prompt":"hi","config":{"mcp_servers":{"mine":{"command":"true"}},"shell_environment_policy.inherit":"none","approval_polcy":"untrusted","model_providers.x":{"bse_url":"u"}}`
	if d := cmp.Diff(want, heard("1", "codex", config)); d != "" {
		t.Errorf("remarks (-want +got):\n%s", d)
	}
	id := s.conversations()[0].ID
	config = fmt.Sprintf(`"conversation_id":%q,"content":[{"type":"text","text":"hi"}],"config":{"approval_polcy":"untrusted"}`, id)
	if d := cmp.Diff(want[2:3], heard("2", "conversationSendMessage", config)); d != "" {
		t.Errorf("remarks of a message (-want +got):\n%s", d)
	}
}

// What a call names, in whatever way, is stronger than what the server was started with.
func TestMCPCallIsStrongerThanTheServer(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	s.configure("\n[profiles.careful]\nmodel = \"small\"\nsandbox_mode = \"read-only\"\napproval_policy = \"untrusted\"\n")
	bypass := s.connect("--dangerously-bypass-approvals-and-sandbox", "-m", "by-flag", "-c", `model_providers.other={base_url="http://localhost:1/v1",wire_api="chat"}`)
	demo := s.connect("--demo")
	type settings struct{ Model, Provider, Approval, Sandbox string }
	for i, x := range []struct {
		c    *mcpClient
		wish string
		want settings
	}{
		{bypass, `{}`, settings{"by-flag", "mock_provider", "never", "danger-full-access"}},
		{bypass, `{"config":{"sandbox_mode":"read-only"}}`, settings{"by-flag", "mock_provider", "never", "read-only"}},
		{bypass, `{"config":{"approval_policy":"untrusted","model":"by-config"}}`, settings{"by-config", "mock_provider", "untrusted", "danger-full-access"}},
		{bypass, `{"config":{"sandbox_mode":"read-only"},"sandbox":"workspace-write"}`, settings{"by-flag", "mock_provider", "never", "workspace-write"}},
		{bypass, `{"profile":"careful"}`, settings{"small", "mock_provider", "untrusted", "read-only"}},
		{bypass, `{"profile":"careful","model":"by-name"}`, settings{"by-name", "mock_provider", "untrusted", "read-only"}},
		{bypass, `{"config":{"model_provider":"other"}}`, settings{"by-flag", "other", "never", "danger-full-access"}},
		{demo, `{"model":"m","config":{"model_provider":"mock_provider"}}`, settings{"m", "mock_provider", "never", "danger-full-access"}},
	} {
		x.c.send(`{"id":%d,"method":"newConversation","params":%s}`, i, x.wish)
		id, _ := made(t, x.c.answer(float64(i)))
		var got struct {
			Body struct {
				Settings struct {
					Model, Provider, Approval string
					Sandbox                   struct{ Mode string }
				}
			}
		}
		first, _, _ := strings.Cut(s.must("show", "--json", id), "\n")
		if err := json.Unmarshal([]byte(first), &got); err != nil {
			t.Fatalf("%v: %s", err, first)
		}
		b := got.Body.Settings
		if d := cmp.Diff(x.want, settings{b.Model, b.Provider, b.Approval, b.Sandbox.Mode}); d != "" {
			t.Errorf("%s (-want +got):\n%s", x.wish, d)
		}
	}
}

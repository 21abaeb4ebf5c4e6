package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fermata-agent/fermata/internal/tool/mcp/oauthtest"
)

// A service that wants a login is used after fermata mcp login, and its token is nowhere but where keys are.
func TestLoginToAnMCPServer(t *testing.T) {
	t.Parallel()
	service := oauthtest.New(t, func() *mcpsdk.Server {
		s := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "tickets", Version: "1"}, nil)
		type in struct {
			Text string `json:"text"`
		}
		mcpsdk.AddTool(s, &mcpsdk.Tool{Name: "echo", Annotations: &mcpsdk.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, _ *mcpsdk.CallToolRequest, a in) (*mcpsdk.CallToolResult, any, error) {
			return &mcpsdk.CallToolResult{Content: []mcpsdk.Content{&mcpsdk.TextContent{Text: "you said " + a.Text}}}, nil, nil
		})
		return s
	})
	pl := newPlace(t)
	pl.must("mcp", "add", "tickets", "--url", service.URL)
	_, errs, code := pl.run("exec", "--demo", "hello")
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	contains(t, "warning", errs, "MCP server tickets is not available: it wants to know who you are: run fermata mcp login tickets")
	out, _, _ := pl.run("doctor")
	contains(t, "doctor", out, "tickets: failed: it wants to know who you are: run fermata mcp login tickets")

	pr := pl.start("mcp", "login", "tickets", "--no-browser")
	address := regexp.MustCompile(`(?m)^http\S+$`)
	awaitTrue(t, "the address", func() bool { return address.MatchString(pr.err.String()) })
	if status, page, err := oauthtest.Browse(address.FindString(pr.err.String())); status != http.StatusOK || err != nil {
		t.Fatalf("%d %s, %v", status, page, err)
	}
	if code := pr.code(); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, pr.err.String())
	}
	contains(t, "list", pl.must("mcp", "list"), "logged in")
	contains(t, "get", pl.must("mcp", "get", "tickets"), "logged in")
	contains(t, "test", pl.must("mcp", "test", "tickets"), "1 tool, logged in")
	id := pl.converse("exec", "--demo", `plan: call: tickets__echo {"text":"hello"}; run: env; cat ../home/fermata/keys/mcp/*`)
	contains(t, "the answer", pl.must("show", id), "you said hello")
	home := filepath.Join(pl.dir, "home", "fermata")
	_ = filepath.WalkDir(filepath.Join(home, "conversations"), func(path string, d os.DirEntry, _ error) error {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), "access-") {
			t.Errorf("%s has the token", path)
		}
		return nil
	})

	saved, err := filepath.Glob(filepath.Join(home, "keys", "mcp", "mcp_tickets_*"))
	if err != nil || len(saved) == 0 { // the next one is its lock
		t.Fatalf("saved: %q, %v", saved, err)
	}
	login, err := os.ReadFile(saved[0])
	if err != nil {
		t.Fatal(err)
	}
	pl.must("mcp", "logout", "tickets")
	if _, errs, code := pl.run("mcp", "logout", "tickets"); code != exitFailed {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if err := os.WriteFile(saved[0], login, 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, "get", pl.must("mcp", "get", "tickets"), " logged in")
	pl.must("mcp", "add", "tickets", "--replace", "--url", "http://127.0.0.1:1/other")
	if _, err := os.Stat(saved[0]); err == nil {
		t.Error("the login to the address of before is kept, and nothing deletes it")
	}
	pl.must("mcp", "remove", "tickets")
}

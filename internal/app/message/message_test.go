package message_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// newDocs starts an MCP server with resources and a prompt.
func newDocs(t *testing.T) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "docs", Version: "1"}, nil)
	s.AddResource(&sdk.Resource{URI: "doc://a.b", Name: "first"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: "secret of the docs"}}}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "Ask", Arguments: []*sdk.PromptArgument{{Name: "what", Required: true}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Ask about " + r.Params.Arguments["what"]}}}}, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return web.URL
}

func TestExpand(t *testing.T) {
	home := t.TempDir()
	t.Setenv("FERMATA_HOME", home)
	text := "[mcp_servers.docs]\nstartup_timeout_sec = 300\nurl = \"" + newDocs(t) + "\"\n"
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, "prompts"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "prompts", "hi.md"), []byte("Say hi to $1"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := app.Open(t.Context(), app.Options{Flags: config.Flags{Demo: true}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	a := opened.Messages()
	const attached = "<attached resource=\"@docs:doc://a.b\">\n[resource doc://a.b]\nsecret of the docs\n</attached>"
	for in, want := range map[string]string{
		"plain":                   "plain",
		"/hi Ann":                 "Say hi to Ann",
		"/docs.ask \"two words\"": "Ask about two words",
		"/DOCS.Ask what=it":       "Ask about it",
		"/docs.ask":               "error: /docs.Ask needs the argument what: /docs.Ask WHAT",
		"/docs.none":              "error: the MCP server docs has no prompt none",
		"/nobody.knows this":      "/nobody.knows this",
		"/etc/hosts is a file":    "/etc/hosts is a file",
		"/nothing here":           "/nothing here",
		"/prompts:hi Ann":         "Say hi to Ann",
		"see @docs:doc://a.b":     "see @docs:doc://a.b | " + attached,
		"is it (@docs:doc://a.b), or @docs:doc://a.b?": "is it (@docs:doc://a.b), or @docs:doc://a.b? | " + attached,
		"see @docs:doc://none":                         "error: read @docs:doc://none: MCP server docs: ",
		"mail me@docs:x or @other:doc://a.b":           "mail me@docs:x or @other:doc://a.b",
	} {
		content, err := a.Expand(t.Context(), p.Text(in))
		var parts []string
		for i, c := range content {
			parts = append(parts, c.Text)
			if (c.Attached != "") != (i > 0) {
				t.Errorf("%q: %+v", in, c)
			}
		}
		got := strings.Join(parts, " | ")
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want && !(strings.HasSuffix(want, ": ") && strings.HasPrefix(got, want)) {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
		if err == nil && len(content) > 1 && p.Written(content) != in {
			t.Errorf("%q: written %q", in, p.Written(content))
		}
	}
	if got := strings.Join(a.FindResources("FIRST"), " "); got != "@docs:doc://a.b" || len(a.FindResources("zzz")) != 0 || len(a.Prompts()) != 1 {
		t.Errorf("proposed: %s, %v", got, a.Prompts())
	}
}

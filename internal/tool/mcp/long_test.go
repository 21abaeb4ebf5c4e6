package mcp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/tool/mcp/message"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A long result is answered with its beginning, and its server can be called again.
func TestLongResultsOfServers(t *testing.T) {
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return newTestServer() }, nil)
	plain := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return newTestServer() }, &sdk.StreamableHTTPOptions{JSONResponse: true})
	servers := map[string]config.MCPServer{"process": self(t, "plain")}
	for name, h := range map[string]http.Handler{"events": handler, "json": plain} {
		service := httptest.NewServer(h)
		t.Cleanup(service.CloseClientConnections) // before Close, which waits for them
		t.Cleanup(service.Close)
		servers[name] = config.MCPServer{URL: service.URL, StartupTimeout: defaultStartup * 30}
	}
	r := open(t, servers)
	for _, s := range r.list {
		s.bounds = message.Bounds{Keep: 64 << 10, Longest: 8 << 20}
	}
	r.start(t)
	for name := range servers {
		for kind, want := range map[string]struct {
			text   string
			failed bool
		}{
			"": {"bytes were left out here", false}, "image": {"[image: image/png, without data]", false}, "items": {"9\n", false},
			"members": {message.ErrParts.Error(), true},
		} {
			out := r.call(t.Context(), t, name+"__big", fmt.Sprintf(`{"Bytes":1000000,"Kind":%q}`, kind)).Output
			if out.Failed != want.failed || !strings.Contains(out.Output, want.text) || len(out.Content) > 0 || len(out.MCP.Result) > 256<<10 {
				t.Errorf("%s, %q: failed %v, %d images, %d bytes are recorded: %.300s", name, kind, out.Failed, len(out.Content), len(out.MCP.Result), out.Output)
			}
			if !want.failed && (out.MCP.Omitted < 500_000 || !strings.Contains(out.Output, fmt.Sprintf("[The result is too long: %d bytes of it were left out and are not recorded.]", out.MCP.Omitted))) {
				t.Errorf("%s, %q: %d bytes were left out: %.300s", name, kind, out.MCP.Omitted, out.Output)
			}
		}
		if out := r.call(t.Context(), t, name+"__echo", `{"text":"again"}`).Output; out.Output != "again" {
			t.Errorf("%s: afterwards %+v", name, out)
		}
	}
	if n := strings.Count(r.noted(), "started"); n != 1 {
		t.Errorf("the process was started %d times", n)
	}
}

// A server whose message does not end is ended, with an error that says so, and started again for the next call.
func TestAMessageWithoutAnEnd(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.list[0].bounds = message.Bounds{Keep: 64 << 10, Longest: 1 << 20}
	r.start(t)
	out := r.call(t.Context(), t, "s__big", `{"Bytes":65536,"Kind":"endless"}`).Output
	if !out.Failed || !strings.Contains(out.Output, message.ErrTooLong.Error()) {
		t.Errorf("%+v", out)
	}
	if out := r.call(t.Context(), t, "s__echo", `{"text":"again"}`).Output; out.Output != "again" {
		t.Errorf("afterwards %+v", out)
	}
}

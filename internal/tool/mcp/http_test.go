package mcp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/tool"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestAServerOverHTTP(t *testing.T) {
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return newTestServer() }, nil)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer yes" || r.Header.Get("X-Team") != "blue" || r.Header.Get("X-Env") != "yes" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(service.CloseClientConnections) // before Close, which waits for them
	t.Cleanup(service.Close)
	good := config.MCPServer{
		URL: service.URL, BearerTokenEnvVar: "PASSED", StartupTimeout: defaultStartup * 30,
		HTTPHeaders: map[string]config.Secret{"X-Team": config.NewSecret("blue")}, EnvHTTPHeaders: map[string]string{"X-Env": "PASSED"},
	}
	wrong, unset := good, good
	wrong.BearerTokenEnvVar, unset.BearerTokenEnvVar = "SECRET", "NOT_SET"
	r := open(t, map[string]config.MCPServer{"good": good, "unset": unset, "wrong": wrong})
	warnings := r.start(t)
	if len(warnings) != 2 || !strings.Contains(warnings[0], "the environment variable NOT_SET") || !strings.Contains(warnings[1], "Unauthorized") {
		t.Errorf("warnings %q", warnings)
	}
	if strings.Contains(strings.Join(warnings, ""), "leaked") {
		t.Error("a warning shows the token")
	}
	if res := r.call(t.Context(), t, "good__echo", `{"text":"over HTTP"}`); res.Output.Output != "over HTTP" {
		t.Errorf("%+v", res.Output)
	}
	if testing.Short() || !longtest.On() { // 10 MB take long; TestALongResultIsShortenedAndRecordedWhole has them over a pipe
		return
	}
	if whole, _ := tool.MCPContent(r.call(t.Context(), t, "good__big", `{"Bytes":10485760}`).Output.MCP.Result); len(whole) != 10<<20 {
		t.Errorf("%d bytes of a long result were recorded", len(whole))
	}
}

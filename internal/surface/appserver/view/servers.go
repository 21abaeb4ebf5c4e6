package view

import (
	"strings"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
)

// serverStates are the states of an MCP server as clients know them.
var serverStates = map[string]string{
	app.MCPNotStarted: "notStarted", app.MCPStarting: "starting", app.MCPRunning: "connected", app.MCPFailed: "failed",
}

// Server is what is known of an MCP server.
func Server(s app.MCPStatus) wire.ServerStatus {
	out := wire.ServerStatus{
		Name: s.Name, Tools: map[string]wire.ServerTool{}, ToolsError: text(s.Error), Resources: []wire.None{}, ResourceTemplates: []wire.None{},
		AuthStatus: "unsupported", RuntimeStatus: serverStates[s.State], HTTPOrigin: text(s.Address),
	}
	switch {
	case s.Token:
		out.AuthStatus = "bearerToken"
	case s.Login != "":
		out.AuthStatus = "oAuth"
	}
	if s.Program != "" {
		name, version := s.Program, ""
		if i := strings.LastIndexByte(name, ' '); i > 0 {
			name, version = name[:i], name[i+1:]
		}
		out.ServerInfo = &wire.ServerInfo{Name: name, Version: version}
	}
	for _, t := range s.Tools {
		tool := wire.ServerTool{Name: t.Name, Description: t.Description, InputSchema: t.Parameters}
		if t.ReadOnly {
			tool.Annotations = &wire.ToolHints{ReadOnly: true}
		}
		out.Tools[t.Name] = tool
	}
	return out
}

// text is a text that is null when it is empty.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

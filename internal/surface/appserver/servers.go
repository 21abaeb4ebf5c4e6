package appserver

import (
	"cmp"
	"context"
	"strings"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
)

// serverStates are the states of an MCP server as clients know them.
var serverStates = map[string]string{
	app.MCPNotStarted: "notStarted", app.MCPStarting: "starting", app.MCPRunning: "connected", app.MCPFailed: "failed",
}

// serverStatusList lists the MCP servers. It starts none: the tools of one that has not been
// started are those of the last time, if there was one.
func (c *conn) serverStatusList(_ context.Context, _ *jsonrpc.Request, in wire.ServerStatusList) (wire.ServerStatuses, error) {
	all := []wire.ServerStatus{}
	for _, s := range c.s.o.Local.MCPStatus() {
		if in.ServerName == "" || in.ServerName == s.Name {
			all = append(all, serverStatus(s))
		}
	}
	data, next, err := page(all, in.Cursor, cmp.Or(in.Limit, len(all)), "asc")
	return wire.ServerStatuses{Data: data, NextCursor: next}, err
}

func serverStatus(s app.MCPStatus) wire.ServerStatus {
	out := wire.ServerStatus{
		Name: s.Name, Tools: map[string]wire.ServerTool{}, ToolsError: orNull(s.Error), Resources: []wire.None{}, ResourceTemplates: []wire.None{},
		AuthStatus: "unsupported", RuntimeStatus: serverStates[s.State], HTTPOrigin: orNull(s.Address),
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

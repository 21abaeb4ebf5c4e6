package app

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/fermata-agent/fermata/internal/app/clienttools"
	"github.com/fermata-agent/fermata/internal/app/limits"
	"github.com/fermata-agent/fermata/internal/app/message"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/app/servers"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
	"github.com/fermata-agent/fermata/internal/tool/openfile"
)

// MCPStatus is the state of an MCP server, for people.
type MCPStatus = mcp.Status

// MCPToolStatus is a tool of one.
type MCPToolStatus = mcp.ToolStatus

// The states of an MCP server.
const (
	MCPNotStarted = mcp.NotStarted
	MCPStarting   = mcp.Starting
	MCPRunning    = mcp.Running
	MCPFailed     = mcp.Failed
)

// MCPServers are the servers that may be used here: of the configuration, and of the project if
// the person trusts them.
func (l Loaded) MCPServers() (map[string]config.MCPServer, []config.Warning, error) {
	allowed, err := limits.New(limits.File, limits.Options{}, l.Config)
	if err != nil {
		return nil, nil, err
	}
	defs, warnings := l.mcpServers(allowed)
	return defs, warnings, nil
}

func (l Loaded) mcpServers(allowed limits.Limiter) (map[string]config.MCPServer, []config.Warning) {
	named, warnings := l.ProjectMCPServers()
	defs, untrusted := servers.Add(l.Config.MCPServers, named)
	defs, refused := allowed.Servers.Allow(defs)
	return defs, append(append(warnings, untrusted...), refused...)
}

// ProjectMCPServers are the servers that the files of the project name, trusted or not.
func (l Loaded) ProjectMCPServers() ([]servers.Named, []config.Warning) {
	return servers.OfProject(project.Dir(l.Options.Cwd), l.Config, l.Options.Env)
}

// openServers opens the servers. Nothing is started yet.
func (l Loaded) openServers(ctx context.Context, defs map[string]config.MCPServer, spawner *proc.Spawner, allowed limits.Limiter) *mcp.Servers {
	return mcp.Open(ctx, defs, mcp.Options{
		Spawner: spawner, Dir: l.Options.Cwd, Getenv: l.Options.Env, Version: l.version,
		Cache: filepath.Join(l.Config.Home, "cache", "mcp"), NoEscalation: allowed.NoEscalation, Logins: l.Logins,
	})
}

// OpenClientTools prepares what a client brings to its conversation in a directory, as far as that is allowed. The caller closes it.
func (a *App) OpenClientTools(dir string, defs map[string]config.MCPServer, open openfile.Buffers) (*clienttools.Set, []config.Warning) {
	defs, warnings := a.limits.AllowServers(defs)
	own := a.shared.own.Loaded
	own.Options.Cwd = a.place(dir)
	return clienttools.New(defs, open, func() *mcp.Servers { return own.openServers(a.base, defs, a.spawner, a.limits) }), warnings
}

// CheckMCPServers starts some servers, side by side, and returns how that went. They
// have ended when it returns.
func (l Loaded) CheckMCPServers(ctx context.Context, defs map[string]config.MCPServer) ([]MCPStatus, error) {
	spawner, err := proc.NewSpawner()
	if err != nil {
		return nil, fmt.Errorf("prepare for starting MCP servers: %w", err)
	}
	defer spawner.Close()
	all := l.openServers(ctx, defs, spawner, limits.Limiter{})
	defer all.Close()
	return all.Check(ctx, l.Projects.ToolApproval), ctx.Err()
}

// MCPStatus returns the state of the MCP servers of this process, in the order of
// their names.
func (a *App) MCPStatus() []MCPStatus {
	if a.servers == nil {
		return nil
	}
	return a.servers.Status(a.Projects.ToolApproval)
}

// Messages makes messages of what people write.
func (a *App) Messages() message.Source {
	return message.Source{Servers: a.servers, Home: a.Config.Home, Dir: a.Cwd}
}

package app

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
	p "github.com/fermata-agent/fermata/protocol"
)

// MCPStatus is the state of an MCP server, for people.
type MCPStatus = mcp.Status

// A serverIdentity is an MCP server that the administrator of a machine allows. The
// arguments matter only if they are given.
type serverIdentity struct {
	Command string   `toml:"command"`
	Args    []string `toml:"args"`
	URL     string   `toml:"url"`
}

func (i serverIdentity) is(def config.MCPServer) bool {
	return i.Command == def.Command && i.URL == def.URL && (i.Args == nil || slices.Equal(i.Args, def.Args))
}

// MCPServers are the servers that the configuration names and that may be used here.
func (l Loaded) MCPServers() (map[string]config.MCPServer, []config.Warning, error) {
	limits, err := newLimiter(RequirementsFile, LimitOptions{}, l.Config)
	if err != nil {
		return nil, nil, err
	}
	defs, warnings := limits.allowServers(l.Config.MCPServers)
	return defs, warnings, nil
}

// allowServers leaves out the servers that are not allowed here.
func (l limiter) allowServers(defs map[string]config.MCPServer) (map[string]config.MCPServer, []config.Warning) {
	if l.servers == nil {
		return defs, nil
	}
	allowed := map[string]config.MCPServer{}
	var warnings []config.Warning
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		def := defs[name]
		if identity, ok := l.servers[name]; ok && identity.Identity.is(def) {
			allowed[name] = def
		} else if def.Enabled == nil || *def.Enabled {
			warnings = append(warnings, config.Warning{Problem: config.Problem{
				Text: fmt.Sprintf("the MCP server %s is not used: %s does not allow it", name, RequirementsFile),
			}})
		}
	}
	return allowed, warnings
}

// openServers opens the servers. Nothing is started yet.
func (l Loaded) openServers(ctx context.Context, defs map[string]config.MCPServer, spawner *proc.Spawner, limits limiter) *mcp.Servers {
	return mcp.Open(ctx, defs, mcp.Options{
		Spawner: spawner, Dir: l.Options.Cwd, Getenv: os.Getenv, Version: l.version,
		Cache: filepath.Join(l.Config.Home, "cache", "mcp"), NoEscalation: limits.NoEscalation,
	})
}

// CheckMCPServers starts some servers, side by side, and returns how that went. They
// have ended when it returns.
func (l Loaded) CheckMCPServers(ctx context.Context, defs map[string]config.MCPServer) ([]MCPStatus, error) {
	spawner, err := proc.NewSpawner()
	if err != nil {
		return nil, fmt.Errorf("prepare for starting MCP servers: %w", err)
	}
	defer spawner.Close()
	servers := l.openServers(ctx, defs, spawner, limiter{})
	defer servers.Close()
	return servers.Check(ctx), ctx.Err()
}

// MCPStatus returns the state of the MCP servers of this process, in the order of
// their names.
func (a *App) MCPStatus() []MCPStatus {
	if a.servers == nil {
		return nil
	}
	return a.servers.Status()
}

// AllowMCPTool lets a tool of an MCP server be called without asking, from now on and in
// later runs: the configuration says so.
func (a *App) AllowMCPTool(t p.MCPTool) error {
	if a.servers == nil || !a.servers.Has(t) {
		return fmt.Errorf("there is no tool %s of an MCP server %s", t.Name, t.Server)
	}
	edit := ConfigEdit{Path: []string{"mcp_servers", t.Server, "tools", t.Name, "approval"}, Value: string(config.MCPAllow)}
	if err := EditConfig(a.Config.Home, edit); err != nil {
		return err
	}
	a.servers.Allow(t)
	return nil
}

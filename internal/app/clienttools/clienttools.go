// Package clienttools holds what a client brings to one conversation alone: MCP servers that it names, and the files that a user has open in
// an editor. It belongs to the turns that the client starts or continues, and ends with the client's session.
package clienttools

import (
	"context"
	"maps"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
	"github.com/fermata-agent/fermata/internal/tool/openfile"
)

// A Set is what a client brings. All methods may be called on a nil one, which brings nothing.
type Set struct {
	Servers *mcp.Servers // nil if it brings none
	Defs    map[string]config.MCPServer
	Buffers openfile.Buffers // nil if it has none
}

// New makes a set. If there are servers, start opens them.
func New(defs map[string]config.MCPServer, open openfile.Buffers, start func() *mcp.Servers) *Set {
	s := &Set{Defs: defs, Buffers: open}
	if len(defs) > 0 {
		s.Servers = start()
	}
	return s
}

// Definitions are those of its servers and of others.
func (s *Set) Definitions(others map[string]config.MCPServer) map[string]config.MCPServer {
	if !s.HasServers() {
		return others
	}
	all := maps.Clone(s.Defs)
	maps.Copy(all, others)
	return all
}

// Close ends the servers, and waits until nothing of them runs any more.
func (s *Set) Close() {
	if s != nil && s.Servers != nil {
		s.Servers.Close()
	}
}

// HasServers reports whether it brings servers.
func (s *Set) HasServers() bool { return s != nil && s.Servers != nil }

// OpenFiles are the files that the user has open; nil if that is not known.
func (s *Set) OpenFiles() openfile.Buffers {
	if s == nil {
		return nil
	}
	return s.Buffers
}

// Tools are those of the client's servers and of others, which may be nil. Of two with the same name the client's counts.
func (s *Set) Tools(others *mcp.Servers, dir string, now mcp.Approvals) []tool.Tool {
	var list []tool.Tool
	seen := map[string]bool{}
	for _, servers := range s.with(others) {
		for _, t := range append(servers.Tools(dir, now), servers.ResourceTools(dir, now)...) {
			if name := t.Spec().Name; !seen[name] {
				seen[name] = true
				list = append(list, t)
			}
		}
	}
	return list
}

// with lists the servers that there are, those of the client first.
func (s *Set) with(others *mcp.Servers) (list []*mcp.Servers) {
	if s.HasServers() {
		list = append(list, s.Servers)
	}
	if others != nil {
		list = append(list, others)
	}
	return list
}

// Await returns what waits for the tools of all servers, nil if they are known.
func (s *Set) Await(others *mcp.Servers, dir string) func(context.Context) ([]string, error) {
	var waits []func(context.Context) ([]string, error)
	for _, servers := range s.with(others) {
		if wait := servers.Await(dir); wait != nil {
			waits = append(waits, wait)
		}
	}
	if len(waits) == 0 {
		return nil
	}
	return func(ctx context.Context) (warnings []string, err error) {
		for _, wait := range waits {
			more, err := wait(ctx)
			if warnings = append(warnings, more...); err != nil {
				return warnings, err
			}
		}
		return warnings, nil
	}
}

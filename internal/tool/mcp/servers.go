// Package mcp lets a model call the tools of MCP servers. [Open] takes their
// definitions; [Servers.Tools] gives the tools that are known, and never blocks;
// [Servers.Await] waits for servers whose tools are not known yet.
//
// There is one process, or one connection, for each server and program; all
// conversations share it. A server is started when a turn first needs its list of tools,
// which is kept for later, or else with its first call, and again when it has ended and is
// needed again. Its processes are supervised as those of
// commands are, and end with us, whatever happens.
//
// One goroutine owns each server (server.run); everybody else sends it messages.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/protocol"
)

// Options are what servers are started with.
type Options struct {
	Spawner *proc.Spawner
	Dir     string                   // where servers are started that name no directory
	Getenv  func(name string) string // for what definitions take from the environment
	Version string                   // of this program
	Cache   string                   // a directory for lists of tools; empty keeps none
	Logins  Logins                   // to services; nil if there are none

	// NoEscalation says that nothing may leave the sandbox, approved or not: only tools that
	// the configuration allows, or that are read-only, may be called.
	NoEscalation bool
}

const (
	defaultStartup = 10 * time.Second
	defaultCall    = 60 * time.Second
)

// Servers are the MCP servers of a program. The methods may be called from any goroutine.
type Servers struct {
	list   []*server // in the order of their names
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// Open returns the servers that are enabled. Nothing is started before it is needed.
// The caller calls Close.
func Open(ctx context.Context, defs map[string]config.MCPServer, o Options) *Servers {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	all := &Servers{cancel: cancel}
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		def := defs[name]
		if def.Enabled != nil && !*def.Enabled {
			continue
		}
		def.StartupTimeout = cmp.Or(def.StartupTimeout, defaultStartup)
		def.ToolTimeout = cmp.Or(def.ToolTimeout, defaultCall)
		s := newServer(name, def, o)
		all.list = append(all.list, s)
		all.wait.Go(func() { s.run(ctx) }) // ended by cancel, waited for by Close
	}
	return all
}

// Close ends all servers, and waits until nothing of them runs any more.
func (all *Servers) Close() {
	all.cancel()
	all.wait.Wait()
}

// Approvals is what the configuration says about a tool now, empty if nothing. The project is the
// one whose file defines the server, empty for the person's own servers. Nil says what the definitions said.
type Approvals func(project string, t protocol.MCPTool) config.MCPApproval

// Tools returns the tools that are known, in the order of their names, for a conversation in a
// directory: the servers of a project are for its own conversations. It never blocks.
func (all *Servers) Tools(dir string, now Approvals) []tool.Tool {
	var list []tool.Tool
	seen := map[string]bool{}
	for _, s := range all.list {
		if !s.serves(dir) {
			continue
		}
		for _, t := range s.tools() {
			if !seen[t.name] {
				seen[t.name] = true
				list = append(list, t.with(now))
			}
		}
	}
	slices.SortStableFunc(list, func(a, b tool.Tool) int { return cmp.Compare(a.(*Tool).name, b.(*Tool).name) })
	return list
}

// serves reports whether the server is for conversations in a directory.
func (s *server) serves(dir string) bool {
	root := s.def.Project
	return root == "" || dir == root || strings.HasPrefix(dir, strings.TrimSuffix(root, "/")+"/")
}

// Await starts the servers whose tools are not known and those that are required, side
// by side, and returns a function that waits for them, or nil if there is nothing to wait
// for. That function returns what people should know of servers that did not start, and an
// error if one of them is required. A server that has failed before is not waited for
// again, unless it is required; one whose list is old is started and not waited for.
func (all *Servers) Await(dir string) func(ctx context.Context) (warnings []string, err error) {
	var missing []*server
	for _, s := range all.list {
		if !s.serves(dir) {
			continue
		}
		switch st := s.state.Load(); {
		case s.def.Required && !st.started:
			missing = append(missing, s)
		case st.tools != nil && st.old:
			s.nudge()
		case st.tools != nil:
		case st.err != nil && !s.def.Required:
			s.nudge()
		default:
			missing = append(missing, s)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return func(ctx context.Context) ([]string, error) { return awaitAll(ctx, missing) }
}

func awaitAll(ctx context.Context, list []*server) (warnings []string, err error) {
	errs := make([]error, len(list))
	var wait sync.WaitGroup
	for i, s := range list {
		wait.Go(func() { _, errs[i] = s.session(ctx) }) // ended by ctx and by the time limit of the start
	}
	wait.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var fatal []error
	for i, s := range list {
		switch {
		case errs[i] == nil:
		case s.def.Required:
			fatal = append(fatal, fmt.Errorf("MCP server %s is required: %w", s.name, errs[i]))
		default:
			warnings = append(warnings, fmt.Sprintf("MCP server %s is not available: %v", s.name, errs[i]))
		}
	}
	return warnings, errors.Join(fatal...)
}

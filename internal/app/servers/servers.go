// Package servers says which MCP servers are used: those of the configuration and those of
// the project that the person trusts, as far as the administrator of the machine allows.
package servers

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/fermata-agent/fermata/internal/config"
)

// An Identity is an MCP server that the administrator of a machine allows. The arguments
// matter only if they are given.
type Identity struct {
	Command string   `toml:"command"`
	Args    []string `toml:"args"`
	URL     string   `toml:"url"`
}

// Check reports what is wrong with an identity.
func (i Identity) Check() error {
	if (i.Command == "") == (i.URL == "") {
		return fmt.Errorf("needs either a command or a url")
	}
	return nil
}

func (i Identity) is(def config.MCPServer) bool {
	return i.Command == def.Command && i.URL == def.URL && (i.Args == nil || slices.Equal(i.Args, def.Args))
}

// A Requirement says which MCP server may have a name.
type Requirement struct {
	Identity Identity `toml:"identity"`
}

// Limits are the MCP servers that are allowed, by name; nil allows all.
type Limits struct {
	Servers map[string]Requirement
	From    string // the file that says so
}

// Allow leaves out the servers that are not allowed.
func (l Limits) Allow(defs map[string]config.MCPServer) (map[string]config.MCPServer, []config.Warning) {
	if l.Servers == nil {
		return defs, nil
	}
	allowed := map[string]config.MCPServer{}
	var warnings []config.Warning
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		def := defs[name]
		if r, ok := l.Servers[name]; ok && r.Identity.is(def) {
			allowed[name] = def
		} else if def.Enabled == nil || *def.Enabled {
			warnings = append(warnings, warning("the MCP server %s is not used: %s does not allow it", name, l.From))
		}
	}
	return allowed, warnings
}

func warning(format string, args ...any) config.Warning {
	return config.Warning{Problem: config.Problem{Text: fmt.Sprintf(format, args...)}}
}

// File is the configuration file of a home.
func File(cfg *config.Config) string { return filepath.Join(cfg.Home, config.FileName) }

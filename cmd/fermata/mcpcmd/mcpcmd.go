// Package mcpcmd holds the commands that manage the MCP servers whose tools fermata
// calls: fermata mcp add, get, list, login, logout, remove, test and trust. They are here so that package main
// stays small; what they do is in package app.
package mcpcmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/servers"
	"github.com/fermata-agent/fermata/internal/config"
)

// Options are what the commands need of package main.
type Options struct {
	In       io.Reader // what the person types
	Out, Err io.Writer // answers, and everything else
	// Load adds the flags that choose a configuration, and returns what reads it.
	Load func(*pflag.FlagSet) func() (app.Loaded, error)
}

// Commands are the commands below fermata mcp.
func Commands(o Options) []*cobra.Command {
	return []*cobra.Command{listCommand(o), addCommand(o), getCommand(o), removeCommand(o), testCommand(o), trustCommand(o), loginCommand(o), logoutCommand(o)}
}

// usage returns an error of the command line.
func usage(format string, args ...any) error {
	return &app.Error{Err: fmt.Errorf(format, args...), Usage: true}
}

// between checks how many arguments there are.
func between(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		if len(a) < low || len(a) > high {
			return usage("%s: wrong number of arguments: %d; usage: %s", cmd.Name(), len(a), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		}
		return nil
	}
}

// A command reads the configuration first.
type command struct {
	Options
	load func() (app.Loaded, error)
}

func (o Options) command(cmd *cobra.Command) *command {
	c := &command{Options: o, load: o.Load(cmd.Flags())}
	cmd.ValidArgsFunction = func(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		l, err := c.load()
		if err != nil || len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Sorted(maps.Keys(l.Config.MCPServers)), cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// read reads the configuration and reports its warnings.
func (c *command) read() (app.Loaded, error) {
	l, err := c.load()
	for _, w := range l.Warnings {
		fmt.Fprintf(c.Err, "fermata: %s: %v\n", w.Level(), w)
	}
	return l, err
}

// find returns a server of the configuration.
func find(l app.Loaded, name string) (config.MCPServer, error) {
	def, ok := l.Config.MCPServers[name]
	if ok {
		return def, nil
	}
	hint := "see fermata mcp add --help"
	named, _ := l.ProjectMCPServers()
	if slices.ContainsFunc(named, func(n servers.Named) bool { return n.Name == name }) {
		return def, &app.Error{Err: fmt.Errorf("the MCP server %s is not in the configuration: a file of this project names it", name), Hint: "fermata mcp trust shows it", Usage: true}
	}
	if known := slices.Sorted(maps.Keys(l.Config.MCPServers)); len(known) > 0 {
		hint = "there are " + strings.Join(known, ", ")
	}
	return def, &app.Error{Err: fmt.Errorf("there is no MCP server %s", name), Hint: hint, Usage: true}
}

func enabled(def config.MCPServer) bool { return def.Enabled == nil || *def.Enabled }

package mcpcmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/servers"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
)

// A shown server is one as scripts see it. What may be a secret is masked.
type shown struct {
	Name      string         `json:"name"`
	Enabled   bool           `json:"enabled"`
	Transport string         `json:"transport"` // stdio or streamable_http
	Project   string         `json:"project,omitempty"`
	Login     string         `json:"login,omitempty"` // see package mcp
	Settings  map[string]any `json:"settings,omitempty"`
}

func show(l app.Loaded, name string) shown {
	def := l.Config.MCPServers[name]
	s := shown{Name: name, Enabled: enabled(def), Transport: transport(def), Login: loginState(l, name, def), Settings: map[string]any{}}
	for _, set := range settings(l, name) {
		s.Settings[set.Key] = set.Value
	}
	return s
}

func transport(def config.MCPServer) string {
	if def.URL != "" {
		return "streamable_http"
	}
	return "stdio"
}

// settings are the keys of a server that are set, without what they have in common.
func settings(l app.Loaded, name string) []config.Setting {
	var list []config.Setting
	for _, set := range l.Config.All() {
		if key, ok := strings.CutPrefix(set.Key, "mcp_servers."+name+"."); ok {
			set.Key = key
			list = append(list, set)
		}
	}
	return list
}

func listCommand(o Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the MCP servers of the configuration", Example: "  fermata mcp list\n  fermata mcp list --json",
		Args: between(0, 0),
	}
	c := o.command(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(*cobra.Command, []string) error {
		l, err := c.read()
		if err != nil {
			return err
		}
		list := []shown{}
		for _, name := range slices.Sorted(maps.Keys(l.Config.MCPServers)) {
			list = append(list, show(l, name))
		}
		named, _ := l.ProjectMCPServers()
		for _, n := range named {
			if _, own := l.Config.MCPServers[n.Name]; !own {
				list = append(list, shown{Name: n.Name, Enabled: n.Trusted, Transport: transport(n.Def), Login: loginState(l, n.Name, n.Def), Project: n.Def.Project})
			}
		}
		if asJSON {
			return c.printJSON(list)
		}
		if len(list) == 0 {
			fmt.Fprintln(c.Err, "There is no MCP server. See fermata mcp add --help.")
			return nil
		}
		return c.table(l, list, named)
	}
	return cmd
}

func (c *command) table(l app.Loaded, list []shown, named []servers.Named) error {
	w := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tAPPROVAL\tCOMMAND OR ADDRESS")
	for _, s := range list {
		def, state := l.Config.MCPServers[s.Name], "enabled"
		switch {
		case s.Project != "" && !s.Enabled:
			state = "not trusted"
		case !s.Enabled:
			state = "disabled"
		case s.Login == mcp.LoginSaved, s.Login == mcp.LoginExpired:
			state = s.Login
		}
		for _, n := range named {
			if s.Project != "" && n.Name == s.Name {
				def = n.Written
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, state, cmp.Or(string(def.Approval), "by tool"), target(def))
	}
	return w.Flush()
}

// target is what a server is, in one line.
func target(def config.MCPServer) string {
	if def.URL != "" {
		return word(config.RedactURL(def.URL))
	}
	words := []string{word(def.Command)}
	for _, a := range def.Args {
		words = append(words, word(a))
	}
	return strings.Join(words, " ")
}

// word is a word of a command line, in quotes if it could be taken for something else.
func word(s string) string {
	if s == "" || strings.ContainsAny(s, " \"'\\") || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

func getCommand(o Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "get NAME", Short: "Print the settings of an MCP server", Example: "  fermata mcp get docs", Args: between(1, 1),
	}
	c := o.command(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(_ *cobra.Command, a []string) error {
		l, err := c.read()
		if err != nil {
			return err
		}
		if _, err := find(l, a[0]); err != nil {
			return err
		}
		if asJSON {
			return c.printJSON(show(l, a[0]))
		}
		w := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
		for _, set := range settings(l, a[0]) {
			fmt.Fprintf(w, "%s\t%v\tfrom %s\n", set.Key, set.Value, set.Source)
		}
		if login := loginState(l, a[0], l.Config.MCPServers[a[0]]); login != "" {
			fmt.Fprintf(w, "login\t%s\t\n", login)
		}
		return w.Flush()
	}
	return cmd
}

func (c *command) printJSON(v any) error {
	enc := json.NewEncoder(c.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

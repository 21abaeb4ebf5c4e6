package mcpcmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
)

type addFlags struct {
	url, token, cwd, approval string
	env, envVars, headers     []string
	replace                   bool
}

func addCommand(o Options) *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:   "add NAME (-- COMMAND [ARG...] | --url URL)",
		Short: "Add an MCP server to the configuration",
		Long: "Add an MCP server to the configuration file: a program that fermata starts, or a service that it reaches over HTTP.\n" +
			"The rest of the file stays as it is. docs/config.md lists more settings.",
		Example: "  fermata mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/docs\n" +
			"  fermata mcp add tickets --url https://tickets.example.com/mcp --bearer-token-env-var TICKETS_TOKEN",
	}
	c := o.command(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.url, "url", "", "the address of a service, `URL`")
	fs.StringVar(&f.token, "bearer-token-env-var", "", "the environment `VARIABLE` with the token for it")
	fs.StringArrayVar(&f.headers, "header", nil, "send the service a header, as `NAME=VALUE`; may be repeated")
	fs.StringArrayVar(&f.env, "env", nil, "give the program a variable, as `NAME=VALUE`; may be repeated")
	fs.StringArrayVar(&f.envVars, "env-var", nil, "give the program this `VARIABLE` of fermata's environment; may be repeated")
	fs.StringVar(&f.cwd, "cwd", "", "start the program in `DIR`")
	fs.StringVar(&f.approval, "approval", "", "whether its tools may be called, `WORD`: allow, ask, deny")
	fs.BoolVar(&f.replace, "replace", false, "replace the server of that name")
	cmd.Args = func(_ *cobra.Command, a []string) error {
		if len(a) == 0 {
			return usage("add: the server needs a name")
		}
		return f.check(a[0], a[1:])
	}
	cmd.RunE = func(cmd *cobra.Command, a []string) error { return c.add(cmd.Context(), f, a[0], a[1:]) }
	return cmd
}

// check reports flags that do not go together.
func (f addFlags) check(name string, argv []string) error {
	switch {
	case !config.ServerNameOK(name):
		return usage("add: %q cannot be the name of a server: it has letters, digits, _ and - only", name)
	case len(argv) == 0 && f.url == "":
		return usage("add: it needs a command after --, or --url")
	case len(argv) > 0 && argv[0] == "":
		return usage("add: the command is empty")
	case len(argv) > 0 && f.url != "":
		return usage("add: a server has either a command or --url")
	case !slices.Contains([]string{"", string(config.MCPAllow), string(config.MCPAsk), string(config.MCPDeny)}, f.approval):
		return usage("add: --approval is allow, ask or deny, not %q", f.approval)
	case f.url == "" && (f.token != "" || f.headers != nil):
		return usage("add: --bearer-token-env-var and --header are for a server with --url")
	case f.url != "" && (f.env != nil || f.envVars != nil || f.cwd != ""):
		return usage("add: --env, --env-var and --cwd are for a server with a command")
	}
	for _, pair := range append(f.env, f.headers...) {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" {
			return usage("add: %q is not of the form NAME=VALUE", pair)
		}
	}
	return nil
}

func (c *command) add(ctx context.Context, f addFlags, name string, argv []string) error {
	l, err := c.read()
	if err != nil {
		return err
	}
	path := []string{"mcp_servers", name}
	old, exists := l.Config.MCPServers[name]
	if exists && !f.replace {
		return &app.Error{Err: fmt.Errorf("there is an MCP server %s already", name), Hint: "--replace replaces it, fermata mcp get " + name + " shows it"}
	}
	edits, err := f.edits(path, argv)
	if err != nil {
		return err
	}
	if err := app.EditConfig(l.Config.Home, edits...); err != nil {
		return err
	}
	if old.URL != f.url { // nothing else would find the login to it
		if _, err := mcp.Logout(ctx, name, old, l.Logins); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.Err, "Added the MCP server %s to %s. Try it: fermata mcp test %s\n", name, configFile(l), name)
	return nil
}

func configFile(l app.Loaded) string { return filepath.Join(l.Config.Home, config.FileName) }

// edits write the definition, in the order that people write it in. What was there before
// is replaced.
func (f addFlags) edits(path, argv []string) ([]app.ConfigEdit, error) {
	edits := []app.ConfigEdit{{Path: path}}
	set := func(given bool, key string, value any) {
		if given {
			edits = append(edits, app.ConfigEdit{Path: append(path[:len(path):len(path)], key), Value: value})
		}
	}
	dir := f.cwd
	if dir != "" {
		var err error
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
	}
	if len(argv) > 0 {
		set(true, "command", argv[0])
		set(len(argv) > 1, "args", argv[1:])
	}
	set(dir != "", "cwd", dir)
	set(f.envVars != nil, "env_vars", f.envVars)
	set(f.url != "", "url", f.url)
	set(f.token != "", "bearer_token_env_var", f.token)
	set(f.approval != "", "approval", f.approval)
	set(f.env != nil, "env", pairs(f.env))
	set(f.headers != nil, "http_headers", pairs(f.headers))
	return edits, nil
}

// pairs are NAME=VALUE as a table.
func pairs(list []string) map[string]any {
	m := map[string]any{}
	for _, pair := range list {
		name, value, _ := strings.Cut(pair, "=")
		m[name] = value
	}
	return m
}

func removeCommand(o Options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Remove an MCP server from the configuration", Example: "  fermata mcp remove docs", Args: between(1, 1),
	}
	c := o.command(cmd)
	cmd.RunE = func(cmd *cobra.Command, a []string) error {
		l, err := c.read()
		if err != nil {
			return err
		}
		def, err := find(l, a[0])
		if err != nil {
			return err
		}
		if _, err := mcp.Logout(cmd.Context(), a[0], def, l.Logins); err != nil {
			return err
		}
		if err := app.EditConfig(l.Config.Home, app.ConfigEdit{Path: []string{"mcp_servers", a[0]}}); err != nil {
			return err
		}
		fmt.Fprintf(c.Err, "Removed the MCP server %s from %s.\n", a[0], configFile(l))
		return nil
	}
	return cmd
}

package setupcmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/policy"
	p "github.com/fermata-agent/fermata/protocol"
)

func permissionsCommand(o Options) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "permissions",
		Short: "List what turns may do in this directory without asking",
		Long: "List whether the directory is trusted, the commands that run in it without asking and outside the sandbox, and the tools of MCP\n" +
			"servers that are called without asking. They are kept in the configuration file; rules/*.rules beside it, in the form that Codex uses, apply too.",
		Example: "  fermata permissions\n  fermata permissions allow go test\n  fermata permissions revoke go test\n  fermata permissions revoke --tool docs.write",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(*cobra.Command, []string) error { return listPermissions(o, dir) },
	}
	cmd.PersistentFlags().StringVarP(&dir, "cd", "C", "", "the permissions of `DIR`")
	change := func(use, short, example string, do func(app.Loaded, project.Permission) error) *cobra.Command {
		var tool bool
		c := &cobra.Command{
			Use: use + " (COMMAND… | --tool SERVER.TOOL)", Short: short, Example: example, DisableFlagsInUseLine: true,
			Args: cli.Args(cobra.MinimumNArgs(1)),
			RunE: func(_ *cobra.Command, a []string) error {
				l, err := o.Load(dir)
				if err != nil {
					return err
				}
				perm, err := permission(l, use, a, tool)
				if err != nil {
					return err
				}
				if err := do(l, perm); err != nil {
					return err
				}
				_, err = fmt.Fprintf(o.Err, "%s: `%s`%s\n", strings.TrimSuffix(use, "e")+"ed", perm, where(perm))
				return err
			},
		}
		c.Flags().BoolVar(&tool, "tool", false, "a tool of an MCP server, as SERVER.TOOL, rather than a command")
		c.Flags().SetInterspersed(false) // what follows are the command's own options
		return c
	}
	cmd.AddCommand(
		change("allow", "Let commands that start with these words, or a tool, run without asking", "  fermata permissions allow go test\n  fermata permissions allow \"make -n\"\n  fermata permissions allow --tool docs.search",
			func(l app.Loaded, perm project.Permission) error { return l.Projects.Allow(perm) }),
		change("revoke", "Revoke a permission", "  fermata permissions revoke go test\n  fermata permissions revoke --tool docs.write",
			func(l app.Loaded, perm project.Permission) error { return l.Projects.Revoke(perm) }))
	return cmd
}

func listPermissions(o Options, dir string) error {
	l, err := o.Load(dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", app.Tilde(project.Dir(l.Options.Cwd)), trustWord(l.Projects.Trust(l.Options.Cwd)))
	for _, perm := range l.Projects.Permissions(l.Options.Cwd) {
		if len(perm.Prefix) > 0 {
			fmt.Fprintf(&b, "  %s …  (%s)\n", perm, strings.TrimSpace(where(perm)))
		} else {
			fmt.Fprintf(&b, "  MCP tool %s%s\n", perm, where(perm))
		}
	}
	for _, rule := range l.Projects.FileRules() {
		fmt.Fprintf(&b, "  %s …  (%s, by rules/*.rules)\n", rule, rule.Decision)
	}
	_, err = io.WriteString(o.Out, b.String())
	return err
}

// where is where a permission holds, in words.
func where(perm project.Permission) string {
	if perm.Dir == "" {
		return ""
	}
	return " in " + app.Tilde(perm.Dir)
}

// permission is the one that arguments name.
func permission(l app.Loaded, use string, a []string, tool bool) (project.Permission, error) {
	if tool {
		return toolPermission(l, use, a)
	}
	words := a
	if len(a) == 1 {
		var ok bool
		if words, ok = policy.SplitWords(a[0]); !ok {
			return project.Permission{}, cli.Usagef("%s: %q is not the beginning of one command", use, a[0])
		}
	}
	return project.Permission{Dir: project.Dir(l.Options.Cwd), Prefix: words}, nil
}

func toolPermission(l app.Loaded, use string, a []string) (project.Permission, error) {
	server, name, ok := strings.Cut(a[0], ".")
	if !ok || name == "" || len(a) > 1 {
		return project.Permission{}, cli.Usagef("%s --tool: %q is not of the form SERVER.TOOL", use, strings.Join(a, " "))
	}
	if found, err := l.Projects.FindTool(a[0], l.Options.Cwd); err == nil {
		return found, nil
	}
	defs, _, err := l.MCPServers()
	if err != nil {
		return project.Permission{}, err
	}
	if _, known := defs[server]; !known && use == "allow" {
		return project.Permission{}, cli.Usagef("allow --tool: there is no MCP server %s", server)
	}
	if use == "allow" && strings.ContainsAny(name, "*?") {
		return project.Permission{}, &cli.ExitError{
			Code: cli.ExitUsage, Err: fmt.Errorf("allow --tool: %q is not the name of a tool, and patterns are not supported", name),
			Hint: fmt.Sprintf("allow each tool by its name (fermata mcp test %s), or set mcp_servers.%s.approval = \"allow\"", server, server),
		}
	}
	return l.Projects.OfferTool(p.MCPTool{Server: server, Name: name}, l.Options.Cwd), nil
}

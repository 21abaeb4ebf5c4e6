package mcpcmd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/app/servers"
)

func trustCommand(o Options) *cobra.Command {
	var alsoProject bool
	cmd := &cobra.Command{
		Use:   "trust [NAME]",
		Short: "Allow an MCP server that a file of this project names",
		Long: "Allow an MCP server that .mcp.json or .fermata/config.toml of this project names, as it is defined now. If the definition changes,\n" +
			"the server is not used until you allow it again. The project has to be trusted too. Without a name, list these servers.",
		Example: "  fermata mcp trust\n  fermata mcp trust docs",
		Args:    between(0, 1),
	}
	c := o.command(cmd)
	cmd.Flags().BoolVar(&alsoProject, "project", false, "trust the project as well")
	cmd.RunE = func(_ *cobra.Command, a []string) error {
		l, err := c.read()
		if err != nil {
			return err
		}
		named, warnings := l.ProjectMCPServers()
		for _, w := range warnings {
			fmt.Fprintf(c.Err, "fermata: %s: %v\n", w.Level(), w)
		}
		if len(a) == 0 {
			return c.listProject(named)
		}
		i := slices.IndexFunc(named, func(n servers.Named) bool { return n.Name == a[0] })
		if i < 0 {
			return usage("no file of this project names an MCP server %s", a[0])
		}
		return c.trust(l, named[i], alsoProject)
	}
	return cmd
}

func (c *command) listProject(named []servers.Named) error {
	if len(named) == 0 {
		fmt.Fprintln(c.Err, "No file of this project names an MCP server.")
		return nil
	}
	for _, n := range named {
		c.describe(n)
	}
	return nil
}

// describe prints what a server of the project would run, as far as that is no secret.
func (c *command) describe(n servers.Named) {
	state := "not trusted"
	if n.Trusted {
		state = "trusted"
	}
	fmt.Fprintf(c.Out, "%s (%s, %s)\n  %s\n", n.Name, state, n.File, target(n.Written))
	for _, part := range []struct {
		what  string
		names []string
	}{
		{"directory", slices.DeleteFunc([]string{n.Written.Cwd}, func(dir string) bool { return dir == "" })},
		{"variables", slices.Sorted(maps.Keys(n.Def.Env))},
		{"variables of fermata's environment", n.Variables},
		{"headers", slices.Sorted(maps.Keys(n.Def.HTTPHeaders))},
	} {
		for i, name := range part.names {
			part.names[i] = word(name)
		}
		if len(part.names) > 0 {
			fmt.Fprintf(c.Out, "  %s: %s\n", part.what, strings.Join(part.names, ", "))
		}
	}
}

func (c *command) trust(l app.Loaded, n servers.Named, alsoProject bool) error {
	if alsoProject {
		if err := l.Projects.SetTrust(l.Options.Cwd, project.Trusted); err != nil {
			return err
		}
	} else if l.Projects.Trust(l.Options.Cwd) != project.Trusted {
		return &app.Error{
			Err:  errors.New("this project is not trusted"),
			Hint: fmt.Sprintf("fermata trust trusts it; fermata mcp trust --project %s does both", n.Name),
		}
	}
	if err := servers.Trust(l.Config, n); err != nil {
		return err
	}
	n.Trusted = true
	c.describe(n)
	return nil
}

package mcpcmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/limits"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
)

func testCommand(o Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "test [NAME]",
		Short:   "Start an MCP server, or all, and list the tools",
		Long:    "Start an MCP server, or all that are enabled, list its tools and whether they may be called, and end it. The exit code is 1 if one cannot be started.",
		Example: "  fermata mcp test docs",
		Args:    between(0, 1),
	}
	c := o.command(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, a []string) error { return c.test(cmd.Context(), a, asJSON) }
	return cmd
}

func (c *command) test(ctx context.Context, names []string, asJSON bool) error {
	l, err := c.read()
	if err != nil {
		return err
	}
	defs, err := chosen(l, names)
	if err != nil {
		return err
	}
	list, err := l.CheckMCPServers(ctx, defs)
	if err != nil {
		return err
	}
	if asJSON {
		err = c.printJSON(list)
	} else {
		err = printReport(c.Out, list)
	}
	for _, s := range list {
		if err == nil && s.State != mcp.Running {
			err = fmt.Errorf("MCP server %s is not available", s.Name)
		}
	}
	return err
}

// chosen are the servers to test: the one that is named, enabled or not, or else all
// that are enabled.
func chosen(l app.Loaded, names []string) (map[string]config.MCPServer, error) {
	defs, _, err := l.MCPServers()
	if err != nil || len(names) == 0 {
		return defs, err
	}
	def, ok := defs[names[0]]
	if _, err := find(l, names[0]); !ok && err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%s does not allow the MCP server %s", limits.File, names[0])
	}
	def.Enabled = nil
	return map[string]config.MCPServer{names[0]: def}, nil
}

// printReport prints what servers say of themselves, made safe for a terminal: also a pipe may lead to one. Names
// are shown with all that is in them: a carriage return must not make one look like another.
func printReport(out io.Writer, list []mcp.Status) error {
	for _, s := range list {
		if s.State != mcp.Running {
			fmt.Fprintf(out, "%s: %s: %s\n", s.Name, s.State, safetext.ShowLine(s.Error))
			continue
		}
		fmt.Fprintf(out, "%s: %s, started in %s, %s%s\n", s.Name, safetext.ShowLine(s.Program), s.Took, humanize.Count(len(s.Tools), "tool"), loggedIn(s))
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, t := range s.Tools {
			first, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
			fmt.Fprintf(w, "  %s\t%s\t%s\n", safetext.ShowLine(t.Name), t.Approval, shorten(safetext.ShowLine(first), 100))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func loggedIn(s mcp.Status) string {
	if s.Login == "" {
		return ""
	}
	return ", " + s.Login
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// Doctor starts the servers that are enabled and reports, with line, which of them work.
func Doctor(ctx context.Context, l app.Loaded, line func(what, format string, args ...any)) error {
	defs, warnings, err := l.MCPServers()
	if err != nil {
		return err
	}
	for _, w := range warnings {
		line("warning", "%v", w)
	}
	if len(defs) == 0 {
		return nil
	}
	list, err := l.CheckMCPServers(ctx, defs)
	if err != nil {
		return err
	}
	for i, s := range list {
		what, text := "", fmt.Sprintf("works, %s%s", humanize.Count(len(s.Tools), "tool"), loggedIn(s))
		if i == 0 {
			what = "MCP servers"
		}
		if s.State != mcp.Running {
			text = s.State + ": " + safetext.ShowLine(s.Error)
		}
		line(what, "%s: %s", s.Name, text)
	}
	return nil
}

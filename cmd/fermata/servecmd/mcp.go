package servecmd

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/cmd/fermata/mcpcmd"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver"
)

// MCPCommand returns fermata mcp, which manages the MCP servers that fermata calls. Alone it is mcp-server, which it was
// in earlier versions of Codex.
func MCPCommand(s cli.Streams) *cobra.Command {
	cmd := mcpServerCommand(s)
	cmd.Use = "mcp"
	cmd.Short = "Manage the MCP servers whose tools the model can call"
	cmd.Long = "Manage the MCP servers whose tools the model can call. Without a command, and where stdin is no terminal, it serves MCP itself: see fermata mcp-server."
	cmd.Example = "  fermata mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/docs\n  fermata mcp test files"
	cmd.Args = func(cmd *cobra.Command, a []string) error {
		if len(a) > 0 {
			return cli.Usagef("mcp has no command %q", a[0])
		}
		return nil
	}
	serve := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, a []string) error {
		if cli.Terminal(s.In) {
			return cmd.Help()
		}
		return serve(cmd, a)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = true }) // of the server
	for _, c := range cmd.Commands() {
		c.Hidden = true
	}
	cmd.AddCommand(mcpcmd.Commands(mcpcmd.Options{In: s.In, Out: s.Out, Err: s.Err, Load: func(fs *pflag.FlagSet) func() (app.Loaded, error) {
		var f cli.RunFlags
		f.RegisterConfig(fs)
		return func() (app.Loaded, error) { return f.Load(s) }
	}})...)
	return cmd
}

func mcpServerCommand(s cli.Streams) *cobra.Command {
	var f cli.RunFlags
	cmd := &cobra.Command{
		Use:   "mcp-server",
		Short: "Serve MCP on stdin and stdout, for other programs",
		Long: "Serve MCP on stdin and stdout, one message per line: the tools codex and codex-reply, tools for streamed conversations,\n" +
			"and the requests of Codex's clients. fermata mcp-server schema lists them all.\n\n" +
			"The end of stdin, SIGINT and SIGTERM interrupt all turns and everything they run; the conversations can be resumed.",
		Example: "  fermata mcp-server -s workspace-write\n  fermata mcp-server schema",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return serveMCP(cmd.Context(), s, f) },
	}
	f.Register(cmd.Flags())
	f.RegisterLimits(cmd.Flags())
	f.RegisterShareKey(cmd.Flags())
	cmd.AddCommand(&cobra.Command{
		Use:     "schema",
		Short:   "Print the requests of the server as JSON Schema",
		Example: "  fermata mcp-server schema",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			enc := json.NewEncoder(s.Out)
			enc.SetIndent("", "  ")
			return enc.Encode(mcpserver.Schema())
		},
	})
	return cmd
}

func serveMCP(ctx context.Context, s cli.Streams, f cli.RunFlags) error {
	f.Client = "mcp-server"
	return runServer(ctx, s, f, func(ctx context.Context, r *app.App) error {
		server := mcpserver.New(ctx, mcpserver.Options{
			Engine: r.Engine, Version: cli.Version(), Settings: r.Settings, Change: r.Change, Local: r, Panicked: r.Panicked(),
			Log: slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		return server.Serve(ctx, s.In, s.RawOut)
	})
}

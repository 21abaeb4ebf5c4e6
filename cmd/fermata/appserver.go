package main

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/internal/surface/appserver"
)

func appServerCommand(s streams) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "app-server",
		Short: "Serve threads and turns to editors and programs",
		Long: "Serve threads and turns in the form that the clients of Codex's app-server know, one JSON message per line on stdin and stdout.\n" +
			"fermata app-server generate-json-schema lists all messages.\n\n" +
			"The end of stdin, SIGINT and SIGTERM interrupt all turns and everything they run; the conversations can be resumed.",
		Example: "  fermata app-server -s workspace-write\n  fermata app-server generate-json-schema",
		Args:    args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return serveApp(cmd.Context(), s, f) },
	}
	f.register(cmd.Flags())
	f.registerLimits(cmd.Flags())
	cmd.AddCommand(&cobra.Command{
		Use:     "generate-json-schema",
		Short:   "Print all messages as JSON Schema",
		Example: "  fermata app-server generate-json-schema",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			enc := json.NewEncoder(s.out)
			enc.SetIndent("", "  ")
			return enc.Encode(appserver.Schema())
		},
	})
	return cmd
}

func serveApp(ctx context.Context, s streams, f runFlags) error {
	r, err := f.openApp(ctx, s)
	if err != nil {
		return err
	}
	defer r.Close()
	ctx, stopped := stopSignals(ctx)
	server := appserver.New(ctx, appserver.Options{
		Engine: r.Engine, Version: version(), Home: r.Config.Home, Cwd: r.Cwd, Settings: r.Settings, Change: r.Change, Local: r,
		Log: slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	defer server.Close()
	err = server.Serve(ctx, appserver.Only, s.in, s.rawOut)
	if stopped() != nil { // a server that is told to end and does has done well
		return nil
	}
	return err
}

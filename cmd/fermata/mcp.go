package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver"
	p "github.com/fermata-agent/fermata/protocol"
)

func mcpServerCommand(s streams) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "mcp-server",
		Aliases: []string{"mcp"},
		Short:   "let other programs use fermata, over MCP on stdin and stdout",
		Long: "Serve MCP on stdin and stdout, one message per line: the tools codex and codex-reply, tools for conversations that are streamed,\n" +
			"and the direct requests of Codex's clients; fermata mcp-server schema lists them all.\n" +
			"The end of stdin, SIGINT and SIGTERM stop all turns and everything they run; their conversations can be resumed.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return serveMCP(cmd.Context(), s, f) },
	}
	f.register(cmd.Flags())
	cmd.AddCommand(&cobra.Command{
		Use:   "schema",
		Short: "print everything the server answers, as JSON Schema",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			enc := json.NewEncoder(s.out)
			enc.SetIndent("", "  ")
			return enc.Encode(mcpserver.Schema())
		},
	})
	return cmd
}

func serveMCP(ctx context.Context, s streams, f runFlags) error {
	r, err := f.runtime(ctx, s)
	if err != nil {
		return err
	}
	defer r.close()
	ctx, stopped := stopSignals(ctx)
	server := mcpserver.New(ctx, mcpserver.Options{
		Engine: r.engine, Version: version(), Settings: r.wish, Local: local{r},
		Log: slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	err = server.Serve(ctx, s.in, s.out)
	if stopped() != nil { // a server that is told to end and does has done well
		return nil
	}
	return err
}

// wish makes what a client asks for settings: as if it were on our own command line.
func (r *runtime) wish(w mcpserver.Wish) (p.Settings, error) {
	load := r.models.load
	load.Cwd = r.cwd
	if w.Cwd != "" {
		load.Cwd = existing(filepath.Join(r.cwd, w.Cwd))
		if filepath.IsAbs(w.Cwd) {
			load.Cwd = existing(filepath.Clean(w.Cwd))
		}
	}
	load.Profile = either(w.Profile, load.Profile)
	load.Flags.Model = either(w.Model, load.Flags.Model)
	load.Flags.Approval = either(w.Approval, load.Flags.Approval)
	load.Flags.Sandbox = either(w.Sandbox, load.Flags.Sandbox)
	load.Overrides = slices.Clone(load.Overrides)
	for _, key := range slices.Sorted(maps.Keys(w.Config)) {
		load.Overrides = append(load.Overrides, config.Override(key, w.Config[key]))
	}
	cfg, _, err := config.Load(load)
	if err != nil {
		return p.Settings{}, fmt.Errorf("configuration: %w", err)
	}
	choice, err := cfg.Choose(os.Getenv, probe)
	if err != nil {
		return p.Settings{}, err
	}
	docs, _ := config.Instructions(cfg.Home, load.Cwd, cfg.ProjectDocMaxBytes)
	return cfg.Settings(choice, load.Cwd, docs.Text), nil
}

// existing is a directory by its one name, or dir if there is none: only what
// is to run there fails then.
func existing(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

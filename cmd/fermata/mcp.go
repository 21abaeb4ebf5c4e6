package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
		Engine: r.engine, Version: version(), Settings: r.wish, Change: r.change, Local: local{r},
		Log: slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	err = server.Serve(ctx, s.in, s.out)
	if stopped() != nil { // a server that is told to end and does has done well
		return nil
	}
	return err
}

// wish makes what a client asks for settings: what it names counts, and for the rest what we were
// started with.
func (r *runtime) wish(w mcpserver.Wish) (p.Settings, []string, error) {
	load := r.models.load
	load.Cwd = r.place(w.Cwd)
	named, warnings, err := r.named(w, load.Cwd)
	if err != nil {
		return p.Settings{}, nil, err
	}
	load.Profile = cmp.Or(w.Profile, load.Profile)
	load.Overrides = append(slices.Clone(load.Overrides), overrides(w)...)
	prefer(&load.Flags, named.Overrides(p.Settings{}))
	cfg, _, err := config.Load(load)
	if err != nil {
		return p.Settings{}, nil, fmt.Errorf("configuration: %w", err)
	}
	choice, err := cfg.Choose(os.Getenv, probe)
	if err != nil {
		return p.Settings{}, nil, err
	}
	docs, _ := config.Instructions(cfg.Home, load.Cwd, cfg.ProjectDocMaxBytes)
	s := cfg.Settings(choice, load.Cwd, docs.Text)
	if w.BaseInstructions != "" {
		s.Instructions = w.BaseInstructions
	}
	s.Provider, err = r.models.define(s.Provider, providerOverrides(w))
	return s, ineffective(w, processWide, warnings), err
}

// change makes what a client asks for changes of a conversation. Only what the client names
// counts: what we were started with was for conversations that we begin.
func (r *runtime) change(now p.Settings, w mcpserver.Wish) (p.Overrides, []string, error) {
	if w.BaseInstructions != "" {
		return p.Overrides{}, nil, errors.New("the instructions of a conversation that has begun cannot be changed")
	}
	named, warnings, err := r.named(w, now.Cwd)
	if err != nil {
		return p.Overrides{}, nil, err
	}
	o := named.Overrides(now)
	if w.Cwd != "" {
		o.Cwd = new(r.place(w.Cwd))
	}
	if defined := providerOverrides(w); o.Provider != nil || len(defined) > 0 {
		name := now.Provider
		if o.Provider != nil {
			name = *o.Provider
		}
		if name, err = r.models.define(name, defined); err != nil {
			return o, nil, err
		}
		o.Provider = &name
		if _, err = r.models.chooseFor(o.Apply(now)); err != nil {
			return o, nil, err
		}
	}
	return o, ineffective(w, append(slices.Clone(processWide), onceOnly...), warnings), nil
}

// named is the configuration with what a client names, and without what we were started with.
func (r *runtime) named(w mcpserver.Wish, cwd string) (*config.Config, []config.Warning, error) {
	cfg, warnings, err := config.Load(config.Options{
		Home: r.config.Home, Cwd: cwd, Env: os.Getenv, Profile: w.Profile, Overrides: overrides(w),
		Flags: config.Flags{Model: w.Model, Approval: w.ApprovalPolicy, Sandbox: w.Sandbox},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: %w", err)
	}
	return cfg, warnings, nil
}

// prefer makes flags of what a client names in whatever way: nothing else is stronger than our own.
func prefer(f *config.Flags, named p.Overrides) {
	if named.Model != nil {
		f.Model = *named.Model
	}
	if named.Provider != nil {
		f.Provider = *named.Provider
	}
	if named.Approval != nil {
		f.Approval = string(*named.Approval)
	}
	if named.Sandbox != nil {
		f.Sandbox = string(named.Sandbox.Mode)
	}
}

// overrides are the configuration values of a wish, in order.
func overrides(w mcpserver.Wish) []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(w.Config)) {
		list = append(list, config.Override(key, w.Config[key]))
	}
	return list
}

// Keys that a wish can name in vain: processWide is the same for all that a process runs,
// onceOnly is settled when a conversation begins.
var (
	processWide = []string{
		"shell_environment_policy", "command_timeout_ms", "stop_grace_ms", "mcp_servers", "notify", "history", "tools",
		"experimental_use_exec_command_tool", "model_max_output_tokens",
	}
	onceOnly = []string{"model_verbosity", "model_context_window", "instructions", "experimental_instructions_file", "project_doc_max_bytes"}
)

// ineffective says which values of a wish have no effect: those of the given keys, and those
// that there were warnings about.
func ineffective(w mcpserver.Wish, keys []string, warnings []config.Warning) []string {
	var remarks []string
	for _, key := range slices.Sorted(maps.Keys(w.Config)) {
		if first, _, _ := strings.Cut(key, "."); slices.Contains(keys, first) {
			remarks = append(remarks, fmt.Sprintf("config: %s has no effect here: set it where the server is started, with -c", key))
		}
	}
	for _, about := range warnings { // of the file people were warned when we started
		if about.Source.Kind == config.FromOverride {
			remarks = append(remarks, fmt.Sprintf("config: %s: %s", about.Key, about.Text))
		}
	}
	return remarks
}

// place is a directory as a client names it.
func (r *runtime) place(cwd string) string {
	switch {
	case cwd == "":
		return r.cwd
	case filepath.IsAbs(cwd):
		return existing(filepath.Clean(cwd))
	}
	return existing(filepath.Join(r.cwd, cwd))
}

// existing is a directory by its one name, or dir if there is none: only what
// is to run there fails then.
func existing(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

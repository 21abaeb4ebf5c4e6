package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/clienttools"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/app/servers"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/internal/native"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
	p "github.com/fermata-agent/fermata/protocol"
)

// A toolkit makes the tools of a turn.
type toolkit struct {
	config  *config.Config
	spawner *proc.Spawner
	models  *Models
	servers *mcp.Servers     // nil if none is configured
	client  *clienttools.Set // what a client brings beside; nil if nothing
	defs    map[string]config.MCPServer
	dir     string // where servers are started

	projects *project.Store
	commands func() string   // the directory with apply_patch, "" if it cannot be made
	env      func() []string // of commands, before the configuration's rules

	snapshots    *tool.Snapshots // nil: what commands change is not looked at
	noEscalation bool            // nothing may leave the sandbox, approved or not
	confineUser  bool            // nor may a command line of a client's own
}

// tools returns the tools of a turn. The list depends on the settings and the
// model only, so that it is the same in every turn and a provider's cache holds. A
// model is offered one way to run commands and one way to change files; the others
// are carried out if it calls them all the same.
func (k *toolkit) tools(s p.Settings) []engine.Tool { return native.Tools(k.builtin(s)) }

func (k *toolkit) builtin(s p.Settings) []tool.Tool {
	changes := &tool.Changes{Snapshots: k.snapshots} // of this turn
	secret := secretFiles(k.config)
	homes, guarded := config.Homes(os.Getenv), guarded(k.config, k.client.Definitions(k.defs), k.dir)
	patches := &tool.Patch{
		Freeform: k.freeform(s), Home: k.config.Home, OtherHomes: homes, Guarded: guarded, Changes: changes, Secret: secret, NoEscalation: k.noEscalation, Buffers: k.client.OpenFiles(),
	}
	shell := &tool.Shell{
		Spawner: k.spawner, Timeout: k.config.CommandTimeout, Grace: grace(k.config), Home: k.config.Home,
		OtherHomes: homes, Guarded: guarded, Secrets: k.config.SecretFiles(),
		Environ: k.environ(s), PIDNamespace: k.config.PIDNamespace, Changes: changes, Patch: patches,
		CanAsk: canAsk(s) && !k.noEscalation && !s.Plan, NoEscalation: k.noEscalation, Prefixes: k.projects.Rules, CommandDir: k.commands,
	}
	files := &tool.Files{Secret: secret, Buffers: k.client.OpenFiles()}
	var list []tool.Tool
	offer := func(ok bool, tools ...tool.Tool) {
		for _, t := range tools {
			if !ok {
				t = tool.Hidden(t)
			}
			list = append(list, t)
		}
	}
	byPatch := catalogue.FamilyOf(s.Model).Edit == catalogue.EditPatch
	offer(k.config.UseExecCommandTool, &tool.Exec{Shell: shell, Set: envPolicy(k.config).Apply(nil)}, tool.WriteStdin{})
	offer(!k.config.UseExecCommandTool, shell)
	offer(byPatch, patches)
	edit, write, read := &tool.Edit{Patch: patches}, &tool.Write{Patch: patches}, &tool.Read{Files: files}
	offer(!byPatch, edit, write)
	offer(false, &tool.TextEditor{Read: read, Edit: edit, Write: write}, &tool.MultiEdit{Patch: patches})
	offer(true, read, &tool.List{Files: files}, &tool.Grep{Files: files, Shell: shell}, tool.Plan{})
	offer(k.config.WebFetch && (canAsk(s) || s.Sandbox.NetworkAccess || s.Sandbox.Mode == p.SandboxFullAccess), &tool.Fetch{NoEscalation: k.noEscalation})
	if k.config.ViewImage {
		offer(true, tool.ViewImage{Secret: secret})
	}
	user := *shell
	user.NoEscalation = k.noEscalation || k.confineUser
	offer(false, &tool.UserShell{Shell: &user})
	offer(true, k.client.Tools(k.servers, s.Cwd, k.projects.ToolApproval)...)
	return list
}

// guarded lists the files that fermata reads or executes, besides those in its home: what commands and
// patches must not change.
func guarded(cfg *config.Config, defs map[string]config.MCPServer, dir string) []string {
	list := slices.Concat(cfg.Files(), cfg.SecretFiles(), servers.Guarded(project.Dir(dir), cfg, os.Getenv, dir))
	for _, def := range defs {
		list = append(list, servers.Programs(def, dir)...)
	}
	return list
}

// await returns what waits for the tools of MCP servers, nil if they are known.
func (k *toolkit) await(s p.Settings) func(context.Context) ([]string, error) {
	return k.client.Await(k.servers, s.Cwd)
}

// canAsk reports whether a command can ask for more than the sandbox allows.
func canAsk(s p.Settings) bool {
	return s.Approval != p.ApprovalNever && s.Sandbox.Mode != p.SandboxFullAccess
}

// secretFiles reports which files the tools that only look must not show: they run
// in this process, unconfined. Those of the processes in /proc have its
// environment, and those in the home, and others that the configuration names, have keys.
func secretFiles(cfg *config.Config) func(path string) bool {
	real, others := resolveDir(cfg.Home), cfg.SecretFiles()
	homes := append([]string{cfg.Home}, config.Homes(os.Getenv)...)
	return func(path string) bool {
		if path == "/proc" || strings.HasPrefix(path, "/proc/") || sandbox.OffLimits(homes, path, others...) {
			return true
		}
		rel, err := filepath.Rel(real, path)
		if err != nil {
			return false
		}
		first, _, _ := strings.Cut(rel, "/")
		return first == config.FileName
	}
}

// freeform reports whether the model takes tools that are held to a grammar.
func (k *toolkit) freeform(s p.Settings) bool {
	if !catalogue.FamilyOf(s.Model).Freeform {
		return false
	}
	choice, err := k.models.chooseFor(s)
	return err == nil && choice.Provider.WireAPI == config.WireResponses
}

// grace is the time between TERM and KILL. To package proc, zero means its own default.
func grace(cfg *config.Config) time.Duration {
	if cfg.StopGrace == 0 {
		return -1
	}
	return cfg.StopGrace
}

// environ returns the environment of commands. The key of the provider that the
// settings name is not in it, even if a client defined that provider.
func (k *toolkit) environ(s p.Settings) func() []string {
	return func() []string {
		_, _ = k.models.get(s) // so that its variables are known; whatever is wrong with it, the turn reports
		return environ(k.config, k.env(), k.models.keyVariables()...)
	}
}

// Environ returns the environment of commands, as the configuration says. The
// variables of keys are not in it, nor are those named besides.
func Environ(cfg *config.Config, never ...string) []string {
	return environ(cfg, os.Environ(), never...)
}

func environ(cfg *config.Config, from []string, never ...string) []string {
	pol := envPolicy(cfg)
	pol.Never = append(pol.Never, never...)
	return pol.Apply(from)
}

func envPolicy(cfg *config.Config) policy.EnvPolicy {
	e := cfg.ShellEnvironment
	return policy.EnvPolicy{
		Inherit: policy.Inherit(e.Inherit), KeepSecrets: e.IgnoreDefaultExcludes,
		Exclude: e.Exclude, Set: e.Set, IncludeOnly: e.IncludeOnly, Never: cfg.KeyVariables(),
	}
}

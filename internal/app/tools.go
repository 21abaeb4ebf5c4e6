package app

import (
	"os"
	"path/filepath"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// A toolkit makes the tools of a turn.
type toolkit struct {
	config  *config.Config
	spawner *proc.Spawner
	models  *Models

	snapshots *tool.Snapshots // nil: what commands change is not looked at
}

// snapshots are kept with the conversations, where commands cannot touch them.
func snapshots(home string) *tool.Snapshots {
	return &tool.Snapshots{Dir: filepath.Join(home, "snapshots")}
}

func (k *toolkit) tools(s p.Settings) []tool.Tool {
	changes := &tool.Changes{Snapshots: k.snapshots} // of this turn
	patches := &tool.Patch{Freeform: k.freeform(s), Home: k.config.Home, Changes: changes}
	shell := &tool.Shell{
		Spawner: k.spawner, Timeout: k.config.CommandTimeout, Grace: grace(k.config), Home: k.config.Home,
		Environ: Environ(k.config), PIDNamespace: k.config.PIDNamespace, Changes: changes, Patch: patches,
	}
	list := []tool.Tool{shell, patches, tool.Plan{}, &tool.UserShell{Shell: shell}}
	if k.config.UseExecCommandTool { // one of the two, or models mix them up
		list[0] = &tool.Exec{Shell: shell, Set: environSet(k.config)}
		list = append(list, tool.WriteStdin{})
	}
	if k.config.ViewImage {
		list = append(list, tool.ViewImage{})
	}
	return list
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

// Environ returns the environment of commands, as the configuration says.
func Environ(cfg *config.Config) func() []string {
	pol := envPolicy(cfg)
	return func() []string { return pol.Apply(os.Environ()) }
}

// environSet is the part of it that the configuration sets.
func environSet(cfg *config.Config) []string { return envPolicy(cfg).Apply(nil) }

func envPolicy(cfg *config.Config) policy.EnvPolicy {
	e := cfg.ShellEnvironment
	return policy.EnvPolicy{
		Inherit: policy.Inherit(e.Inherit), KeepSecrets: e.IgnoreDefaultExcludes,
		Exclude: e.Exclude, Set: e.Set, IncludeOnly: e.IncludeOnly,
	}
}
